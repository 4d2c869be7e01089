"""The folders of slots, and the variables that keep slots apart."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from cuggino.errors import ConfigError
from cuggino.git import Git, slot_home
from cuggino.sandbox import Views, top_of

GATE = "gate"
"""The name of the gate tree where candidates are merged, beside the slots."""
CHECK = "check"
"""The name of the gate tree where the work of a run is checked; that of a slot has its number."""

HANDS = "hands"
"""The folder of the clones in which several hands work, beside the clone of their run."""

_FIRST_PORT, _PORTS = 20_000, 100


@dataclass(frozen=True, slots=True)
class Slot:
    """A folder outside the project where one item at a time is worked on."""

    number: int
    """From 1."""
    root: Path
    """The clone of the project's repository."""
    folder: Path
    """The project in it: the clone itself, unless the project is a folder of its repository."""
    project: Path
    """The user's project."""
    views: Views | None = None
    """The views of git and of hooks in the slot."""

    @property
    def git(self) -> Git:
        """Return git in the clone."""
        return Git(cwd=self.root, views=self.views)

    @property
    def project_git(self) -> Git:
        """Return git in the user's project."""
        return Git(cwd=self.project, views=self.views)

    @property
    def env(self) -> dict[str, str]:
        """Return the variables that keep servers and containers of slots apart.

        The numbers are stable: the 100 ports from `PORT` on belong to this slot.
        """
        name = re.sub(r"[^a-z0-9]+", "-", self.project.name.lower()).strip("-") or "project"
        digest = hashlib.sha256(os.fsencode(self.project)).hexdigest()[:6]
        return {
            "CUGGINO_SLOT": str(self.number),
            "PORT": str(_FIRST_PORT + _PORTS * self.number),
            "COMPOSE_PROJECT_NAME": f"{name}-{digest}-{self.number}",
        }


def check_folder(home: Path, slot: int | None = None) -> Path:
    """Return the gate tree for the work of a run in the project, or in a slot.

    `home` is the folder of all slots (`slot_home`).
    """
    return home / (CHECK if slot is None else f"{CHECK}-{slot}")


def is_gate_tree(folder: Path) -> bool:
    """Return whether a folder beside the slots is named like a gate tree."""
    return folder.name in (GATE, CHECK) or folder.name.removeprefix(f"{CHECK}-").isdecimal()


def slots_of(
    project: Path, slot_folder: str | None = None, count: int = 1, *, views: Views | None = None
) -> list[Slot]:
    """Return the slots 1 to `count` of a project; nothing is created.

    Raises:
        ConfigError: the folder cannot be used.
    """
    project = project.resolve()
    home = slot_home(project, slot_folder)
    there = next(folder for folder in (home, *home.parents) if folder.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(
            f"slots cannot be made in {home}: {there} is not writable",
            hint='choose another folder: "slotFolder" in .cuggino.json, or --slot-folder',
        )
    return [slot_in(home, number, project, views=views) for number in range(1, count + 1)]


def slot_in(home: Path, number: int, project: Path, *, views: Views | None = None) -> Slot:
    """Return a slot by its number."""
    root = home / f"slot-{number}"
    within = project.relative_to(top_of(project))
    return Slot(number=number, root=root, folder=root / within, project=project, views=views)
