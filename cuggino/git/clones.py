"""The folder beside a project for its clones."""

from __future__ import annotations

import os
from pathlib import Path

from cuggino.errors import ConfigError
from cuggino.sandbox import home_of, top_of


def slot_home(project: Path, slot_folder: str | None = None) -> Path:
    """Return the folder of all slots of a project, and of its gate tree.

    `slot_folder` is relative to the project; by default it is a folder beside the repository.

    Raises:
        ConfigError: the folder is inside the repository, or is not a folder.
    """
    project = project.resolve()
    top = top_of(project)
    if slot_folder is None:
        name = "-".join((top.name, *project.relative_to(top).parts))
        home = top.parent / f"{name}.cuggino-slots"
    else:
        home = (project / _expanded(slot_folder)).resolve()
    if home.is_relative_to(top):
        raise ConfigError(
            f"the slot folder {home} is inside the project",
            hint='choose a folder outside of it: "slotFolder" in .cuggino.json, or --slot-folder',
        )
    if home.exists() and not home.is_dir():
        raise ConfigError(f"the slot folder {home} is not a folder")
    return home


def _expanded(folder: str) -> Path:
    if folder != "~" and not folder.startswith("~/"):
        return Path(folder)
    if (home := home_of(os.environ)) is None:
        raise ConfigError(f"the slot folder {folder} needs a home folder, and there is none")
    return home / folder[2:]
