"""Pull requests: the setting `pullRequests`.

The annotations are not postponed, because pydantic would compile each.
"""

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

ForgeKind: TypeAlias = Literal["github", "gitlab"]
"""The forge of issues and pull requests: GitHub through `gh`, GitLab through `glab`."""

REPO = r"^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+$"
HOST = r"^[A-Za-z0-9.-]+(:[0-9]+)?$"


class ForgeSettings(BaseModel):
    """Settings of a forge; their keys are in camelCase."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        defer_build=True,
        alias_generator=to_camel,
        populate_by_name=True,
    )


class PullRequestSettings(ForgeSettings):
    """What `"landOn": "pr"` proposes, and how it is merged."""

    type: ForgeKind | None = None
    """The forge; default: `gitlab` if the host's name contains that word, otherwise `github`."""
    repo: str | None = Field(default=None, pattern=REPO)
    """The repository as `owner/name`; default: that of the remote."""
    host: str | None = Field(default=None, pattern=HOST)
    """Its host; default: that of the remote."""
    remote: str = Field(default="origin", pattern=r"^[^\s:-][^\s:]*$")
    """The git remote that branches are pushed to."""
    target: str | None = Field(default=None, pattern=r"^[^\s:-][^\s:]*$")
    """The branch to merge into; default: the default branch of the repository."""
    draft: bool = False
    """Open pull requests as drafts, which you mark as ready."""
    auto_merge: bool = False
    """Let the forge merge what its rules allow, through its merge queue if it has one. Changes to
    CI files are never merged automatically."""
    every: float = Field(default=30.0, ge=5, le=3600)
    """Seconds between polls of an open pull request."""


PullRequests: TypeAlias = PullRequestSettings
