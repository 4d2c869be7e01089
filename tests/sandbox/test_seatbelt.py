"""Tests for the text of Seatbelt profiles; no profile has been run on macOS."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.sandbox import ViewRole, role_view
from cuggino.sandbox.seatbelt import SANDBOX_EXEC, profile, seatbelt


def profile_of(role: ViewRole, project: Path) -> list[str]:
    view = role_view(role, project=project, folder=project / ".cuggino/wip/one")
    return profile(view, scratch=Path("/private/tmp/own")).splitlines()


def test_an_implementer(tmp_path: Path) -> None:
    """Protected files come after the project, the session's folder after them."""
    lines = profile_of("implementing", tmp_path)
    assert ["(version 1)", "(allow default)", "(deny file-write*)"] == lines[:3]
    order = [
        f'(allow file-write* (subpath "{tmp_path}"))',
        f'(deny file-write* (subpath "{tmp_path}/.specs"))',
        f'(deny file-write-unlink (literal "{tmp_path}/.github"))',
        f'(allow file-write* (subpath "{tmp_path}/.cuggino/wip/one"))',
        '(deny file-read* (subpath "/run/docker.sock"))',
    ]
    assert order == [line for line in lines if line in order]


def test_a_project_manager(tmp_path: Path) -> None:
    """Exceptions within a protected folder are allowed after that folder is denied."""
    lines = profile_of("pm", tmp_path)
    denied = lines.index(f'(deny file-write* (subpath "{tmp_path}/.cuggino"))')
    allowed = lines.index(f'(allow file-write* (subpath "{tmp_path}/.cuggino/backlog"))')
    assert denied < allowed
    assert f'(allow file-write* (subpath "{tmp_path}"))' not in lines


def test_a_reviewer(tmp_path: Path) -> None:
    """Without copy-on-write, it writes nothing but its folder."""
    allowed = [line for line in profile_of("reviewing", tmp_path) if str(tmp_path) in line]
    assert [f'(allow file-write* (subpath "{tmp_path}/.cuggino/wip/one"))'] == allowed


def test_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder for them takes the place of the system's."""
    systems = tmp_path / "t"
    systems.mkdir()
    monkeypatch.setenv("TMPDIR", str(systems))
    view = role_view("reviewing", project=tmp_path / "p")
    own, others = (f'(allow file-write* (subpath "{tmp_path / name}"))' for name in "st")
    with_own = profile(view, scratch=tmp_path / "s").splitlines()
    assert (own in with_own, others in with_own) == (True, False)
    assert others in profile(view).splitlines()


def test_quotes_in_paths(tmp_path: Path) -> None:
    """A path is one string of the profile, even with quotes and backslashes."""
    odd = tmp_path / 'a"b\\c'
    odd.mkdir()
    assert any('a\\"b\\\\c"))' in line for line in profile_of("implementing", odd))


def test_the_words_before_the_command(tmp_path: Path) -> None:
    """The profile is an argument, so that agents cannot edit a file of it."""
    enclosure = seatbelt(role_view("audit", project=tmp_path), scratch=tmp_path)
    assert (SANDBOX_EXEC, "-p") == enclosure.words[:2]
    assert "--" == enclosure.words[-1]
    assert {"TMPDIR": str(tmp_path)} == enclosure.env
    assert not enclosure.reports
    assert not enclosure.namespace
