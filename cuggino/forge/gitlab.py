"""GitLab by its REST API, version 4."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal
from urllib.parse import quote, urlencode

from reactivex import Observable, operators as ops

from cuggino.config import ForgeKind
from cuggino.errors import ForgeLoginMissing, ForgeRefused
from cuggino.forge.api import Api, moment, shaped
from cuggino.forge.model import Comment, Issue, Job, PullRequest, Remark
from cuggino.operators import Flow, ask, emit, flow

_LEVELS = {"owner": 50, "member": 30, "collaborator": 30, "contributor": 20, "anyone": 0}
"""Access levels: owner, developer, developer, reporter."""
_ASSOCIATIONS = ("owner", "member", "collaborator")
_EDITS = ("changed the description", "changed title")
_PENDING = (
    *("created", "waiting_for_resource", "preparing", "pending", "running", "scheduled"),
    *("waiting_for_callback", "canceling"),
)


class GitLab:
    """A project on gitlab.com, or on another server."""

    kind: ForgeKind = "gitlab"

    def __init__(
        self,
        repo: str,
        *,
        host: str = "gitlab.com",
        trust: Sequence[str] = _ASSOCIATIONS,
        label: str | None = None,
        api: Api | None = None,
    ) -> None:
        """Create a client; `trust` lists whose text counts: `owner` to `contributor`, or `anyone`.

        Anyone else's issue counts if a person in `trust` has set the `label`.
        """
        self.host = host
        self.repo = repo
        self._label = label
        self._level = min((_LEVELS[name] for name in trust), default=100)
        self._api = api or Api("gitlab", host)
        self._rest = f"projects/{quote(repo, safe='')}"
        self._viewer = ""
        self._read: dict[int, tuple[str, Issue]] = {}
        """Issues as they were at their last change."""

    def viewer(self) -> Observable[str]:
        return self._api.get("user").pipe(
            ops.map(lambda user: shaped(user, lambda u: str(u["username"])))
        )

    def default_branch(self) -> Observable[str]:
        return self._api.get(self._rest).pipe(
            ops.map(lambda project: shaped(project, lambda p: str(p["default_branch"])))
        )

    def issues(self, *, label: str | None, query: str | None) -> Observable[Issue]:
        wanted = {"state": "opened", "order_by": "created_at", "sort": "asc", "per_page": "100"}
        if label is not None:
            wanted["labels"] = label
        if query is not None:
            wanted["search"] = query

        def story() -> Flow[None]:
            known = yield from self._known()
            listed = yield from ask(self._api.pages(f"{self._rest}/issues?{urlencode(wanted)}"))
            for entry in listed or []:
                yield from emit((yield from self._issue(entry, known)))

        return flow(story)

    def issue(self, number: int) -> Observable[Issue]:
        def story() -> Flow[None]:
            known = yield from self._known()
            entry = yield from ask(self._api.get(f"{self._rest}/issues/{number}"))
            yield from emit((yield from self._issue(entry, known)))

        return flow(story)

    def comments(self, number: int) -> Observable[Comment]:
        place = f"issues/{number}/notes?sort=asc&order_by=created_at&per_page=100"

        def story() -> Flow[None]:
            known = yield from self._known()
            listed = yield from ask(self._api.pages(f"{self._rest}/{place}"))
            for note in listed or []:
                if not note.get("system"):
                    yield from emit((yield from self._comment(note, number, known)))

        return flow(story)

    def add_comment(self, number: int, body: str) -> Observable[Comment]:
        return self._written("POST", number, "notes", body)

    def edit_comment(self, number: int, comment: str, body: str) -> Observable[Comment]:
        return self._written("PUT", number, f"notes/{quote(comment)}", body)

    def delete_comment(self, number: int, comment: str) -> Observable[None]:
        path = f"{self._rest}/issues/{number}/notes/{quote(comment)}"
        return self._api.change("DELETE", path, missing=True)

    def change_labels(
        self, number: int, *, add: tuple[str, ...], remove: tuple[str, ...]
    ) -> Observable[None]:
        labels = {"add_labels": ",".join(add), "remove_labels": ",".join(remove)}
        body = {key: names for key, names in labels.items() if names}
        return self._api.change("PUT", f"{self._rest}/issues/{number}", body)

    def close_issue(self, number: int) -> Observable[None]:
        return self._api.change("PUT", f"{self._rest}/issues/{number}", {"state_event": "close"})

    def find_pull_request(self, branch: str) -> Observable[PullRequest]:
        wanted = {
            "source_branch": branch,
            "state": "all",
            "order_by": "created_at",
            "sort": "desc",
            "per_page": "20",
        }

        def story() -> Flow[None]:
            listed = yield from ask(
                self._api.get(f"{self._rest}/merge_requests?{urlencode(wanted)}")
            )
            for entry in shaped(listed, list):
                if entry["source_project_id"] == entry["target_project_id"]:  # not of a fork
                    yield from emit((yield from ask(self.pull_request(entry["iid"]))))
                    return

        return flow(story)

    def open_pull_request(
        self, *, branch: str, target: str, title: str, body: str, draft: bool = False
    ) -> Observable[PullRequest]:
        wanted = {
            "source_branch": branch,
            "target_branch": target,
            "title": f"Draft: {title}" if draft else title,
            "description": body,
        }

        def story() -> Flow[None]:
            try:
                opened = yield from ask(
                    self._api.call("POST", f"{self._rest}/merge_requests", wanted)
                )
            except ForgeRefused as error:
                if error.status not in (409, 422):
                    raise
                there = yield from ask(self.find_pull_request(branch))
                if there is None or there.state != "open":
                    raise
                yield from emit(there)
                return
            number = shaped(opened, lambda merge: int(merge["iid"]))
            yield from emit((yield from ask(self.pull_request(number))))

        return flow(story)

    def edit_pull_request(self, number: int, *, title: str, body: str) -> Observable[None]:
        place = f"{self._rest}/merge_requests/{number}"

        def story() -> Flow[None]:
            merge = yield from ask(self._api.get(place))
            is_draft = shaped(merge, lambda m: bool(m["draft"]))
            wanted = {"title": f"Draft: {title}" if is_draft else title, "description": body}
            yield from ask(self._api.change("PUT", place, wanted))

        return flow(story)

    def pull_request(self, number: int) -> Observable[PullRequest]:
        place = f"{self._rest}/merge_requests/{number}"

        def story() -> Flow[None]:
            known = yield from self._known()
            merge = yield from ask(self._api.get(place))
            jobs: list[Any] | None = []
            if (pipeline := shaped(merge, _pipeline)) is not None:
                jobs = yield from ask(
                    self._api.pages(f"{self._rest}/pipelines/{pipeline}/jobs?per_page=100")
                )
            discussions = yield from ask(self._api.pages(f"{place}/discussions?per_page=100"))
            remarks: list[Remark] = []
            for note in shaped(discussions, lambda listed: list(_notes(listed))):
                remarks.append((yield from self._remark(note, known)))
            yield from emit(shaped(merge, lambda m: _pull_request(m, jobs or [], remarks)))

        return flow(story)

    def log(self, job: Job) -> Observable[str]:
        return self._api.log(f"{self._rest}/jobs/{quote(job.id)}/trace")

    def merge_when_allowed(self, number: int, *, head: str) -> Observable[None]:
        place = f"{self._rest}/merge_requests/{number}"

        def story() -> Flow[None]:
            merge: Any = yield from ask(self._api.get(place))
            if shaped(merge, lambda m: m["sha"]) != head:
                raise ForgeRefused(f"the head of merge request {number} has moved", status=409)
            if merge["state"] != "opened" or merge["merge_when_pipeline_succeeds"]:
                return
            body = {"sha": head, "merge_when_pipeline_succeeds": True}
            try:
                yield from ask(self._api.call("PUT", f"{place}/merge", body))
            except ForgeLoginMissing as error:  # its answer to a login that may not merge
                raise ForgeRefused(error.message, status=401) from error

        return flow(story)

    def _written(self, method: str, number: int, place: str, body: str) -> Observable[Comment]:
        def story() -> Flow[None]:
            known = yield from self._known()
            path = f"{self._rest}/issues/{number}/{place}"
            note = yield from ask(self._api.call(method, path, {"body": body}))
            yield from emit((yield from self._comment(note, number, known)))

        return flow(story)

    def _known(self) -> Flow[dict[str, bool]]:
        """Return the users known to be trusted: this login, which is requested once."""
        if not self._viewer:
            self._viewer = (yield from ask(self.viewer())) or ""
        return {self._viewer: True}

    def _counts(self, user: dict[str, Any] | None, known: dict[str, bool]) -> Flow[bool]:
        """Return whether a person's text counts, by their access level in the project."""
        if not self._level:
            return True
        if user is None:
            return False
        name = shaped(user, lambda u: str(u["username"]))
        if name not in known:
            try:
                member = yield from ask(
                    self._api.get(f"{self._rest}/members/all/{int(user['id'])}")
                )
            except ForgeRefused as error:
                if error.status != 404:
                    raise
                member = None
            known[name] = (member or {}).get("access_level", 0) >= self._level
        return known[name]

    def _issue(self, entry: Any, known: dict[str, bool]) -> Flow[Issue]:
        """Return an issue after looking up who labeled and edited it."""
        number = shaped(entry, lambda e: int(e["iid"]))
        version = f"{entry.get('updated_at')} {entry['state']}"
        if number in self._read and self._read[number][0] == version:
            return self._read[number][1]
        labels = shaped(entry, lambda e: tuple(e["labels"]))
        is_trusted = yield from self._counts(entry["author"], known)
        labeled_at = ""
        if not is_trusted and self._label in labels:
            events = yield from ask(
                self._api.pages(f"{self._rest}/issues/{number}/resource_label_events?per_page=100")
            )
            for event in reversed(events or []):
                name = (event.get("label") or {}).get("name")
                if name == self._label and event["action"] == "add":
                    is_trusted = yield from self._counts(event["user"], known)
                    labeled_at = event["created_at"]
                    break
        edits = yield from self._edits(number)
        edit_is_trusted = True
        for note in edits:
            if not (is_trusted and note["created_at"] < labeled_at):
                edit_is_trusted &= yield from self._counts(note["author"], known)
        issue = shaped(
            entry,
            lambda e: Issue(
                number=number,
                title=e["title"],
                body=e["description"] or "",
                url=e["web_url"],
                author=_name(e["author"]),
                is_trusted=is_trusted,
                is_open=e["state"] == "opened",
                labels=labels,
                edited_by=_name(edits[-1]["author"]) if edits else "",
                edit_is_trusted=edit_is_trusted,
            ),
        )
        self._read[number] = version, issue
        return issue

    def _edits(self, number: int) -> Flow[list[dict[str, Any]]]:
        """Return the notes about the last edit of title and of description, oldest first."""
        notes = yield from ask(
            self._api.pages(
                f"{self._rest}/issues/{number}/notes?activity_filter=only_activity"
                "&sort=asc&order_by=created_at&per_page=100"
            )
        )
        last = {
            kind: note
            for note in notes or []
            for kind in _EDITS
            if note.get("system") and note["body"].startswith(kind)
        }
        return sorted(last.values(), key=lambda note: str(note["created_at"]))

    def _comment(self, note: Any, number: int, known: dict[str, bool]) -> Flow[Comment]:
        is_trusted = yield from self._counts(shaped(note, lambda n: n["author"]), known)
        base = f"https://{self.host}/{self.repo}/-/issues/{number}"
        return shaped(
            note,
            lambda n: Comment(
                id=str(n["id"]),
                body=n["body"] or "",
                author=_name(n["author"]),
                is_mine=_name(n["author"]) == self._viewer,
                is_trusted=is_trusted,
                at=moment(n["created_at"]),
                edited_at=moment(n["updated_at"]) if n.get("updated_at") else None,
                url=f"{base}#note_{n['id']}",
            ),
        )

    def _remark(self, note: dict[str, Any], known: dict[str, bool]) -> Flow[Remark]:
        is_trusted = yield from self._counts(note["author"], known)
        position = note.get("position") or {}
        return shaped(
            note,
            lambda n: Remark(
                id=str(n["id"]),
                author=_name(n["author"]),
                is_mine=_name(n["author"]) == self._viewer,
                is_trusted=is_trusted,
                body=n["body"] or "",
                at=moment(n["created_at"]),
                asks_for_changes=bool(n.get("resolvable")),
                path=position.get("new_path") or "",
                line=position.get("new_line"),
            ),
        )


