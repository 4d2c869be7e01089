"""GitHub: one GraphQL query per poll, REST for writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from cuggino.config import ForgeKind
from cuggino.errors import ForgeRefused
from cuggino.forge.api import Api, emits, emits_each, moment
from cuggino.forge.model import Issue, Job, JobState, PullRequest, Remark
from cuggino.forge.rest import ASSOCIATIONS, PULL_STATES, Act, RestForge, Routes
from cuggino.operators import Flow, ask

MOST_FOUND = 1000
"""The issues that a search lists."""

_ISSUE = """
fragment issue on Issue {
  number title body url state authorAssociation viewerDidAuthor lastEditedAt
  author { login } editor { login } labels(first: 50) { nodes { name } }
  timelineItems(last: 100, itemTypes: [LABELED_EVENT, RENAMED_TITLE_EVENT]) {
    nodes {
      __typename
      ... on LabeledEvent { createdAt actor { login } label { name } }
      ... on RenamedTitleEvent { createdAt actor { login } }
    }
  }
}
"""

_CHECKS = """
fragment checks on Commit {
  oid statusCheckRollup { contexts(first: 100) { nodes {
    __typename
    ... on CheckRun { databaseId name status conclusion detailsUrl }
    ... on StatusContext { context state targetUrl }
  } } }
}
"""

_REMARK = """
fragment remark on Comment {
  id body createdAt authorAssociation viewerDidAuthor author { login }
}
"""


def _of_repository(variables: str, fields: str, *fragments: str) -> str:
    """Return a query for fields of the repository."""
    return f"""{"".join(fragments)}
query($owner: String!, $name: String!, {variables}) {{
  viewer {{ login }} repository(owner: $owner, name: $name) {{ {fields} }}
}}
"""


_LISTED = _of_repository(
    "$labels: [String!], $after: String",
    """issues(states: OPEN, labels: $labels, first: 50, after: $after,
      orderBy: {field: CREATED_AT, direction: ASC}) {
      nodes { ...issue } pageInfo { hasNextPage endCursor }
    }""",
    _ISSUE,
)

_FOUND = (
    _ISSUE
    + """
