"""What survives a stage: the workspace folder and the files of a running session."""

from cuggino.storage.atomic import storing
from cuggino.storage.focus import read_focus, read_text_file
from cuggino.storage.session import Session
from cuggino.storage.workspace import WORKSPACE_FOLDER, Workspace

__all__ = ["WORKSPACE_FOLDER", "Session", "Workspace", "read_focus", "read_text_file", "storing"]
