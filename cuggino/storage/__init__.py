"""What survives a stage: the workspace folder and the files of a running session."""

from cuggino.storage.atomic import storing
from cuggino.storage.backlog import Backlog, Survey
from cuggino.storage.focus import check_specs, read_focus, read_text_file
from cuggino.storage.issues import Issue
from cuggino.storage.journal import (
    Entry,
    FinishedStage,
    Journal,
    JournalFile,
    decode_outcome,
    encode_outcome,
    finished_stages,
    has_ended,
    iter_entries,
    list_journals,
    prune,
    read_journal,
    run_totals,
)
from cuggino.storage.journal_find import find_run, started_of
from cuggino.storage.lock import LockOwner
from cuggino.storage.session import Session
from cuggino.storage.workspace import WORKSPACE_FOLDER, Workspace, new_run_id

__all__ = [
    "WORKSPACE_FOLDER",
    "Backlog",
    "Entry",
    "FinishedStage",
    "Issue",
    "Journal",
    "JournalFile",
    "LockOwner",
    "Session",
    "Survey",
    "Workspace",
    "check_specs",
    "decode_outcome",
    "encode_outcome",
    "find_run",
    "finished_stages",
    "has_ended",
    "iter_entries",
    "list_journals",
    "new_run_id",
    "prune",
    "read_focus",
    "read_journal",
    "read_text_file",
    "run_totals",
    "started_of",
    "storing",
]