def _notes(discussions: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield people's unresolved notes, without system notes."""
    for discussion in discussions:
        for note in discussion["notes"]:
            if not (note.get("system") or (note.get("resolvable") and note.get("resolved"))):
                yield note


def _pipeline(merge: dict[str, Any]) -> int | None:
    """Return the id of the head's pipeline; None while only an older one exists."""
    pipeline = merge["head_pipeline"]
    if pipeline is None:
        return None
    of_merge = str(pipeline.get("ref", "")).startswith("refs/merge-requests/")
    return int(pipeline["id"]) if of_merge or pipeline["sha"] == merge["sha"] else None


def _pull_request(merge: dict[str, Any], jobs: list[Any], remarks: list[Remark]) -> PullRequest:
    states: dict[str, Literal["open", "merged", "closed"]] = {
        "opened": "open",
        "locked": "open",  # while it is merged
        "merged": "merged",
        "closed": "closed",
    }
    is_known = merge.get("merge_status") in ("can_be_merged", "cannot_be_merged")
    return PullRequest(
        number=merge["iid"],
        url=merge["web_url"],
        state=states[merge["state"]],
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


def _job(job: dict[str, Any]) -> Job:
    status, may_fail = job["status"], job.get("allow_failure", False)
    state: Literal["pending", "passed", "failed", "skipped"] = "skipped"  # manual ones, too
    if status in _PENDING:
        state = "pending"
    elif status == "success":
        state = "passed"
    elif status in ("failed", "canceled") and not may_fail:
        state = "failed"
    return Job(
        id=str(job["id"]),
        name=job["name"],
        state=state,
        url=job.get("web_url") or "",
    )


def _name(user: dict[str, Any] | None) -> str:
    """Return the name of a user, or "" for a deleted account."""
    return str((user or {}).get("username", ""))
