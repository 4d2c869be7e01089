"""Slots: clones of the project where items are worked on, and what lands from them."""

from cuggino.stages.slots.attempts import Attempted, keep_attempt, keep_pushed
from cuggino.stages.slots.candidates import publish_candidate
from cuggino.stages.slots.checking import Gate, Red, branch_names, clean_check_stage
from cuggino.stages.slots.copying import included_files, missing_ignored
from cuggino.stages.slots.folder import GATE, HANDS, Slot, check_folder, slots_of
from cuggino.stages.slots.keeping import NotKept, known_refs, numbered
from cuggino.stages.slots.landing import LandOn, Trunk
from cuggino.stages.slots.listing import (
    SlotFolder,
    SlotListing,
    SlotRef,
    SlotsCleaned,
    clean_slots,
    list_slots,
)
from cuggino.stages.slots.position import contains
from cuggino.stages.slots.preparing import prepare_slot
from cuggino.stages.slots.pushing import RemoteBranches, Tested
from cuggino.stages.slots.record import read_record, write_record
from cuggino.stages.slots.refs import (
    GIVEN,
    REFS,
    TARGET,
    TRUNK,
    WORK,
    base_ref,
    candidate_ref,
    given_ref,
    item_of,
    kept_ref,
    refs_of_run,
    work_ref,
)
from cuggino.stages.slots.settings import config_text
from cuggino.stages.slots.shared import WorkRef, push_shared, remote_of, shared_refs

__all__ = [
    "GATE",
    "GIVEN",
    "HANDS",
    "REFS",
    "TARGET",
    "TRUNK",
    "WORK",
    "Attempted",
    "Gate",
    "LandOn",
    "NotKept",
    "Red",
    "RemoteBranches",
    "Slot",
    "SlotFolder",
    "SlotListing",
    "SlotRef",
    "SlotsCleaned",
    "Tested",
    "Trunk",
    "WorkRef",
    "base_ref",
    "branch_names",
    "candidate_ref",
    "check_folder",
    "clean_check_stage",
    "clean_slots",
    "config_text",
    "contains",
    "given_ref",
    "included_files",
    "item_of",
    "keep_attempt",
    "keep_pushed",
    "kept_ref",
    "known_refs",
    "list_slots",
    "missing_ignored",
    "numbered",
    "prepare_slot",
    "publish_candidate",
    "push_shared",
    "read_record",
    "refs_of_run",
    "remote_of",
    "shared_refs",
    "slots_of",
    "work_ref",
    "write_record",
]
