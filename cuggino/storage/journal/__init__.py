"""Journals of runs: one event per line, so that a run survives its process."""

from cuggino._lazy import lazy

NAMES = {
    "delivery": (
        "DeliverableCourse DeliveredSession Delivery DeliveryFold StatusChange fold_delivery"
    ),
    "counting": "DIGESTED DigestFold",
    "digest": "JournalDigest",
    "folder": (
        "RunOrigin digest_of find_run has_ended has_only_journals is_concluded origin_of prune"
    ),
    "outcomes": "FinishedStage decode_outcome encode_outcome finished_stages",
    "reader": (
        "SUFFIX VERSION Entries Entry JournalFile Line iter_entries last_entry list_journals "
        "read_journal scan_journal"
    ),
    "skimming": "skim",
    "tail": "JournalTail",
    "totals": "COUNTED DELIVERED Totals fold_totals run_totals",
    "writer": "Journal",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
