"""A role's access to the commands of a person: it can neither sign nor send one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuggino.events import PauseAsked, StopAsked
from cuggino.files import state_folder
from cuggino.sandbox import Boundary, ViewRole
from cuggino.sandbox.loader import landlock_version
from cuggino.storage import KEY_FILE, ControlFolder, Workspace
from tests.sandbox.arena import Arena, needs_bubblewrap

ATTACKS = {
    "read the key": "cat {key}",
    "search for the key": "grep -r . {place}/state",
    "write a command": "echo '{{}}' > .cuggino/control/0.json",
    "send again": "cp .cuggino/control/*.json .cuggino/control/0.json",
    "remove": "rm -rf .cuggino/control",
    "exchange the folder": "mv .cuggino/control .cuggino/x && mkdir .cuggino/control",
    "send": "python3 -m cuggino_cli stop",
}


@pytest.mark.skipif(landlock_version() < 1, reason="this kernel has no Landlock")
def test_with_landlock_a_role_that_looks_cannot_send(tmp_path: Path) -> None:
    """Landlock hides nothing, but lets such a role not write the folder."""
    arena = Arena(tmp_path / "arena")
    control = ControlFolder(Workspace(arena.project).control, key=tmp_path / "key")
    control.send(PauseAsked())
    before = sorted(path.name for path in control.folder.iterdir())
    for attack in ("write a command", "send again", "remove", "exchange the folder"):
        arena.run(Boundary(engine="landlock"), "reviewing", ATTACKS[attack].format())
        assert before == sorted(path.name for path in control.folder.iterdir()), attack


@pytest.mark.parametrize("role", ["planning", "implementing", "reviewing"])
def test_no_role_can_send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: ViewRole) -> None:
    """The key is not in the view, and the folder with the commands cannot be changed."""
    boundary = needs_bubblewrap(tmp_path)
    arena = Arena(tmp_path / "arena")
    # In the home folder, of which a role sees everything else.
    monkeypatch.setenv("XDG_STATE_HOME", str(arena.home / "state"))
    (arena.home / "seen").write_text("by everybody")
    assert "by everybody" == arena.run(boundary, role, "cat ~/seen").stdout
    state = state_folder(os.environ)
    assert state is not None
    key = state / KEY_FILE
    control = ControlFolder(Workspace(arena.project).control, key=key)
    control.send(PauseAsked())
    secret = key.read_text().strip()
    before = sorted(path.name for path in control.folder.iterdir())
    for attack, command in ATTACKS.items():
        done = arena.run(boundary, role, command.format(key=key, place=arena.home))
        assert secret not in done.stdout, attack
        assert before == sorted(path.name for path in control.folder.iterdir()), attack
        assert [PauseAsked()] == control.new(set()), attack
    control.send(StopAsked())
    assert [PauseAsked(), StopAsked()] == control.new(set())
