"""What waits in a folder, as a loop asks for it: a count that is emitted whenever it changes."""

from cuggino.sources.file_count import count_files, watch_file_count
from cuggino.sources.folder import PollingStarted, folder_changes

__all__ = ["PollingStarted", "count_files", "folder_changes", "watch_file_count"]
