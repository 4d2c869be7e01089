"""The calls that GitHub and GitLab share; what differs in a route or a field's name is data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias
from urllib.parse import quote

from reactivex import Observable

from cuggino.config import ForgeKind
from cuggino.errors import ForgeRefused
from cuggino.forge.api import Api, emits, emits_each, moment
from cuggino.forge.model import Comment, Issue, Job, PullRequest
from cuggino.operators import Flow, ask

ASSOCIATIONS = ("owner", "member", "collaborator")
"""Whose text counts by default."""

PULL_STATES: Mapping[str, Literal["open", "merged", "closed"]] = {
    "open": "open",
    "opened": "open",
    "locked": "open",  # GitLab, while it is merged
    "merged": "merged",
    "closed": "closed",
}

User: TypeAlias = Mapping[str, Any] | None
"""A user in a response; None for a deleted account."""
Act: TypeAlias = tuple[str, User]
"""The time of a change, and who made it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """The REST API of a kind of forge: paths below the repository's, names of fields, values."""

    repository: Callable[[str], str]
    """Return the path of a repository by its name."""
    comments: str
    listing: str
    """The query that lists comments, oldest first."""
    comment: str
    author: str
    """The field of a comment that has its author."""
    user: str
    """The field of a user that has the login."""
    edit: str
    """The method that changes a resource."""
    closing: Mapping[str, str]
    """The fields that close an issue."""
    pulls: str
    number: str
    exists: Container[int | None]
    """Statuses that refuse a second pull request for a branch."""
    log: str
    """The log of a job."""
    member: str
    """A person in the repository, by the fields of a user."""
    role: str
    """The field of a member that `RestForge` compares with the trusted roles."""
    is_stranger: Callable[[int | None], bool]
    """Return whether a status means that a person is unknown to the repository."""


