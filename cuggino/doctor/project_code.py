"""Agents that are code of the project, which a look must not start."""

from __future__ import annotations

import importlib.machinery
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from cuggino.agents import is_import_path

NOT_STARTED = "a look starts nothing of the project; `cuggino run` does, after asking"
"""The hint for an agent that is not inspected."""


def why_not_started(
    name: str,
    *,
    folder: Path,
    path: str | None,
    env: Mapping[str, str],
    trusted: bool = False,
    named: bool = False,
) -> str:
    """Return why an agent that a project names is not started to inspect it, or "".

    Neither a program nor a module of the project is started. Another module is if the user has
    accepted the commands of the project (`trusted`): `shutil:rmtree` is an import path too. Modules
    do not matter if the user has `named` the agent.
    """
    program = _program(path, folder, env)
    if program is not None and _is_within(program, folder):
        return f"its program {path} lies in the project"
    if named or not is_import_path(name):
        return ""
    if not trusted:
        return "it is code that the project names"
    place = _place_of(name.partition(":")[0].partition(".")[0])
    return "its module lies in the project" if place and _is_within(place, folder) else ""


def _program(path: str | None, folder: Path, env: Mapping[str, str]) -> str | None:
    if not path:
        return None
    return str(folder / path) if os.sep in path else shutil.which(path, path=env.get("PATH"))


def _is_within(path: str, folder: Path) -> bool:
    """Return whether the path is in the folder by its name, or with links resolved."""
    whole = os.path.realpath(folder)
    names = (os.path.normpath(os.path.join(folder, path)), os.path.realpath(path))  # noqa: PTH118
    return any(Path(name).is_relative_to(root) for name in names for root in (folder, whole))


def _place_of(module: str) -> str | None:
    """Return the file or folder of a module, without importing anything."""
    found = importlib.machinery.PathFinder.find_spec(module)
    if found is None:
        return None
    return found.origin or next(iter(found.submodule_search_locations or ()), None)
