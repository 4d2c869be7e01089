"""The files that decide which commands a forge or git runs automatically."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

_FOLDERS = frozenset(
    {
        *(".github", ".gitlab", ".gitlab-ci", ".gitea", ".forgejo"),
        *(".circleci", ".buildkite", ".woodpecker", ".semaphore", ".teamcity", ".tekton"),
        *(".azure-pipelines", ".azuredevops", ".builds", ".harness", ".drone", ".codefresh"),
        *(".husky", ".lefthook", ".hooks", ".githooks", ".git-hooks", "githooks", "git-hooks"),
    }
)
"""Folders in which every file counts, at any depth."""

_INCLUDED_FROM = frozenset({"ci", ".ci"})
"""Folders from which pipelines usually include YAML files."""

_FILE = re.compile(
    r"""
      (.*[._-])?gitlab-ci([._-].*)?\.ya?ml | action\.ya?ml
    | (.*[._-])?jenkinsfile([._-].*)?
    | \.?(azure|bitbucket)-pipelines?([._-].*)?\.ya?ml
    | \.(travis|cirrus|drone|woodpecker|build)\.ya?ml | \.(cirrus|drone)\.(star|jsonnet)
    | \.?(appveyor|codefresh|wercker)\.ya?ml | (buildspec|cloudbuild)([._-].*)?\.(ya?ml|json)
    | \.pre-commit-(config|hooks)\.ya?ml | \.overcommit\.yml
    | \.?lefthook(-local)?\.(ya?ml|toml|jsonc?) | \.?simple-git-hooks\.(c?js|json)
    """,
    re.VERBOSE,
)
"""Names of files, in lower case, that count wherever they are."""


def touches_ci(paths: Iterable[str]) -> tuple[str, ...]:
    """Return those of the changed paths that define CI or git hooks, in their order.

    A rename has two paths. A `Makefile` or script that such a definition runs does not count: it
    has only the permissions that the definition grants, like all code of the project. Names are
    compared regardless of case, and folders at any depth, since a needless question to a person
    costs less than a pipeline written by a stranger.
    """
    return tuple(path for path in paths if _defines_ci(path))


def _defines_ci(path: str) -> bool:
    *folders, name = PurePosixPath(path.replace("\\", "/").lower()).parts or ("",)
    return (
        not _FOLDERS.isdisjoint((*folders, name))  # a link or submodule in place of the folder
        or _FILE.fullmatch(name) is not None
        or (name.endswith((".yml", ".yaml")) and not _INCLUDED_FROM.isdisjoint(folders))
    )