query($query: String!, $after: String) {
  viewer { login }
  search(type: ISSUE, query: $query, first: 50, after: $after) {
    issueCount nodes { ... on Issue { ...issue repository { nameWithOwner } } }
    pageInfo { hasNextPage endCursor }
  }
}
"""
)

_ONE = _of_repository("$number: Int!", "issue(number: $number) { ...issue }", _ISSUE)

_OF_BRANCH = _of_repository(
    "$branch: String!",
    """pullRequests(headRefName: $branch, first: 20,
      orderBy: {field: CREATED_AT, direction: DESC}) { nodes { number isCrossRepository } }""",
)

_JOBS = _of_repository("$commit: String!", "object(expression: $commit) { ...checks }", _CHECKS)

_PULL_REQUEST = _of_repository(
    "$number: Int!",
    """pullRequest(number: $number) {
      number url state headRefName headRefOid baseRefName body isDraft mergeable
      isInMergeQueue mergeCommit { oid } autoMergeRequest { enabledAt }
      commits(last: 1) { nodes { commit { ...checks } } }
      comments(last: 100) { nodes { ...remark } }
      reviews(last: 100) { nodes { ...remark state } }
      reviewThreads(last: 100) {
        nodes { isResolved path line comments(first: 50) { nodes { ...remark } } }
      }
    }""",
    _CHECKS,
    _REMARK,
)

_MERGING = _of_repository(
    "$number: Int!",
    """viewerDefaultMergeMethod autoMergeAllowed
    pullRequest(number: $number) {
      id state headRefOid mergeStateStatus isInMergeQueue isMergeQueueEnabled
      autoMergeRequest { enabledAt }
    }""",
)

_ENABLE = """
mutation($id: ID!, $head: GitObjectID!, $method: PullRequestMergeMethod) {
  enablePullRequestAutoMerge(
    input: {pullRequestId: $id, expectedHeadOid: $head, mergeMethod: $method}
  ) { clientMutationId }
}
"""

_ENQUEUE = """
mutation($id: ID!, $head: GitObjectID!) {
  enqueuePullRequest(input: {pullRequestId: $id, expectedHeadOid: $head}) { clientMutationId }
}
"""

_JOB_STATES: Mapping[str | None, JobState] = {
    None: "pending",
    "PENDING": "pending",
    "EXPECTED": "pending",
    "SUCCESS": "passed",
    "SKIPPED": "skipped",
    "NEUTRAL": "skipped",
    "STALE": "skipped",
}
"""By conclusion or state; any other one is a failure."""


class GitHub(RestForge):
    """A repository on GitHub, or on a GitHub Enterprise server."""

    kind: ForgeKind = "github"
    routes = Routes(
        repository=lambda repo: f"repos/{quote(repo)}",
        comments="issues/{number}/comments",
        listing="per_page=100",
        comment="issues/comments/{comment}",
        author="user",
        user="login",
        edit="PATCH",
        closing={"state": "closed", "state_reason": "completed"},
        pulls="pulls",
        number="number",
        exists=(422,),
        log="actions/jobs/{job}/logs",
        member="collaborators/{login}/permission",
        role="permission",
        is_stranger=lambda _status: True,  # such as a bot
    )

    def __init__(
        self,
        repo: str,
        *,
        host: str = "github.com",
        trust: Sequence[str] = ASSOCIATIONS,
        label: str | None = None,
        api: Api | None = None,
    ) -> None:
        """Create a client; `trust` lists whose text counts: `owner` to `contributor`, or `anyone`.

        Anyone else's issue counts if a person with write access has set the `label`.
        """
        self._trusted = {name.upper() for name in trust}
        writes = {"MEMBER", "COLLABORATOR", "CONTRIBUTOR"} & self._trusted
        roles = ("admin", "write") if writes else ("admin",)
        super().__init__(repo, host=host, roles=roles, trust=trust, label=label, api=api)
        self._owner, _, self._repo_name = repo.partition("/")

    @emits
    def viewer(self) -> Flow[str]:
        data = yield from self._ask("{ viewer { login } }")
        return str(data["viewer"]["login"])

    @emits_each
    def issues(self, *, label: str | None, query: str | None) -> Flow[list[Issue]]:
        issues: list[Issue] = []
        page: Any = {"pageInfo": {"endCursor": None, "hasNextPage": True}}
        while page["pageInfo"]["hasNextPage"]:
            after = page["pageInfo"]["endCursor"]
            if query is None:
                labels = [label] if label is not None else None
                data = yield from self._ask_repository(_LISTED, labels=labels, after=after)
                page = data["repository"]["issues"]
            else:
                words = self._search(label, query)
                data = yield from self._ask(_FOUND, query=words, after=after)
                page = data["search"]
                if page["issueCount"] > MOST_FOUND:
                    raise ForgeRefused(
                        f"the query finds more than {MOST_FOUND} issues; GitHub lists no more",
                        hint="narrow the query, or use a label",
                    )
            for node in page["nodes"]:
                if node and _is_in(node, self.repo):
                    issues.append((yield from self._issue(node, data["viewer"]["login"])))
        return issues

    @emits
    def issue(self, number: int) -> Flow[Issue]:
        data = yield from self._ask_repository(_ONE, number=number)
        node = _existing(data["repository"]["issue"], f"issue {number}")
        return (yield from self._issue(node, data["viewer"]["login"]))

    @emits
    def change_labels(
        self, number: int, *, add: tuple[str, ...], remove: tuple[str, ...]
    ) -> Flow[None]:
        labels = f"issues/{number}/labels"
        for name in remove:
            path = self._path(f"{labels}/{{name}}", name=name)
            yield from ask(self._api.change("DELETE", path, missing=True))
        if add:
            yield from ask(self._api.change("POST", self._path(labels), {"labels": list(add)}))

    @emits
    def edit_pull_request(self, number: int, *, title: str, body: str) -> Flow[None]:
        wanted = {"title": title, "body": body}
        yield from ask(self._api.change("PATCH", self._path(f"pulls/{number}"), wanted))

    @emits
    def pull_request(self, number: int) -> Flow[PullRequest]:
        data = yield from self._ask_repository(_PULL_REQUEST, number=number)
        node = _existing(data["repository"]["pullRequest"], f"pull request {number}")
        head = node["headRefOid"]
        commits = [entry["commit"] for entry in node["commits"]["nodes"]]
        return PullRequest(
            number=node["number"],
            url=node["url"],
            state=PULL_STATES[node["state"].lower()],
            branch=node["headRefName"],
            target=node["baseRefName"],
            head=head,
            body=node["body"] or "",
            merged_as=(node["mergeCommit"] or {}).get("oid", ""),
            is_draft=node["isDraft"],
            is_queued=bool(node["autoMergeRequest"]) or bool(node["isInMergeQueue"]),
            conflicts={"CONFLICTING": True, "MERGEABLE": False}.get(node["mergeable"]),
            # GitHub may still list those of another commit.
            jobs=tuple(job for one in commits if one["oid"] == head for job in _jobs(one)),
            remarks=tuple(sorted(self._remarks(node), key=lambda remark: remark.at)),
        )

    @emits_each
    def jobs(self, commit: str) -> Flow[list[Job]]:
        data = yield from self._ask_repository(_JOBS, commit=commit)
        return [*_jobs(_existing(data["repository"]["object"], f"commit {commit}"))]

    @emits
    def merge_when_allowed(self, number: int, *, head: str) -> Flow[None]:
        data = yield from self._ask_repository(_MERGING, number=number)
        repo = data["repository"]
        pull = repo["pullRequest"]
        if pull["headRefOid"] != head:
            raise ForgeRefused(f"the head of pull request {number} has moved", status=409)
        if pull["state"] != "OPEN" or pull["autoMergeRequest"] or pull["isInMergeQueue"]:
            return
        place = self._path(f"pulls/{number}")
        of = {"id": pull["id"], "head": head}
        method = repo["viewerDefaultMergeMethod"]
        if pull["mergeStateStatus"] in ("CLEAN", "HAS_HOOKS"):
            if pull["isMergeQueueEnabled"]:
                yield from self._ask(_ENQUEUE, **of)
            else:
                body = {"sha": head, "merge_method": method.lower()}
                yield from ask(self._api.change("PUT", f"{place}/merge", body))
        elif pull["mergeStateStatus"] == "BEHIND":  # which the forge would wait for, too
            body = {"expected_head_sha": head}
            yield from ask(self._api.change("PUT", f"{place}/update-branch", body))
        elif repo["autoMergeAllowed"]:
            yield from self._ask(_ENABLE, **of, method=method)
        else:
            raise ForgeRefused(
                f"pull request {number} cannot be merged yet",
                status=405,
                hint=f"allow auto-merge in the settings of {self.repo}",
            )

    def _ask(self, query: str, /, **variables: Any) -> Flow[dict[str, Any]]:
        data = yield from ask(self._api.graphql(query, **variables))
        assert data is not None
        return data

    def _ask_repository(self, query: str, /, **variables: Any) -> Flow[dict[str, Any]]:
        of = {"owner": self._owner, "name": self._repo_name}
        return (yield from self._ask(query, **of, **variables))

    def _wanted(self, branch: str, target: str, title: str, body: str, *, draft: bool) -> Any:
        return {"head": branch, "base": target, "title": title, "body": body, "draft": draft}

    def _number_of(self, branch: str) -> Flow[int | None]:
        data = yield from self._ask_repository(_OF_BRANCH, branch=branch)
        nodes = data["repository"]["pullRequests"]["nodes"]
        # A fork may have a branch of the same name.
        return next((node["number"] for node in nodes if not node["isCrossRepository"]), None)

    def _search(self, label: str | None, query: str) -> str:
        words = [f"repo:{self.repo}", "is:issue", "is:open", "sort:created-asc"]
        if label is not None:
            words.append('label:"{}"'.format(label.replace('"', "")))
        return " ".join([*words, query])

    def _issue(self, node: dict[str, Any], viewer: str) -> Flow[Issue]:
        author, events = self._name(node["author"]), node["timelineItems"]["nodes"]
        is_trusted = self._is_trusted(node)
        issue = Issue(
            number=node["number"],
            title=node["title"],
            body=node["body"] or "",
            url=node["url"],
            author=author,
            is_trusted=is_trusted,
            is_open=node["state"] == "OPEN",
            labels=tuple(label["name"] for label in node["labels"]["nodes"]),
        )
        edits: list[Act] = _acts(events, "RenamedTitleEvent")[-1:]
        if node["lastEditedAt"]:
            edits.insert(0, (node["lastEditedAt"], node["editor"]))
        labeled = _acts(events, "LabeledEvent", self._label)
        known = {viewer: True, author: is_trusted}
        return (yield from self._judged(issue, known, labeled=labeled, edits=edits))

    def _is_trusted(self, node: dict[str, Any]) -> bool:
        return bool(node["viewerDidAuthor"]) or self._is_associated(node["authorAssociation"])

    def _is_associated(self, association: str) -> bool:
        return self._everyone or association in self._trusted

    def _association(self, entry: Any) -> bool | None:
        return self._is_associated(entry["author_association"])

    def _page(self, entry: Any, number: int) -> str:
        return str(entry["html_url"])

    def _remarks(self, node: dict[str, Any]) -> Iterator[Remark]:
        for comment in node["comments"]["nodes"]:
            yield self._remark(comment)
        reviews = node["reviews"]["nodes"]
        opinions = {
            self._name(review["author"]): review["id"]
            for review in reviews
            if review["state"] in ("APPROVED", "CHANGES_REQUESTED", "DISMISSED")
        }
        for review in reviews:
            asks = review["state"] == "CHANGES_REQUESTED"
            asks &= opinions.get(self._name(review["author"])) == review["id"]
            if review["state"] != "PENDING" and (asks or review["body"]):
                yield self._remark(review, asks=asks)
        for thread in node["reviewThreads"]["nodes"]:
            if not thread["isResolved"]:
                for comment in thread["comments"]["nodes"]:
                    yield self._remark(comment, path=thread["path"], line=thread["line"])

    def _remark(
        self, node: dict[str, Any], *, asks: bool = False, path: str = "", line: int | None = None
    ) -> Remark:
        return Remark(
            id=node["id"],
            author=self._name(node["author"]),
            is_mine=node["viewerDidAuthor"],
            is_trusted=self._is_trusted(node),
            body=node["body"] or "",
            at=moment(node["createdAt"]),
            asks_for_changes=asks,
            path=path,
            line=line,
        )


def _jobs(commit: dict[str, Any]) -> Iterator[Job]:
    for context in ((commit["statusCheckRollup"] or {}).get("contexts") or {}).get("nodes", ()):
        if context["__typename"] == "CheckRun":
            id, name = str(context["databaseId"]), context["name"]
            state, url = context["conclusion"], context["detailsUrl"]
        else:
            id, name = f"status:{context['context']}", context["context"]
            state, url = context["state"], context["targetUrl"]
        yield Job(id=id, name=name, state=_JOB_STATES.get(state, "failed"), url=url or "")


def _acts(events: list[dict[str, Any]], kind: str, label: str | None = None) -> list[Act]:
    """Return the events of a kind, oldest first; those with a label only for that one."""
    return [
        (event["createdAt"], event["actor"])
        for event in events
        if event["__typename"] == kind and (label is None or event["label"]["name"] == label)
    ]


def _existing(node: Any, what: str) -> dict[str, Any]:
    if not node:
        raise ForgeRefused(f"{what} does not exist", status=404)
    found: dict[str, Any] = node
    return found


def _is_in(node: dict[str, Any], repo: str) -> bool:
    """Return whether an issue found by a search belongs to this repository."""
    place = (node.get("repository") or {}).get("nameWithOwner", repo)
    return bool(place.lower() == repo.lower())
