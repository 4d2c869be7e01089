"""The search for the parser of shell scripts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cuggino.errors import ConfigError
from cuggino.guard.shell import shfmt


def test_it_is_found_next_to_unpacked_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found in the `bin` of a package folder, where a single-file program unpacks it."""
    empty = tmp_path / "empty"
    packages = tmp_path / "x" / "y" / "z" / "packages"
    monkeypatch.setattr(shfmt, "__file__", str(packages / "cuggino/guard/shell/shfmt.py"))
    monkeypatch.setattr(sys, "executable", str(empty / "python3"))
    monkeypatch.setattr(sys, "prefix", str(empty))
    monkeypatch.setenv("PATH", str(empty))
    with pytest.raises(ConfigError, match="is not installed"):
        shfmt.find_shfmt()
    program = packages / "bin" / "shfmt"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    assert str(program) == shfmt.find_shfmt()


def test_a_folder_that_cannot_be_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder on the PATH that cannot be read is passed over."""
    empty, useful = tmp_path / "empty", tmp_path / "useful"
    useful.mkdir()
    (useful / "shfmt").touch(mode=0o755)
    monkeypatch.setattr(shfmt, "__file__", str(empty / "1/2/3/shfmt.py"))
    monkeypatch.setattr(sys, "executable", str(empty / "python3"))
    monkeypatch.setattr(sys, "prefix", str(empty))
    monkeypatch.setenv("PATH", f"/{'too-long' * 1000}:{useful}")
    assert str(useful / "shfmt") == shfmt.find_shfmt()
