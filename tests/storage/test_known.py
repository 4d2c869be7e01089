"""The projects of this machine that the user has worked in."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from cuggino.storage import announce_page, known_projects, remember_project


def _project(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / name
    folder.mkdir()
    return folder


def test_the_latest_run_comes_first(tmp_path: Path) -> None:
    """Projects are listed once each, by their latest run; one that is gone is left out."""
    state = tmp_path / "state"
    one, two, gone = (_project(tmp_path, name) for name in ("one", "zwei ü", "gone"))
    for second, folder in enumerate((one, two, gone, one)):
        remember_project(folder, state=state)
        latest = max((state / "projects").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        os.utime(latest, (second, second))
    gone.rmdir()
    assert [one, two] == known_projects(state=state)


def test_projects_of_served_pages_are_known(tmp_path: Path) -> None:
    """A project on a live page follows those that had a run, while the page is served."""
    state, one, two = tmp_path / "state", _project(tmp_path, "one"), _project(tmp_path, "two")
    remember_project(two, state=state)
    with announce_page("url", [one, two], state=state):
        assert [two, one] == known_projects(state=state)
    assert [two] == known_projects(state=state)


def test_only_the_user_can_read_them(tmp_path: Path) -> None:
    """The file is private, and what is no path of a project is left out."""
    remember_project(tmp_path, state=tmp_path / "state")
    (file,) = (tmp_path / "state" / "projects").iterdir()
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)
    file.write_bytes(b"\xff\x00")
    file.with_name("relative").write_text("..")
    assert [] == known_projects(state=tmp_path / "state")


def test_nothing_is_known_without_a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a home folder, and where none can be written, a run goes on without it."""
    (tmp_path / "file").touch()
    remember_project(tmp_path, state=tmp_path / "file")
    assert [] == known_projects(state=tmp_path / "file")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    remember_project(tmp_path)
    assert [] == known_projects()
