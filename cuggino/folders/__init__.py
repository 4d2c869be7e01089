"""Folders as Observables.

`folder_changes` emits when the files of a folder change, `watch_file_count` emits their number.
`state_of_paths` emits the content of chosen files.
"""

from cuggino.folders.file_count import count_files, watch_file_count
from cuggino.folders.folder import PollingStarted, folder_changes
from cuggino.folders.path_state import state_of_paths

__all__ = [
    "PollingStarted",
    "count_files",
    "folder_changes",
    "state_of_paths",
    "watch_file_count",
]
