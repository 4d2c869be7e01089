"""Pull requests: the setting `pullRequests`.

The annotations are not postponed, because pydantic would compile each.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from cuggino.edited_files import Section, matching

ForgeKind: TypeAlias = Literal["github", "gitlab"]
"""The forge of issues and pull requests: GitHub through `gh`, GitLab through `glab`."""

Repo: TypeAlias = Annotated[
    str, matching(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+", 'must be "owner/name"')
]
Host: TypeAlias = Annotated[
    str, matching(r"[A-Za-z0-9.-]+(:[0-9]+)?", 'must be a host such as "git.example.com"')
]
_Branch: TypeAlias = Annotated[str, matching(r"[^\s:-][^\s:]*", 'must be a name such as "main"')]
_Remote: TypeAlias = Annotated[str, matching(r"[^\s:-][^\s:]*", 'must be a name such as "origin"')]


class ForgeSettings(Section):
    """Settings of a forge; their keys are in camelCase."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class PullRequestSettings(ForgeSettings):
    """What `"landOn": "pr"` proposes, and how it is merged."""

    type: ForgeKind | None = None
    """The forge; default: `gitlab` if the host's name contains that word, otherwise `github`."""
    repo: Repo | None = None
    """The repository as `owner/name`; default: that of the remote."""
    host: Host | None = None
    """Its host; default: that of the remote."""
    remote: _Remote = "origin"
    """The git remote that branches are pushed to."""
    target: _Branch | None = None
    """The branch to merge into; default: the default branch of the repository."""
    draft: bool = False
    """Open pull requests as drafts, which you mark as ready."""
    auto_merge: bool = False
    """Let the forge merge what its rules allow, through its merge queue if it has one. Changes to
    CI files are never merged automatically."""
    every: float = Field(default=30.0, ge=5, le=3600)
    """Seconds between polls of an open pull request."""


PullRequests: TypeAlias = PullRequestSettings
