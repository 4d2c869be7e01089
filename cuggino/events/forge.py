"""Events between a watch and what lies outside: trackers, chats, pull requests, hooks."""

from __future__ import annotations

from typing import Literal

from cuggino.events.watch import WatchLoopEvent


class WatchItemImported(WatchLoopEvent):
    """A source has added, changed, held or removed an item of the backlog."""

    filename: str
    source: str
    """The name of the source."""
    change: Literal["new", "updated", "held", "released", "kept", "removed"]
    """`held`: it must not begin, for the `reason`; `released`: it may begin again; `kept`: it
    changed in its source, but its file has a person's edits and stays; `removed`: its source no
    longer lists it as open, and it was archived."""
    url: str = ""
    """The page of the issue; empty without one."""
    reason: str = ""


class WatchSourceFailed(WatchLoopEvent):
    """A source could not be read; its items stay as they are, and it is read again."""

    source: str
    message: str
    retry_in: float
    """Seconds."""


class WatchForgeWaiting(WatchLoopEvent):
    """A call to a forge failed and is retried: a rate limit, no connection, or no login.

    Emitted by a watch, and by any run that waits for CI.
    """

    forge: str
    """Its host and repository, such as `github.com/owner/repo`."""
    doing: str
    """The call that is retried, such as "comment on issue 7"."""
    message: str
    retry_in: float
    """Seconds."""


class WatchIssueReported(WatchLoopEvent):
    """The comment on the issue of an item was written or edited."""

    filename: str
    url: str
    """The page of the issue."""
    state: Literal["working", "waiting", "question", "proposed", "landed", "parked", "removed"]


class WatchReportFailed(WatchLoopEvent):
    """The forge refused an update to the issue of an item; it is not retried."""

    filename: str
    url: str
    """The page of the issue."""
    message: str


class WatchIssueAnswered(WatchLoopEvent):
    """A reply to the comment on an issue has answered the spec issue of an item."""

    filename: str
    """The item."""
    issue: str
    """The file of the spec issue."""
    author: str
    url: str = ""


class ChatAsked(WatchLoopEvent):
    """A question was sent to a person."""

    channel: str
    """The service, such as `telegram`."""
    question: str
    """The key of the question; that of a spec issue is its file name."""
    title: str


class ChatAnswered(WatchLoopEvent):
    """A person's answer was recorded."""

    channel: str
    question: str
    sender: str
    """The name of the person; empty where the service has none."""
    text: str


class ChatRefused(WatchLoopEvent):
    """A message from the chat was not accepted, and its sender was told."""

    channel: str
    sender: str
    reason: str


class WatchProposed(WatchLoopEvent):
    """The work on an item is in a pull request; the item waits until it is merged."""

    filename: str
    number: int
    url: str
    branch: str
    commit: str
    """The head of the branch that was pushed."""
    candidate: str
    """The candidate that the commit contains."""
    is_new: bool = True
    """False if the pull request existed already."""


class WatchProposal(WatchLoopEvent):
    """The state of a pull request has changed."""

    filename: str
    number: int
    state: Literal["pending", "green", "red", "queued", "blocked", "taken-over"]
    """`pending`: checks are running; `green`: all passed; `red`: one failed; `queued`: the forge
    merges it automatically; `blocked`: a person has to act; `taken-over`: someone else has
    pushed."""
    message: str = ""


class HookFailed(WatchLoopEvent):
    """The command of a hook failed or took too long; the watch continues."""

    hook: str
    """The key under `hooks`, such as `item.landed`."""
    message: str
    exit_code: int | None = None
    """None if it did not start, or took too long."""
