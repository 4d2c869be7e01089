"""What survives a stage: the workspace folder and the files of a running session."""

from cuggino.storage.atomic import storing
from cuggino.storage.backlog import Backlog
from cuggino.storage.focus import read_focus, read_text_file
from cuggino.storage.issues import Issue
from cuggino.storage.lock import LockOwner
from cuggino.storage.session import Session
from cuggino.storage.workspace import WORKSPACE_FOLDER, Workspace

__all__ = [
    "WORKSPACE_FOLDER",
    "Backlog",
    "Issue",
    "LockOwner",
    "Session",
    "Workspace",
    "read_focus",
    "read_text_file",
    "storing",
]
