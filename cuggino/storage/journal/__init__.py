"""Journals of runs: one event per line, so that a run survives its process."""

from cuggino.storage.journal.bounding import EVENT_LIMIT
from cuggino.storage.journal.digest import JournalDigest, RunPart, keep_digest, kept_digest
from cuggino.storage.journal.folder import (
    RunOrigin,
    find_run,
    has_ended,
    has_only_journals,
    is_concluded,
    origin_of,
    prune,
)
from cuggino.storage.journal.outcomes import (
    FinishedStage,
    decode_outcome,
    encode_outcome,
    finished_stages,
)
from cuggino.storage.journal.reader import (
    Entries,
    Entry,
    JournalFile,
    Line,
    iter_entries,
    last_entry,
    list_journals,
    read_journal,
    scan_journal,
)
from cuggino.storage.journal.skimming import skim
from cuggino.storage.journal.tail import JournalTail
from cuggino.storage.journal.writer import Journal

__all__ = [
    "EVENT_LIMIT",
    "Entries",
    "Entry",
    "FinishedStage",
    "Journal",
    "JournalDigest",
    "JournalFile",
    "JournalTail",
    "Line",
    "RunOrigin",
    "RunPart",
    "decode_outcome",
    "encode_outcome",
    "find_run",
    "finished_stages",
    "has_ended",
    "has_only_journals",
    "is_concluded",
    "iter_entries",
    "keep_digest",
    "kept_digest",
    "last_entry",
    "list_journals",
    "origin_of",
    "prune",
    "read_journal",
    "scan_journal",
    "skim",
]
