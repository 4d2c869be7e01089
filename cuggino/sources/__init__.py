"""Where the operating system becomes an Observable.

`process_lines` runs a program and emits the lines it prints; `git_lines` does so with git, and
`repository_state` tells what git knows of a folder. `folder_changes` tells when the files of a
folder change, `watch_file_count` how many there are. Names are resolved on first use: the guardian
of `process_lines` imports `cuggino.sources.process_tree` and must not wait for reactivex.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuggino.sources.file_count import count_files, watch_file_count
    from cuggino.sources.folder import PollingStarted, folder_changes
    from cuggino.sources.git import RepositoryState, git_lines, repository_state
    from cuggino.sources.process import process_lines

__all__ = [
    "PollingStarted",
    "RepositoryState",
    "count_files",
    "folder_changes",
    "git_lines",
    "process_lines",
    "repository_state",
    "watch_file_count",
]

_HOME = {
    "PollingStarted": "folder",
    "RepositoryState": "git",
    "count_files": "file_count",
    "folder_changes": "folder",
    "git_lines": "git",
    "process_lines": "process",
    "repository_state": "git",
    "watch_file_count": "file_count",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"cuggino.sources.{_HOME[name]}"), name)
