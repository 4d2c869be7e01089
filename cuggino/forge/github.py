"""GitHub: one GraphQL query per poll, REST for writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal
from urllib.parse import quote

from reactivex import Observable, just, operators as ops

from cuggino.config import ForgeKind
from cuggino.errors import ForgeRefused
from cuggino.forge.api import Api, moment, shaped
from cuggino.forge.model import Comment, Issue, Job, PullRequest, Remark
from cuggino.operators import Flow, ask, emit, flow

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

_LISTED = (
    _ISSUE
    + """
query($owner: String!, $name: String!, $labels: [String!], $after: String) {
  viewer { login }
  repository(owner: $owner, name: $name) {
    issues(states: OPEN, labels: $labels, first: 50, after: $after,
           orderBy: {field: CREATED_AT, direction: ASC}) {
      nodes { ...issue } pageInfo { hasNextPage endCursor }
    }
  }
}
"""
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

_ONE = (
    _ISSUE
    + """
query($owner: String!, $name: String!, $number: Int!) {
  viewer { login }
  repository(owner: $owner, name: $name) { issue(number: $number) { ...issue } }
}
"""
)

_OF_BRANCH = """
query($owner: String!, $name: String!, $branch: String!) {
  repository(owner: $owner, name: $name) {
    pullRequests(headRefName: $branch, first: 20,
                 orderBy: {field: CREATED_AT, direction: DESC}) {
      nodes { number isCrossRepository }
    }
  }
}
"""

_PULL_REQUEST = """
fragment remark on Comment {
  id body createdAt authorAssociation viewerDidAuthor author { login }
}
query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      number url state headRefName headRefOid baseRefName body isDraft mergeable
      isInMergeQueue mergeCommit { oid } autoMergeRequest { enabledAt }
      commits(last: 1) { nodes { commit { oid statusCheckRollup { contexts(first: 100) {
        nodes {
          __typename
          ... on CheckRun { databaseId name status conclusion detailsUrl }
          ... on StatusContext { context state targetUrl }
        }
      } } } } }
      comments(last: 100) { nodes { ...remark } }
      reviews(last: 100) { nodes { ...remark state } }
      reviewThreads(last: 100) {
        nodes { isResolved path line comments(first: 50) { nodes { ...remark } } }
      }
    }
  }
}
"""

_MERGING = """
query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    viewerDefaultMergeMethod autoMergeAllowed
    pullRequest(number: $number) {
      id state headRefOid mergeStateStatus isInMergeQueue isMergeQueueEnabled
      autoMergeRequest { enabledAt }
    }
  }
}
"""

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

_PASSED = ("SUCCESS",)
_SKIPPED = ("SKIPPED", "NEUTRAL", "STALE")
_ASSOCIATIONS = ("owner", "member", "collaborator")


class GitHub:
    """A repository on GitHub, or on a GitHub Enterprise server."""

    kind: ForgeKind = "github"

    def __init__(
        self,
        repo: str,
        *,
        host: str = "github.com",
        trust: Sequence[str] = _ASSOCIATIONS,
        label: str | None = None,
        api: Api | None = None,
    ) -> None:
        """Create a client; `trust` lists whose text counts: `owner` to `contributor`, or `anyone`.

        Anyone else's issue counts if a person with write access has set the `label`.
        """
        self.host = host
        self.repo = repo
        self._owner, _, self._name = repo.partition("/")
        self._label = label
        self._everyone = "anyone" in trust
        self._trusted = {name.upper() for name in trust}
        writes = {"MEMBER", "COLLABORATOR", "CONTRIBUTOR"} & self._trusted
        self._permissions = ("admin", "write") if writes else ("admin",)
        self._api = api or Api("github", host)
        self._rest = f"repos/{quote(self._owner)}/{quote(self._name)}"
        self._viewer = ""

    def viewer(self) -> Observable[str]:
        asked = self._api.graphql("{ viewer { login } }")
        return asked.pipe(ops.map(lambda data: shaped(data, lambda d: str(d["viewer"]["login"]))))

    def default_branch(self) -> Observable[str]:
        return self._api.get(self._rest).pipe(
            ops.map(lambda repo: shaped(repo, lambda r: str(r["default_branch"])))
        )

    def issues(self, *, label: str | None, query: str | None) -> Observable[Issue]:
        def story() -> Flow[None]:
            after: str | None = None
            data: dict[str, Any] | None
            while True:
                if query is None:
                    labels = [label] if label is not None else None
                    data = yield from self._ask(_LISTED, labels=labels, after=after)
                    page = shaped(data, lambda d: d["repository"]["issues"])
                else:
                    words = self._search(label, query)
                    data = yield from ask(self._api.graphql(_FOUND, query=words, after=after))
                    page = shaped(data, lambda d: d["search"])
                    if shaped(page, lambda p: p["issueCount"] > MOST_FOUND):
                        raise ForgeRefused(
                            f"the query finds more than {MOST_FOUND} issues, which GitHub does "
                            "not list",
                            hint="narrow the query, or use a label",
                        )
                viewer = shaped(data, lambda d: str(d["viewer"]["login"]))
                for node in shaped(page, lambda p: list(p["nodes"])):
                    if node and _is_in(node, self.repo):
                        yield from emit((yield from self._issue(node, viewer)))
                after = shaped(page, lambda p: _next(p["pageInfo"]))
                if after is None:
                    return

        return flow(story)

    def issue(self, number: int) -> Observable[Issue]:
        def story() -> Flow[None]:
            data = yield from self._ask(_ONE, number=number)
            node = shaped(data, lambda d: d["repository"]["issue"])
            if node is None:
                raise ForgeRefused(f"issue {number} does not exist", status=404)
            viewer = shaped(data, lambda d: str(d["viewer"]["login"]))
            yield from emit((yield from self._issue(node, viewer)))

        return flow(story)

    def comments(self, number: int) -> Observable[Comment]:
        def story() -> Flow[None]:
            viewer = yield from self._login()
            listed = yield from ask(
                self._api.pages(f"{self._rest}/issues/{number}/comments?per_page=100")
            )
            for entry in listed or []:
                yield from emit(shaped(entry, lambda e: self._comment(e, viewer)))

        return flow(story)

    def add_comment(self, number: int, body: str) -> Observable[Comment]:
        return self._written("POST", f"{number}/comments", body)

    def edit_comment(self, number: int, comment: str, body: str) -> Observable[Comment]:
        return self._written("PATCH", f"comments/{quote(comment)}", body)

    def delete_comment(self, number: int, comment: str) -> Observable[None]:
        path = f"{self._rest}/issues/comments/{quote(comment)}"
        return self._api.change("DELETE", path, missing=True)

    def change_labels(
        self, number: int, *, add: tuple[str, ...], remove: tuple[str, ...]
    ) -> Observable[None]:
        labels = f"{self._rest}/issues/{number}/labels"

        def story() -> Flow[None]:
            for name in remove:
                label = f"{labels}/{quote(name, safe='')}"
                yield from ask(self._api.change("DELETE", label, missing=True))
            if add:
                yield from ask(self._api.change("POST", labels, {"labels": list(add)}))

        return flow(story)

    def close_issue(self, number: int) -> Observable[None]:
        body = {"state": "closed", "state_reason": "completed"}
        return self._api.change("PATCH", f"{self._rest}/issues/{number}", body)

    def find_pull_request(self, branch: str) -> Observable[PullRequest]:
        def story() -> Flow[None]:
            data = yield from self._ask(_OF_BRANCH, branch=branch)
            nodes = shaped(data, lambda d: list(d["repository"]["pullRequests"]["nodes"]))
            # A fork may have a branch of the same name.
            own = [node["number"] for node in nodes if not node["isCrossRepository"]]
            if own:
                yield from emit((yield from ask(self.pull_request(own[0]))))

        return flow(story)

    def open_pull_request(
        self, *, branch: str, target: str, title: str, body: str, draft: bool = False
    ) -> Observable[PullRequest]:
        wanted = {"head": branch, "base": target, "title": title, "body": body, "draft": draft}

        def story() -> Flow[None]:
            try:
                opened = yield from ask(self._api.call("POST", f"{self._rest}/pulls", wanted))
            except ForgeRefused as error:
                if error.status != 422:
                    raise
                there = yield from ask(self.find_pull_request(branch))
                if there is None or there.state != "open":
                    raise
                yield from emit(there)
                return
            number = shaped(opened, lambda pull: int(pull["number"]))
            yield from emit((yield from ask(self.pull_request(number))))

        return flow(story)

    def edit_pull_request(self, number: int, *, title: str, body: str) -> Observable[None]:
        wanted = {"title": title, "body": body}
        return self._api.change("PATCH", f"{self._rest}/pulls/{number}", wanted)

    def pull_request(self, number: int) -> Observable[PullRequest]:
        def story() -> Flow[None]:
            data = yield from self._ask(_PULL_REQUEST, number=number)
            node = shaped(data, lambda d: d["repository"]["pullRequest"])
            if node is None:
                raise ForgeRefused(f"pull request {number} does not exist", status=404)
            yield from emit(shaped(node, self._pull_request))

        return flow(story)

    def log(self, job: Job) -> Observable[str]:
        if not job.id.isdigit():  # a check of another service
            return just("")
        return self._api.log(f"{self._rest}/actions/jobs/{job.id}/logs")

    def merge_when_allowed(self, number: int, *, head: str) -> Observable[None]:
        def story() -> Flow[None]:
            data = yield from self._ask(_MERGING, number=number)
            repo = shaped(data, lambda d: d["repository"])
            pull = shaped(repo, lambda r: r["pullRequest"])
            if pull["headRefOid"] != head:
                raise ForgeRefused(f"the head of pull request {number} has moved", status=409)
            is_under_way = pull["autoMergeRequest"] or pull["isInMergeQueue"]
            if pull["state"] != "OPEN" or is_under_way:
                return
            place = f"{self._rest}/pulls/{number}"
            of = {"id": pull["id"], "head": head}
            method = repo["viewerDefaultMergeMethod"]
            if pull["mergeStateStatus"] in ("CLEAN", "HAS_HOOKS"):
                if pull["isMergeQueueEnabled"]:
                    yield from ask(self._api.graphql(_ENQUEUE, **of))
                else:
                    body = {"sha": head, "merge_method": method.lower()}
                    yield from ask(self._api.change("PUT", f"{place}/merge", body))
            elif pull["mergeStateStatus"] == "BEHIND":  # which the forge would wait for, too
                body = {"expected_head_sha": head}
                yield from ask(self._api.change("PUT", f"{place}/update-branch", body))
            elif repo["autoMergeAllowed"]:
                yield from ask(self._api.graphql(_ENABLE, **of, method=method))
            else:
                raise ForgeRefused(
                    f"pull request {number} cannot be merged yet",
                    status=405,
                    hint=f"allow auto-merge in the settings of {self.repo}",
                )

        return flow(story)

    def _ask(self, query: str, **variables: Any) -> Flow[dict[str, Any]]:
        """Query the repository."""
        asked = self._api.graphql(query, owner=self._owner, name=self._name, **variables)
        data = yield from ask(asked)
        assert data is not None
        return data

    def _written(self, method: str, place: str, body: str) -> Observable[Comment]:
        def story() -> Flow[None]:
            viewer = yield from self._login()
            path = f"{self._rest}/issues/{place}"
            entry = yield from ask(self._api.call(method, path, {"body": body}))
            yield from emit(shaped(entry, lambda e: self._comment(e, viewer)))

        return flow(story)

    def _login(self) -> Flow[str]:
        """Return the name of the login, which is requested once."""
        if not self._viewer:
            self._viewer = (yield from ask(self.viewer())) or ""
        return self._viewer

    def _search(self, label: str | None, query: str) -> str:
        words = [f"repo:{self.repo}", "is:issue", "is:open", "sort:created-asc"]
        if label is not None:
            words.append('label:"{}"'.format(label.replace('"', "")))
        return " ".join([*words, query])

    def _issue(self, node: dict[str, Any], viewer: str) -> Flow[Issue]:
        """Return an issue after looking up who labeled and edited it."""
        author, associated = _login_of(node, "author"), node["authorAssociation"]
        known = {viewer: True, author: node["viewerDidAuthor"] or self._counts(associated)}
        events = shaped(node, lambda n: list(n["timelineItems"]["nodes"]))
        is_trusted, labeled_at = known[author], ""
        if not is_trusted and self._label in _labels(node):
            for event in reversed(events):
                if event["__typename"] == "LabeledEvent" and event["label"]["name"] == self._label:
                    is_trusted = yield from self._may_write(_login_of(event, "actor"), known)
                    labeled_at = event["createdAt"]
                    break
        edits = list(_edits(node, events))
        edit_is_trusted = True
        for at, login in edits:
            # Whoever set the label after the edit has seen the edit.
            if not (is_trusted and at < labeled_at):
                edit_is_trusted &= yield from self._may_write(login, known)
        return shaped(
            node,
            lambda n: Issue(
                number=n["number"],
                title=n["title"],
                body=n["body"] or "",
                url=n["url"],
                author=author,
                is_trusted=is_trusted,
                is_open=n["state"] == "OPEN",
                labels=_labels(n),
                edited_by=max(edits)[1] if edits else "",
                edit_is_trusted=edit_is_trusted,
            ),
        )

    def _may_write(self, login: str, known: dict[str, bool]) -> Flow[bool]:
        """Return whether a person's text counts, by their permission on the repository."""
        if self._everyone:
            return True
        if login not in known:
            known[login] = False
            if login:
                place = f"{self._rest}/collaborators/{quote(login)}/permission"
                try:
                    found = yield from ask(self._api.get(place))
                except ForgeRefused:  # unknown to the repository, such as a bot
                    found = None
                known[login] = (found or {}).get("permission") in self._permissions
        return known[login]

    def _counts(self, association: str) -> bool:
        return self._everyone or association in self._trusted

    def _comment(self, entry: dict[str, Any], viewer: str) -> Comment:
        author = (entry["user"] or {}).get("login", "")
        is_mine = _plain(author) == _plain(viewer)
        return Comment(
            id=str(entry["id"]),
            body=entry["body"] or "",
            author=author,
            is_mine=is_mine,
            is_trusted=is_mine or self._counts(entry["author_association"]),
            at=moment(entry["created_at"]),
            edited_at=moment(entry["updated_at"]) if entry.get("updated_at") else None,
            url=entry["html_url"],
        )

    def _pull_request(self, node: dict[str, Any]) -> PullRequest:
        states: dict[str, Literal["open", "merged", "closed"]] = {
            "OPEN": "open",
            "MERGED": "merged",
            "CLOSED": "closed",
        }
        return PullRequest(
            number=node["number"],
            url=node["url"],
            state=states[node["state"]],
            branch=node["headRefName"],
            target=node["baseRefName"],
            head=node["headRefOid"],
            body=node["body"] or "",
            merged_as=(node["mergeCommit"] or {}).get("oid", ""),
            is_draft=node["isDraft"],
            is_queued=bool(node["autoMergeRequest"]) or bool(node["isInMergeQueue"]),
            conflicts={"CONFLICTING": True, "MERGEABLE": False}.get(node["mergeable"]),
            jobs=tuple(_jobs(node)),
            remarks=tuple(sorted(self._remarks(node), key=lambda remark: remark.at)),
        )

    def _remarks(self, node: dict[str, Any]) -> Iterator[Remark]:
        for comment in node["comments"]["nodes"]:
            yield self._remark(comment)
        reviews = node["reviews"]["nodes"]
        opinions = {
            _login_of(review, "author"): review["id"]
            for review in reviews
            if review["state"] in ("APPROVED", "CHANGES_REQUESTED", "DISMISSED")
        }
        for review in reviews:
            asks = review["state"] == "CHANGES_REQUESTED"
            asks &= opinions.get(_login_of(review, "author")) == review["id"]
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
            author=_login_of(node, "author"),
            is_mine=node["viewerDidAuthor"],
            is_trusted=node["viewerDidAuthor"] or self._counts(node["authorAssociation"]),
            body=node["body"] or "",
            at=moment(node["createdAt"]),
            asks_for_changes=asks,
            path=path,
            line=line,
        )


