"""GitLab by its REST API, version 4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

from cuggino.config import ForgeKind
from cuggino.errors import ForgeLoginMissing, ForgeRefused
from cuggino.forge.api import Api, emits, emits_each, moment
from cuggino.forge.model import Issue, Job, JobState, PullRequest, Remark
from cuggino.forge.rest import ASSOCIATIONS, PULL_STATES, Act, RestForge, Routes
from cuggino.operators import Flow, ask

_LEVELS = {"owner": 50, "member": 30, "collaborator": 30, "contributor": 20, "anyone": 0}
"""Access levels: owner, developer, developer, reporter."""
_HIGHEST = 100
_EDITS = ("changed the description", "changed title")
_PENDING = (
    *("created", "waiting_for_resource", "preparing", "pending", "running", "scheduled"),
    *("waiting_for_callback", "canceling"),
)


class GitLab(RestForge):
    """A project on gitlab.com, or on another server."""

    kind: ForgeKind = "gitlab"
    routes = Routes(
        repository=lambda repo: f"projects/{quote(repo, safe='')}",
        comments="issues/{number}/notes",
        listing="sort=asc&order_by=created_at&per_page=100",
        comment="issues/{number}/notes/{comment}",
        author="author",
        user="username",
        edit="PUT",
        closing={"state_event": "close"},
        pulls="merge_requests",
        number="iid",
        exists=(409, 422),
        log="jobs/{job}/trace",
        member="members/all/{id}",
        role="access_level",
        is_stranger=lambda status: status == 404,
    )

    def __init__(
        self,
        repo: str,
        *,
        host: str = "gitlab.com",
        trust: Sequence[str] = ASSOCIATIONS,
        label: str | None = None,
        api: Api | None = None,
    ) -> None:
        """Create a client; `trust` lists whose text counts: `owner` to `contributor`, or `anyone`.

        Anyone else's issue counts if a person in `trust` has set the `label`.
        """
        least = min((_LEVELS[name] for name in trust), default=_HIGHEST)
        roles = range(least, _HIGHEST)
        super().__init__(repo, host=host, roles=roles, trust=trust, label=label, api=api)
        self._read: dict[int, tuple[str, Issue]] = {}
        """Issues as they were at their last change."""

    @emits
    def viewer(self) -> Flow[str]:
        user: Any = yield from ask(self._api.get("user"))
        return str(user["username"])

    @emits_each
    def issues(self, *, label: str | None, query: str | None) -> Flow[list[Issue]]:
        wanted = {"state": "opened", "order_by": "created_at", "sort": "asc", "per_page": "100"}
        wanted |= {"labels": label} if label is not None else {}
        wanted |= {"search": query} if query is not None else {}
        known = yield from self._known()
        issues = []
        for entry in (yield from self._pages(f"issues?{urlencode(wanted)}")):
            issues.append((yield from self._issue(entry, known)))
        return issues

    @emits
    def issue(self, number: int) -> Flow[Issue]:
        known = yield from self._known()
        entry = yield from ask(self._api.get(self._path(f"issues/{number}")))
        return (yield from self._issue(entry, known))

    @emits
    def change_labels(
        self, number: int, *, add: tuple[str, ...], remove: tuple[str, ...]
    ) -> Flow[None]:
        labels = {"add_labels": ",".join(add), "remove_labels": ",".join(remove)}
        body = {key: names for key, names in labels.items() if names}
        yield from ask(self._api.change("PUT", self._path(f"issues/{number}"), body))

    @emits
    def edit_pull_request(self, number: int, *, title: str, body: str) -> Flow[None]:
        place = self._path(f"merge_requests/{number}")
        merge: Any = yield from ask(self._api.get(place))
        wanted = {"title": _title(title, draft=merge["draft"]), "description": body}
        yield from ask(self._api.change("PUT", place, wanted))

    @emits
    def pull_request(self, number: int) -> Flow[PullRequest]:
        known = yield from self._known()
        merge: Any = yield from ask(self._api.get(self._path(f"merge_requests/{number}")))
        jobs: list[Any] = []
        if (pipeline := _pipeline(merge)) is not None:
            jobs = yield from self._pages(f"pipelines/{pipeline}/jobs?per_page=100")
        remarks = []
        threads = yield from self._pages(f"merge_requests/{number}/discussions?per_page=100")
        for note in (note for thread in threads for note in thread["notes"]):
            # Without system notes and resolved ones.
            if not (note.get("system") or (note.get("resolvable") and note.get("resolved"))):
                remarks.append((yield from self._remark(note, known)))
        is_known = merge.get("merge_status") in ("can_be_merged", "cannot_be_merged")
        return PullRequest(
            number=merge["iid"],
            url=merge["web_url"],
            state=PULL_STATES[merge["state"]],
            branch=merge["source_branch"],
            target=merge["target_branch"],
            head=merge["sha"] or "",
            body=merge["description"] or "",
            merged_as=merge["merge_commit_sha"] or merge.get("squash_commit_sha") or "",
            is_draft=merge["draft"],
            is_queued=merge["merge_when_pipeline_succeeds"] and merge["state"] == "opened",
            conflicts=merge["has_conflicts"] if is_known else None,
            jobs=tuple(map(_job, jobs)),
            remarks=tuple(sorted(remarks, key=lambda remark: remark.at)),
        )

    @emits_each
    def jobs(self, commit: str) -> Flow[list[Job]]:
        path = f"repository/commits/{quote(commit, safe='')}/statuses?per_page=100"
        return [_job(job) for job in (yield from self._pages(path))]

    @emits
    def merge_when_allowed(self, number: int, *, head: str) -> Flow[None]:
        place = self._path(f"merge_requests/{number}")
        merge: Any = yield from ask(self._api.get(place))
        if merge["sha"] != head:
            raise ForgeRefused(f"the head of merge request {number} has moved", status=409)
        if merge["state"] != "opened" or merge["merge_when_pipeline_succeeds"]:
            return
        body = {"sha": head, "merge_when_pipeline_succeeds": True}
        try:
            yield from ask(self._api.call("PUT", f"{place}/merge", body))
        except ForgeLoginMissing as error:  # its answer to a login that may not merge
            raise ForgeRefused(error.message, status=401) from error

    def _pages(self, path: str) -> Flow[list[Any]]:
        return (yield from ask(self._api.pages(f"{self._rest}/{path}"))) or []

    def _wanted(self, branch: str, target: str, title: str, body: str, *, draft: bool) -> Any:
        return {
            "source_branch": branch,
            "target_branch": target,
            "title": _title(title, draft=draft),
            "description": body,
        }

    def _number_of(self, branch: str) -> Flow[int | None]:
        wanted = {"source_branch": branch, "state": "all"}
        wanted |= {"order_by": "created_at", "sort": "desc", "per_page": "20"}
        path = self._path(f"merge_requests?{urlencode(wanted)}")
        for merge in (yield from ask(self._api.get(path))) or ():
            if merge["source_project_id"] == merge["target_project_id"]:  # not of a fork
                return int(merge["iid"])
        return None

    def _issue(self, entry: Any, known: dict[str, bool]) -> Flow[Issue]:
        number = int(entry["iid"])
        version = f"{entry.get('updated_at')} {entry['state']}"
        if number in self._read and self._read[number][0] == version:
            return self._read[number][1]
        issue = Issue(
            number=number,
            title=entry["title"],
            body=entry["description"] or "",
            url=entry["web_url"],
            author=self._name(entry["author"]),
            is_trusted=(yield from self._counts(entry["author"], known)),
            is_open=entry["state"] == "opened",
            labels=tuple(entry["labels"]),
        )
        labeled = []
        if not issue.is_trusted and self._label in issue.labels:
            labeled = yield from self._labeled(number)
        edits = yield from self._edits(number)
        issue = yield from self._judged(issue, known, labeled=labeled, edits=edits)
        self._read[number] = version, issue
        return issue

    def _labeled(self, number: int) -> Flow[list[Act]]:
        """Return who set the label, oldest first."""
        path = f"issues/{number}/resource_label_events?per_page=100"
        return [
            (event["created_at"], event["user"])
            for event in (yield from self._pages(path))
            if (event.get("label") or {}).get("name") == self._label and event["action"] == "add"
        ]

    def _edits(self, number: int) -> Flow[list[Act]]:
        """Return the last edit of title and of description."""
        path = f"issues/{number}/notes?activity_filter=only_activity&{self.routes.listing}"
        last: dict[str, Act] = {}
        for note in (yield from self._pages(path)):
            for kind in _EDITS:
                if note.get("system") and note["body"].startswith(kind):
                    last[kind] = note["created_at"], note["author"]
        return [*last.values()]

    def _page(self, entry: Any, number: int) -> str:
        return f"https://{self.host}/{self.repo}/-/issues/{number}#note_{entry['id']}"

    def _remark(self, note: dict[str, Any], known: dict[str, bool]) -> Flow[Remark]:
        position = note.get("position") or {}
        return Remark(
            id=str(note["id"]),
            author=self._name(note["author"]),
            is_mine=self._name(note["author"]) == self._viewer,
            is_trusted=(yield from self._counts(note["author"], known)),
            body=note["body"] or "",
            at=moment(note["created_at"]),
            asks_for_changes=bool(note.get("resolvable")),
            path=position.get("new_path") or "",
            line=position.get("new_line"),
        )


def _title(title: str, *, draft: bool) -> str:
    return f"Draft: {title}" if draft else title


def _pipeline(merge: dict[str, Any]) -> int | None:
    """Return the id of the head's pipeline; None while only an older one exists."""
    pipeline = merge["head_pipeline"]
    if pipeline is None:
        return None
    of_merge = str(pipeline.get("ref", "")).startswith("refs/merge-requests/")
    return int(pipeline["id"]) if of_merge or pipeline["sha"] == merge["sha"] else None


def _job(job: dict[str, Any]) -> Job:
    status, may_fail = job["status"], job.get("allow_failure", False)
    state: JobState = "skipped"  # manual ones, too
    if status in _PENDING:
        state = "pending"
    elif status == "success":
        state = "passed"
    elif status in ("failed", "canceled") and not may_fail:
        state = "failed"
    url = job.get("web_url") or job.get("target_url") or ""
    return Job(id=str(job["id"]), name=job["name"], state=state, url=url)
