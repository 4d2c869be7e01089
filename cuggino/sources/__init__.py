"""Where the operating system becomes an Observable.

`process_lines` runs a program and emits the lines it prints; `git_lines` does so with git, and
`repository_state` tells what git knows of a folder. Names are resolved on first use: the guardian
of `process_lines` imports `cuggino.sources.process_tree` and must not wait for reactivex.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuggino.sources.git import RepositoryState, git_lines, repository_state
    from cuggino.sources.process import process_lines

__all__ = ["RepositoryState", "git_lines", "process_lines", "repository_state"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "process" if name == "process_lines" else "git"
    return getattr(importlib.import_module(f"cuggino.sources.{home}"), name)
