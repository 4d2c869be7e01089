"""`no_leaks` where the system hides the names of files and processes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from cuggino.testing import no_leaks
from cuggino.testing.leaks import is_guardian


def hidden(_process: psutil.Process) -> Any:
    raise psutil.AccessDenied


def test_a_file_without_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An open file is reported by number where the names cannot be read."""
    path = tmp_path / "a"
    with pytest.raises(AssertionError) as told, no_leaks(within=0):
        file = path.open("w")
    file.close()
    assert f"left behind: open files {path}" == str(told.value)
    monkeypatch.setattr(psutil.Process, "open_files", hidden)
    with pytest.raises(AssertionError) as told, no_leaks(within=0):
        file = path.open("w")
    file.close()
    assert "left behind: open files" == str(told.value)


def test_a_process_without_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child process is reported by its id where its name cannot be read."""
    monkeypatch.setattr(psutil.Process, "name", hidden)
    with pytest.raises(AssertionError, match="left behind: ") as told, no_leaks(within=0):
        child = subprocess.Popen(["sleep", "60"])
    child.kill()
    child.wait()
    assert f"process {child.pid} " in str(told.value)


def test_a_child_that_has_just_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process whose command line cannot be read counts as ended."""
    assert not is_guardian(psutil.Process())
    monkeypatch.setattr(psutil.Process, "cmdline", hidden)
    assert is_guardian(psutil.Process())
