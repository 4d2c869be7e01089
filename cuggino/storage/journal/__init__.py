"""Journals of runs: one event per line, so that a run survives its process."""

from cuggino.storage.journal.bounding import EVENT_LIMIT
from cuggino.storage.journal.counting import DIGESTED, DigestFold
from cuggino.storage.journal.delivery import (
    DeliverableCourse,
    DeliveredSession,
    Delivery,
    DeliveryFold,
    StatusChange,
    fold_delivery,
)
from cuggino.storage.journal.digest import JournalDigest
from cuggino.storage.journal.folder import (
    RunOrigin,
    digest_of,
    find_run,
    has_ended,
    has_only_journals,
    is_concluded,
    origin_of,
    past_digests,
    prune,
)
from cuggino.storage.journal.outcomes import (
    FinishedStage,
    decode_outcome,
    encode_outcome,
    finished_stages,
)
from cuggino.storage.journal.parts import RunPart
from cuggino.storage.journal.reader import (
    SUFFIX,
    VERSION,
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
from cuggino.storage.journal.totals import COUNTED, DELIVERED, Totals, fold_totals, run_totals
from cuggino.storage.journal.writer import Journal

__all__ = [
    "COUNTED",
    "DELIVERED",
    "DIGESTED",
    "EVENT_LIMIT",
    "SUFFIX",
    "VERSION",
    "DeliverableCourse",
    "DeliveredSession",
    "Delivery",
    "DeliveryFold",
    "DigestFold",
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
    "StatusChange",
    "Totals",
    "decode_outcome",
    "digest_of",
    "encode_outcome",
    "find_run",
    "finished_stages",
    "fold_delivery",
    "fold_totals",
    "has_ended",
    "has_only_journals",
    "is_concluded",
    "iter_entries",
    "last_entry",
    "list_journals",
    "origin_of",
    "past_digests",
    "prune",
    "read_journal",
    "run_totals",
    "scan_journal",
    "skim",
]
