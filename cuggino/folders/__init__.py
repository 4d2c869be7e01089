"""Folders as Observables.

`folder_changes` emits when the files of a folder change, `watch_file_count` emits their number.
`state_of_paths` emits the content of chosen files.
"""

from cuggino.folders.file_count import count_files, watch_file_count
from cuggino.folders.folder import PollingStarted, folder_changes
from cuggino.folders.path_state import state_of_paths
from cuggino.folders.protection import PathVersion, Protection, files_of

__all__ = [
    "PathVersion",
    "PollingStarted",
    "Protection",
    "count_files",
    "files_of",
    "folder_changes",
    "state_of_paths",
    "watch_file_count",
]
