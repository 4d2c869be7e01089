"""Public names of `cuggino.sources`; written by `python -m tests.stubs`."""

from cuggino.sources.file_count import (
    count_files,
    watch_file_count,
)
from cuggino.sources.folder import (
    PollingStarted,
    folder_changes,
)
from cuggino.sources.git import (
    RepositoryState,
    git_lines,
    repository_state,
)
from cuggino.sources.process import (
    process_lines,
)

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