class RestForge(ABC):
    """A repository of a forge with a REST API."""

    kind: ForgeKind
    routes: ClassVar[Routes]

    def __init__(
        self,
        repo: str,
        *,
        host: str,
        roles: Container[Any],
        trust: Sequence[str],
        label: str | None,
        api: Api | None,
    ) -> None:
        """Create a client; members in one of the `roles` count if they label or edit an issue."""
        self.host = host
        self.repo = repo
        self._label = label
        self._roles = roles
        self._everyone = "anyone" in trust
        self._api = api or Api(self.kind, host)
        self._rest = self.routes.repository(repo)
        self._viewer = ""

    # -- what each kind of forge does in its own way

    @abstractmethod
    def viewer(self) -> Observable[str]: ...

    @abstractmethod
    def pull_request(self, number: int) -> Observable[PullRequest]: ...

    @abstractmethod
    def _wanted(self, branch: str, target: str, title: str, body: str, *, draft: bool) -> Any:
        """Return the body of the request that opens a pull request."""

    @abstractmethod
    def _number_of(self, branch: str) -> Flow[int | None]:
        """Return the number of the newest pull request of a branch of the repository, if any."""

    def _association(self, entry: Any) -> bool | None:
        """Return whether the author of a comment counts, as far as the comment says so."""
        return None

    @abstractmethod
    def _page(self, entry: Any, number: int) -> str:
        """Return the URL of a comment."""

    # -- the calls

    @emits
    def default_branch(self) -> Flow[str]:
        repository: Any = yield from ask(self._api.get(self._rest))
        return str(repository["default_branch"])

    @emits_each
    def comments(self, number: int) -> Flow[list[Comment]]:
        known = yield from self._known()
        path = f"{self._path(self.routes.comments, number=number)}?{self.routes.listing}"
        entries = yield from ask(self._api.pages(path))
        comments = []
        for entry in entries or ():
            if not entry.get("system"):
                comments.append((yield from self._comment(entry, number, known)))
        return comments

    def add_comment(self, number: int, body: str) -> Observable[Comment]:
        return self._written("POST", self.routes.comments, number, "", body)

    def edit_comment(self, number: int, comment: str, body: str) -> Observable[Comment]:
        return self._written(self.routes.edit, self.routes.comment, number, comment, body)

    def delete_comment(self, number: int, comment: str) -> Observable[None]:
        path = self._path(self.routes.comment, number=number, comment=comment)
        return self._api.change("DELETE", path, missing=True)

    def close_issue(self, number: int) -> Observable[None]:
        path = f"{self._rest}/issues/{number}"
        return self._api.change(self.routes.edit, path, self.routes.closing)

    @emits
    def find_pull_request(self, branch: str) -> Flow[PullRequest | None]:
        number = yield from self._number_of(branch)
        return None if number is None else (yield from ask(self.pull_request(number)))

    @emits
    def open_pull_request(
        self, *, branch: str, target: str, title: str, body: str, draft: bool = False
    ) -> Flow[PullRequest | None]:
        wanted = self._wanted(branch, target, title, body, draft=draft)
        try:
            opened: Any = yield from ask(
                self._api.call("POST", self._path(self.routes.pulls), wanted)
            )
        except ForgeRefused as error:
            if error.status not in self.routes.exists:
                raise
            there = yield from ask(self.find_pull_request(branch))
            if there is None or there.state != "open":
                raise
            return there
        return (yield from ask(self.pull_request(int(opened[self.routes.number]))))

    @emits
    def log(self, job: Job) -> Flow[str | None]:
        if not job.id.isdigit():  # a check of another service
            return ""
        return (yield from ask(self._api.log(self._path(self.routes.log, job=job.id))))

    # -- what the kinds share

    def _path(self, route: str, /, **fields: object) -> str:
        quoted = {name: quote(str(value), safe="") for name, value in fields.items()}
        return f"{self._rest}/{route.format(**quoted)}"

    @emits
    def _written(
        self, method: str, route: str, number: int, comment: str, body: str
    ) -> Flow[Comment]:
        known = yield from self._known()
        path = self._path(route, number=number, comment=comment)
        entry = yield from ask(self._api.call(method, path, {"body": body}))
        return (yield from self._comment(entry, number, known))

    def _known(self) -> Flow[dict[str, bool]]:
        """Return the users known to be trusted: this login, which is requested once."""
        if not self._viewer:
            self._viewer = (yield from ask(self.viewer())) or ""
        return {self._viewer: True}

    def _comment(self, entry: Any, number: int, known: dict[str, bool]) -> Flow[Comment]:
        author = self._name(entry[self.routes.author])
        is_mine = _plain(author) == _plain(self._viewer)
        is_trusted = self._association(entry)
        if is_trusted is None:
            is_trusted = yield from self._counts(entry[self.routes.author], known)
        return Comment(
            id=str(entry["id"]),
            body=entry["body"] or "",
            author=author,
            is_mine=is_mine,
            is_trusted=is_mine or is_trusted,
            at=moment(entry["created_at"]),
            edited_at=moment(entry["updated_at"]) if entry.get("updated_at") else None,
            url=self._page(entry, number),
        )

    def _judged(
        self,
        issue: Issue,
        known: dict[str, bool],
        *,
        labeled: Sequence[Act],
        edits: Sequence[Act],
    ) -> Flow[Issue]:
        """Return the issue after looking up who set the label last, and who edited which text."""
        is_trusted, labeled_at = issue.is_trusted, ""
        if labeled and not is_trusted and self._label in issue.labels:
            labeled_at, user = labeled[-1]
            is_trusted = yield from self._counts(user, known)
        edited = sorted(edits, key=lambda edit: edit[0])
        edit_is_trusted = True
        for at, user in edited:
            # Whoever set the label after the edit has seen the edit.
            if not (is_trusted and at < labeled_at):
                edit_is_trusted &= yield from self._counts(user, known)
        return replace(
            issue,
            is_trusted=is_trusted,
            edited_by=self._name(edited[-1][1]) if edited else "",
            edit_is_trusted=edit_is_trusted,
        )

    def _counts(self, user: User, known: dict[str, bool]) -> Flow[bool]:
        """Return whether a person's text counts, by their role in the repository."""
        if self._everyone:
            return True
        name = self._name(user)
        if name not in known:
            known[name] = bool(user and name) and (yield from self._is_member(user or {}))
        return known[name]

    def _is_member(self, user: Mapping[str, Any]) -> Flow[bool]:
        try:
            member = yield from ask(self._api.get(self._path(self.routes.member, **user)))
        except ForgeRefused as error:
            if not self.routes.is_stranger(error.status):
                raise
            return False
        return (member or {}).get(self.routes.role) in self._roles

    def _name(self, user: User) -> str:
        """Return the login of a user, or "" for a deleted account."""
        return str((user or {}).get(self.routes.user, ""))


def _plain(login: str) -> str:
    """Normalize a login, which two APIs of a forge may spell differently."""
    return login.removesuffix("[bot]").lower()
