"""Trackers and hooks: the settings `backlogSources` and `hooks`.

The annotations are not postponed, because pydantic would compile each.
"""

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from cuggino.config.pull_requests import ForgeSettings, Host, Repo
from cuggino.edited_files import matching

ReportState: TypeAlias = Literal[
    "working", "waiting", "question", "proposed", "landed", "parked", "removed"
]
"""The state of an item, as reported on its issue."""

HookName: TypeAlias = Literal[
    "item.imported",
    "item.begun",
    "item.question",
    "item.sent-back",
    "item.proposed",
    "item.landed",
    "item.parked",
    "watch.idle",
]
"""The event that runs a hook's command."""


_Name: TypeAlias = Annotated[
    str, matching(r"[a-z][a-z0-9-]{0,31}", 'must be a short name such as "tracker", in lower case')
]


class BacklogSource(ForgeSettings):
    """A source of backlog items: the issues of a repository, or the output of a command."""

    type: Literal["github", "gitlab", "command"]
    """`github` and `gitlab` use `gh` and `glab` and their logins; `command` prints one JSON object
    per line."""
    name: _Name | None = None
    """The prefix of its items' file names; default: the type."""
    repo: Repo | None = None
    """The repository as `owner/name`; default: that of the git remote `origin`."""
    host: Host | None = None
    """Its host; default: that of the remote, or `github.com` or `gitlab.com`."""
    label: str | None = Field(default=None, pattern=r"\S")
    """Only issues with this label are imported. Required for `github` and `gitlab` without a
    `query`."""
    query: str | None = Field(default=None, pattern=r"\S")
    """A search in GitHub's syntax, such as `milestone:"1.0" -label:later`; only for `github`."""
    command: str | None = Field(default=None, pattern=r"\S")
    """The shell command of type `command`. A line has `id` and `title`, and may have `body`,
    `after` and `url`."""
    every: float = Field(default=60.0, ge=5, le=86_400)
    """Seconds between polls."""
    trust: list[Literal["owner", "member", "collaborator", "contributor", "anyone"]] = Field(
        default=["owner", "member", "collaborator"]
    )
    """Authors whose issues and comments are trusted. Other issues need the `label`, set by one of
    these."""
    comment: bool = True
    """Report on the issue, in one comment that is edited in place."""
    labels: dict[ReportState, str] = Field(default={})
    """Labels to set on an issue, by the state of its item; default: none."""
    close_issues: bool = False
    """Close an issue when its item has landed."""
    network: bool = False
    """Let agents reach any host while they work on items of this source, as for your own items."""

    @property
    def title(self) -> str:
        return self.name or self.type

    @model_validator(mode="after")
    def _fits_its_type(self) -> Self:
        if self.type == "command":
            if self.command is None:
                raise ValueError('a source of type "command" requires a "command"')
            alien = [key for key in ("repo", "host", "label", "query") if getattr(self, key)]
            if alien or self.labels or self.close_issues:
                raise ValueError('a source of type "command" has only "command", "name", "every"')
        else:
            if self.command is not None:
                raise ValueError('"command" belongs to a source of type "command"')
            if self.label is None and self.query is None:
                raise ValueError('requires a "label" or a "query": not every issue is for agents')
            if self.query is not None and self.type == "gitlab":
                raise ValueError('"query" is only for "github"; use "label"')
        return self


BacklogSources: TypeAlias = list[BacklogSource]
Hooks: TypeAlias = dict[HookName, str]
