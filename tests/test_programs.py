"""The programs that work beside a run are a copy of what the run has loaded."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cuggino import programs
from cuggino.agents.base import enclosure_of
from cuggino.sandbox import RoleView, role_view
from tests.limits import LIMIT
from tests.sandbox.arena import needs_bubblewrap
from tests.test_architecture import PROGRAMS

_OWN = frozenset({"doctor/agent_process.py"})
"""Programs that need libraries, and so the package itself."""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the copies in a new state folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    programs._copy.cache_clear()
    yield tmp_path / "cuggino" / "programs"
    programs._copy.cache_clear()


def test_every_program_is_copied(state: Path) -> None:
    """The copy has all programs that need nothing but the standard library."""
    for path in PROGRAMS - _OWN:
        copy = programs.program(path)
        assert copy.is_relative_to(state)
        assert (Path(programs.__file__).parent / path).read_bytes() == copy.read_bytes()


def test_modules_of_the_copy_import_each_other(state: Path) -> None:
    """Every module of the copy can be imported with nothing but the standard library and psutil."""
    folder = programs.programs_folder()
    modules = sorted(
        ".".join(path.relative_to(folder).with_suffix("").parts)
        for path in folder.rglob("*.py")
        if path.name != "__init__.py"
    )
    code = "import sys; sys.path.append(sys.argv[1]); sys.modules['psutil'] = sys\n"
    code += "for name in sys.argv[2:]: __import__(name)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(folder), *modules],
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert 0 == done.returncode, done.stderr


def test_a_copy_is_kept(state: Path) -> None:
    """A second process finds the copy of the first one, unchanged."""
    first = programs.programs_folder()
    before = (first / "cuggino" / "errors.py").stat().st_ino
    programs._copy.cache_clear()
    assert first == programs.programs_folder()
    assert before == (first / "cuggino" / "errors.py").stat().st_ino


def test_a_changed_copy_is_replaced(state: Path) -> None:
    """A copy that something has changed is not used."""
    hook = programs.program("agents/base/hook.py")
    content = hook.read_bytes()
    hook.write_text("raise SystemExit")
    programs._copy.cache_clear()
    assert content == programs.program("agents/base/hook.py").read_bytes()


def test_a_removed_copy_is_made_again(state: Path) -> None:
    """The copy is there whenever a program is asked for, from what was loaded first."""
    hook = programs.program("agents/base/hook.py")
    hook.parents[2].rename(state / "gone")
    hook.parents[2].parent.rmdir()
    assert hook == programs.program("agents/base/hook.py")
    assert hook.exists()


def test_copies_of_other_versions_are_removed_when_old(state: Path) -> None:
    """A copy that no process has used for months goes when another one is made."""
    for name, age in (("old", 100), ("recent", 10)):
        (state / name).mkdir(parents=True)
        used = time.time() - age * 24 * 3600
        os.utime(state / name, (used, used))
    folder = programs.programs_folder()
    assert {"recent", folder.name} == {path.name for path in state.iterdir()}


def test_without_a_state_folder_the_copy_is_temporary(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing can be kept, the copy ends with the process."""
    monkeypatch.setattr(programs, "state_folder", lambda _env: None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    removals: list[Path] = []
    monkeypatch.setattr(atexit, "register", lambda _act, path, **_: removals.append(path))
    assert [programs.programs_folder()] == removals
    assert programs.program("agents/base/hook.py").is_relative_to(tmp_path)


def test_a_sandbox_hides_the_state_folder_but_not_the_copy(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions run the programs in the state of a home folder, and read nothing else there."""
    project = tmp_path / "project"
    project.mkdir()
    needs_bubblewrap(project)
    # as for a home folder, which no private temporary folder covers
    monkeypatch.setattr(RoleView, "temporary", ())
    hook = programs.program("agents/base/hook.py")
    (state.parent / "control.key").write_text("secret")
    view = role_view("implementing", project=project)
    with ExitStack() as stack:
        enclosure = enclosure_of(view, env=os.environ, stack=stack)
        assert enclosure is not None
        command = enclosure.command(["cat", str(hook), str(state.parent / "control.key")])
        done = subprocess.run(command, capture_output=True, timeout=LIMIT)
    assert hook.read_bytes() == done.stdout
    assert 1 == done.returncode
    assert b"control.key: No such file" in done.stderr
