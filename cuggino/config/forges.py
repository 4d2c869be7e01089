"""Trackers and forges: the settings `backlogSources`, `pullRequests` and `hooks`.

The annotations are not postponed, because pydantic would compile each.
"""

from typing import Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

ForgeKind: TypeAlias = Literal["github", "gitlab"]
"""Where issues and pull requests are: GitHub by `gh`, GitLab by `glab`."""

ReportState: TypeAlias = Literal[
    "working", "waiting", "question", "proposed", "landed", "parked", "removed"
]
"""What an issue is told of its item."""

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
"""When the command of a hook runs."""

_REPO = r"^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+$"
_HOST = r"^[A-Za-z0-9.-]+(:[0-9]+)?$"


class _Settings(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        defer_build=True,
        alias_generator=to_camel,
        populate_by_name=True,
    )


class BacklogSource(_Settings):
    """A source of backlog items: the issues of a repository, or the output of a command."""

    type: Literal["github", "gitlab", "command"]
    """`github` and `gitlab` ask `gh` and `glab`, which bring the login; `command` prints a JSON
    object per line."""
    name: str | None = Field(default=None, pattern=r"^[a-z][a-z0-9-]{0,31}$")
    """What the files of its items begin with; default: the type."""
    repo: str | None = Field(default=None, pattern=_REPO)
    """The repository as `owner/name`; default: that of the git remote `origin`."""
    host: str | None = Field(default=None, pattern=_HOST)
    """Its host; default: that of the remote, or `github.com` or `gitlab.com`."""
    label: str | None = Field(default=None, pattern=r"\S")
    """Only issues with this label are imported. Required for `github` and `gitlab` without a
    `query`."""
    query: str | None = Field(default=None, pattern=r"\S")
    """A search in the words of the forge, such as `milestone:"1.0" -label:later`; only GitHub."""
    command: str | None = Field(default=None, pattern=r"\S")
    """The shell command of type `command`. A line has `id` and `title`, and may have `body`,
    `after` and `url`."""
    every: float = Field(default=60.0, ge=5, le=86_400)
    """Seconds from one look to the next."""
    trust: list[Literal["owner", "member", "collaborator", "contributor", "anyone"]] = Field(
        default=["owner", "member", "collaborator"]
    )
    """Whose text counts. An issue of anybody else needs the `label`, set by one of these."""
    comment: bool = True
    """Report on the issue, in one comment that is edited in place."""
    labels: dict[ReportState, str] = Field(default={})
    """Labels that the issue of an item has while it is in a state; default: none."""
    close_issues: bool = False
    """Close the issue of an item that has landed."""
    network: bool = False
    """Let agents reach any host for items of this source, as for your own."""

    @property
    def title(self) -> str:
        """Return the name of the source."""
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


class PullRequestSettings(_Settings):
    """What `"landOn": "pr"` proposes, and how it is merged."""

    type: ForgeKind | None = None
    """The forge; default: `gitlab` if the host's name contains that word, otherwise `github`."""
    repo: str | None = Field(default=None, pattern=_REPO)
    """The repository as `owner/name`; default: that of the remote."""
    host: str | None = Field(default=None, pattern=_HOST)
    """Its host; default: that of the remote."""
    remote: str = Field(default="origin", pattern=r"^[^\s:-][^\s:]*$")
    """The git remote that branches are pushed to."""
    target: str | None = Field(default=None, pattern=r"^[^\s:-][^\s:]*$")
    """The branch to merge into; default: the default branch of the repository."""
    draft: bool = False
    """Open drafts: a person declares them ready."""
    auto_merge: bool = False
    """Let the forge merge what its rules allow, in its own queue. A change to CI files is never
    merged without a person."""
    every: float = Field(default=30.0, ge=5, le=3600)
    """Seconds from one look at an open pull request to the next."""
