"""Public names of `cuggino.storage.journal`; written by `python -m tests.stubs`."""

from cuggino.storage.journal.delivery import (
    DELIVERED,
    DeliverableCourse,
    DeliveredSession,
    Delivery,
    StatusChange,
    fold_delivery,
)
from cuggino.storage.journal.digest import (
    JournalDigest,
    digest_of,
)
from cuggino.storage.journal.folder import (
    find_run,
    has_ended,
    prune,
    started_of,
)
from cuggino.storage.journal.outcomes import (
    FinishedStage,
    decode_outcome,
    encode_outcome,
    finished_stages,
)
from cuggino.storage.journal.reader import (
    SUFFIX,
    VERSION,
    Entry,
    JournalFile,
    iter_entries,
    last_entry,
    list_journals,
    read_journal,
)
from cuggino.storage.journal.totals import (
    COUNTED,
    fold_totals,
    run_totals,
)
from cuggino.storage.journal.writer import (
    Journal,
)

__all__ = [
    "COUNTED",
    "DELIVERED",
    "SUFFIX",
    "VERSION",
    "DeliverableCourse",
    "DeliveredSession",
    "Delivery",
    "Entry",
    "FinishedStage",
    "Journal",
    "JournalDigest",
    "JournalFile",
    "StatusChange",
    "decode_outcome",
    "digest_of",
    "encode_outcome",
    "find_run",
    "finished_stages",
    "fold_delivery",
    "fold_totals",
    "has_ended",
    "iter_entries",
    "last_entry",
    "list_journals",
    "prune",
    "read_journal",
    "run_totals",
    "started_of",
]
