"""Slots: clones of the project where items are worked on, and what lands from them."""

from cuggino._lazy import lazy

NAMES = {
    "candidates": "publish_candidate",
    "folder": "GATE Slot slot_home slots_of top_of",
    "checking": "Gate Red branch_names",
    "copying": "included_files",
    "keeping": "NotKept known_refs numbered",
    "git": "fetch must",
    "landing": "LandOn Trunk",
    "listing": "SlotFolder SlotListing SlotRef SlotsCleaned clean_slots list_slots",
    "position": "contains",
    "preparing": "prepare_slot",
    "pushing": "RemoteBranches Tested",
    "record": "read_record write_record",
    "settings": "config_text",
    "refs": "GIVEN TARGET TRUNK WORK base_ref candidate_ref given_ref item_of kept_ref work_ref",
    "shared": "WorkRef push_shared remote_of shared_refs",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
