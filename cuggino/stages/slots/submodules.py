"""Submodules in a slot: checked out from the project's own copies."""

from __future__ import annotations

import os
from pathlib import Path

from cuggino.errors import ProcessFailed
from cuggino.git import MODULE, Git, diff_trees, layout_of, list_settings
from cuggino.operators import Flow
from cuggino.stages.slots.folder import Slot

_FILE = ("-c", "protocol.file.allow=always")


def update_submodules(slot: Slot) -> Flow[None]:
    """Check out the submodules that the project has, from there; nested ones are left out."""
    if not (slot.root / ".gitmodules").is_file():
        return
    known = yield from _known(slot)
    if not known:
        return
    settings = [
        word
        for path, (name, module) in known.items()
        for word in (
            *("-c", f"submodule.{name}.url={module}"),
            *("-c", f"submodule.{name}.active=true"),
        )
    ]
    words = ("submodule", "--quiet", "update", "--init", "--force", "--checkout", "--")
    yield from slot.git.must(*_FILE, *settings, *words, *known)
    for path in known:  # nothing in a slot can be pushed
        nowhere = ("remote.origin.pushurl", os.devnull)
        yield from slot.git.at(slot.root / path).must("config", *nowhere)


def unknown_commits(slot: Slot, base: str, commit: str) -> Flow[list[str]]:
    """Return the submodules for which the work names a commit that the project does not have."""
    differing = yield from diff_trees(slot.git, base, commit)
    changed = {one.path: one.blob for one in differing if one.mode == MODULE}
    known = (yield from _known(slot)) if changed else {}
    found = []
    for path, new in changed.items():
        if path not in known or not (yield from _has(known[path][1], new)):
            found.append(path)
    return found


def _has(module: Path, commit: str) -> Flow[bool]:
    try:
        yield from Git(cwd=module).must("cat-file", "-e", f"{commit}^{{commit}}")
    except ProcessFailed:
        return False
    return True


def _known(slot: Slot) -> Flow[dict[str, tuple[str, Path]]]:
    """Return name and repository of the submodules that the project has, by path."""
    try:
        settings = yield from list_settings(slot.git, "--file", ".gitmodules")
    except ProcessFailed:  # none
        return {}
    modules = (yield from layout_of(slot.project_git)).common / "modules"
    found = {}
    for key, path in settings:
        if not key.endswith(".path"):
            continue
        name = key.removeprefix("submodule.").removesuffix(".path")
        if name and path and (modules / name / "HEAD").is_file():
            found[path] = name, modules / name
    return found
