"""Tests for the Landlock engine: it holds the roles that only look."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuggino.sandbox import Boundary, role_view
from cuggino.sandbox.landlock import landlock
from cuggino.sandbox.loader import landlock_version
from tests.sandbox.arena import Arena
from tests.vectors import rows

LANDLOCK = Boundary(engine="landlock")
DEVICES = {
    str(Path("/dev", name).resolve())
    for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm")
}

pytestmark = pytest.mark.skipif(landlock_version() < 1, reason="this kernel has no Landlock")


@pytest.fixture
def arena(tmp_path: Path) -> Arena:
    return Arena(tmp_path / "arena")


def test_a_role_that_looks_writes_only_its_folder(arena: Arena) -> None:
    """Its folder, its temporary files and the state of its program; reading works."""
    before = arena.state_of(["."])
    done = arena.run(
        LANDLOCK,
        "reviewing",
        "echo r > .cuggino/wip/session/r.md; echo x > src/z; rm -rf .specs; mv src lib; "
        "ln README.md r; mktemp >&2; touch ~/.claude/z ~/z; cat README.md; "
        "python3 -c 'import ctypes; print(ctypes.CDLL(None).prctl(39, 0, 0, 0, 0))'",
    )
    assert before == arena.state_of(["."])
    assert "r\n" == (arena.folder / "r.md").read_text()
    assert "readme\n1\n" == done.stdout
    assert str(arena.folder / "tmp") in done.stderr
    assert [".claude"] == [path.name for path in arena.home.iterdir()]
    assert (arena.state / "z").exists()


def test_a_role_that_writes_is_kept_in_the_project(arena: Arena, tmp_path: Path) -> None:
    """It commits, and writes nothing outside; protected files are left to verification."""
    done = arena.run(
        LANDLOCK,
        "implementing",
        f"echo x > src/app.py; git commit -qam work; touch ~/z {tmp_path}/z; git log --format=%s",
    )
    assert "work\ntwo\none\n" == done.stdout, done.stderr
    assert not (tmp_path / "z").exists()
    assert not (arena.home / "z").exists()


@pytest.mark.real_agent
def test_commands_of_roles_that_look(tmp_path: Path) -> None:
    """Of the recorded commands of such roles, none changes the project."""
    found: dict[object, list[str]] = {}
    chosen = [row for row in rows("role_writes") if row["role"] != "implementing"]
    for number, row in enumerate(chosen[::8]):
        arena = Arena(tmp_path / str(number))
        before = arena.state_of(["."])
        arena.run(LANDLOCK, row["role"], row["command"])
        after = arena.state_of(["."])
        if before != after:
            found[row["id"]] = [path for path in after if before.get(path) != after[path]]
    assert {} == found


@pytest.mark.parametrize("inside", [False, True])
def test_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, inside: bool) -> None:
    """They are in the role's own folder, else in the system's, which may not have the project."""
    systems, own = tmp_path / "t", tmp_path / "s"
    systems.mkdir()
    monkeypatch.setenv("TMPDIR", str(systems))
    view = role_view("reviewing", project=(systems if inside else tmp_path) / "p")
    written = {}
    for scratch in (None, own):
        enclosure = landlock(view, scratch=scratch)
        written[scratch] = set(json.loads(enclosure.words[-2])["write"])
        assert written[scratch] >= DEVICES
    assert (str(systems) in written[None]) == (not inside)
    assert str(own) not in written[None]
    assert {str(own)} == written[own] & {str(own), str(systems)}
    assert str(own / "target") == enclosure.env["CARGO_TARGET_DIR"]


def test_which_roles_it_holds() -> None:
    """Protected files of a writing role are not held, so `require` does not accept it there."""
    assert LANDLOCK.holds("reviewing")
    assert LANDLOCK.holds("pm")
    assert not LANDLOCK.holds("implementing")