def _jobs(node: dict[str, Any]) -> Iterator[Job]:
    """Yield the jobs of the head; none while the forge lists those of another commit."""
    for commit in (entry["commit"] for entry in node["commits"]["nodes"]):
        if commit["oid"] != node["headRefOid"] or not commit["statusCheckRollup"]:
            continue
        for context in commit["statusCheckRollup"]["contexts"]["nodes"]:
            if context["__typename"] == "CheckRun":
                yield Job(
                    id=str(context["databaseId"]),
                    name=context["name"],
                    state=_state(context["conclusion"]),
                    url=context["detailsUrl"] or "",
                )
            else:
                state = context["state"]
                yield Job(
                    id=f"status:{context['context']}",
                    name=context["context"],
                    state=_state(None if state in ("PENDING", "EXPECTED") else state),
                    url=context["targetUrl"] or "",
                )


def _state(conclusion: str | None) -> Literal["pending", "passed", "failed", "skipped"]:
    if conclusion is None:
        return "pending"
    if conclusion in _PASSED:
        return "passed"
    return "skipped" if conclusion in _SKIPPED else "failed"


def _edits(node: dict[str, Any], events: Iterable[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the time and author of the last edit of the body and of the title."""
    if node["lastEditedAt"]:
        yield node["lastEditedAt"], _login_of(node, "editor")
    renamed = [event for event in events if event["__typename"] == "RenamedTitleEvent"]
    for event in renamed[-1:]:
        yield event["createdAt"], _login_of(event, "actor")


def _labels(node: dict[str, Any]) -> tuple[str, ...]:
    return tuple(label["name"] for label in node["labels"]["nodes"])


def _login_of(node: dict[str, Any], key: str) -> str:
    """Return a login, or "" for a deleted account."""
    return str((node[key] or {}).get("login", ""))


def _is_in(node: dict[str, Any], repo: str) -> bool:
    """Return whether an issue found by a search belongs to this repository."""
    place = (node.get("repository") or {}).get("nameWithOwner", repo)
    return bool(place.lower() == repo.lower())


def _next(page: dict[str, Any]) -> str | None:
    return page["endCursor"] if page["hasNextPage"] else None


def _plain(login: str) -> str:
    """Normalize a login, which the two APIs spell differently."""
    return login.removesuffix("[bot]").lower()
