"""The record of a slot's use, in a file beside it that no agent writes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from cuggino.errors import ConfigError
from cuggino.files import read_json_object, storage_error, storing, write_atomic
from cuggino.stages.slots.folder import Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRecord:
    """The use of a slot."""

    project: str
    config: str
    """The configuration of the clone as git wrote it, without what was copied to it."""
    alternates: str = ""
    """The clone's reference to the project's objects, as git wrote it."""
    item: str = ""
    """The item whose work is in the slot; empty before the first one."""
    base: str = ""
    ready: bool = False
    """False while the slot is being prepared: it holds no work then."""
    dirt: tuple[str, ...] = ()
    """Files that git shows as changed right after the checkout, as some line endings do."""


def record_path(root: Path) -> Path:
    """Return the path of the record of the slot in the folder `root`."""
    return root.with_name(f"{root.name}.json")


def read_record(slot: Slot) -> SlotRecord | None:
    """Return the record of the slot; None without one, or without the slot.

    Raises:
        ConfigError: the folder is not a slot, or one of another project.
    """
    record = record_of(slot.root)
    if not slot.root.is_dir() and not slot.root.is_symlink():
        return None
    if record is None or slot.root.is_symlink():
        raise ConfigError(
            f"{slot.root} exists, and is not a slot of cuggino",
            hint='move it away, or choose another "slotFolder"',
        )
    if record.project != str(slot.project) and Path(record.project).exists():
        raise ConfigError(
            f"{slot.root} is a slot of another project: {record.project}",
            hint='choose another "slotFolder"',
        )
    return record


def record_of(root: Path) -> SlotRecord | None:
    """Return the record of the slot in the folder `root`; None if it cannot be read."""
    try:
        raw = read_json_object(record_path(root))
        return SlotRecord(**{**raw, "dirt": tuple(raw.get("dirt", ()))})
    except (OSError, ValueError, TypeError):
        return None


def write_record(slot: Slot, record: SlotRecord) -> None:
    """Store the record of the slot.

    Raises:
        StorageError: it cannot be written.
    """
    path = record_path(slot.root)
    with storing("write", path):
        write_atomic(path, json.dumps(asdict(record), indent=2) + "\n")


def make_home(home: Path) -> None:
    """Create the folder of all slots.

    Raises:
        StorageError: it cannot be created.
    """
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        failure = storage_error("create", home, error)
        failure.hint = 'choose another folder for slots: "slotFolder", or --slot-folder'
        raise failure from error
