"""Tests for `probe`: detected features, and messages about missing ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuggino.sandbox import NO_BOUNDARY, Boundary, ViewRole, boundary, probe, role_view
from cuggino.sandbox.loader import landlock_version
from tests.sandbox.arena import Arena, needs_bubblewrap

pytestmark = pytest.mark.usefixtures("probed_anew")


def fake_bwrap(folder: Path, text: str) -> str:
    program = folder / "bwrap"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return str(program)


def test_the_boundary_of_this_machine(tmp_path: Path) -> None:
    """Probing leaves no file behind, and its result is remembered."""
    needs_bubblewrap(tmp_path)
    project = tmp_path / "project"
    project.mkdir()
    found = probe(project)
    assert "bubblewrap" == found.engine
    assert found is probe(project)
    assert [] == list(project.iterdir())
    assert found.name in ("bubblewrap", "bubblewrap+overlay")


def test_without_bubblewrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Landlock where the kernel has it, else nothing; the reason is the missing program."""
    monkeypatch.setenv("PATH", str(tmp_path))
    found = probe(tmp_path)
    assert found.engine == ("landlock" if landlock_version() else "none")
    assert found.reason.startswith("bubblewrap is not installed")


def test_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is what bubblewrap printed."""
    fake_bwrap(tmp_path, "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = probe(tmp_path / "project")
    assert found.engine in ("landlock", "none")
    assert "setting up uid map: Permission denied" in found.reason


def test_a_program_that_confines_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A boundary counts only if a write was really prevented."""
    fake_bwrap(tmp_path, 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = probe(tmp_path / "project")
    assert found.engine in ("landlock", "none")
    assert ["bwrap"] == [path.name for path in tmp_path.iterdir()]


def test_a_trial_does_not_die_with_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bubblewrap killed while it sets up a namespace leaves a process that waits forever."""
    fake_bwrap(tmp_path, f'echo "$*" >> {tmp_path}/words; exit 1')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    probe(tmp_path / "project")
    words = (tmp_path / "words").read_text()
    assert "--unshare-pid" in words
    assert "--die-with-parent" not in words


@pytest.mark.parametrize(
    ("overlay", "reason"), [("native", ""), ("loader", ""), ("", "no overlay: no mounts")]
)
def test_what_works_first(
    overlay: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is why nothing is copied on write, if nothing is."""
    monkeypatch.setattr(boundary, "_version", lambda _: (99, 0))
    monkeypatch.setattr(
        boundary, "_failure", lambda tried, *_: "" if tried.overlay == overlay else "no mounts"
    )
    found = boundary._probed(tmp_path, None, "bwrap", "linux")
    assert ("bubblewrap", overlay, reason) == (found.engine, found.overlay, found.reason)


def test_on_other_systems(tmp_path: Path) -> None:
    """Only Linux has an engine; the reason names the system."""
    for platform, system in {"darwin": "macOS", "freebsd14": "freebsd14"}.items():
        found = boundary._probed(tmp_path, None, None, platform)
        assert ("none", f"there is no engine for {system}") == (found.engine, found.reason)


def test_no_boundary(tmp_path: Path) -> None:
    """Without an engine there is nothing in front of a command."""
    assert NO_BOUNDARY.enclose(role_view("audit", project=tmp_path)) is None
    assert not NO_BOUNDARY.holds("audit")
    assert "none" == NO_BOUNDARY.name
    assert "bubblewrap+overlay" == Boundary(engine="bubblewrap", overlay="native").name


@pytest.mark.parametrize("role", ["planning", "implementing", "reviewing"])
def test_git_in_a_subfolder_of_a_repository(role: ViewRole, tmp_path: Path) -> None:
    """The project is a mount of its own, and git in it finds the repository around it."""
    arena = Arena(tmp_path)
    arena.project /= "src"
    arena.folder = arena.project / ".cuggino/wip/session"
    arena.folder.mkdir(parents=True)
    here = needs_bubblewrap(arena.project)
    said = arena.run(here, role, "git log -1 --format=%s && git rev-parse --show-prefix")
    assert ("two\nsrc/\n", "") == (said.stdout, said.stderr)
