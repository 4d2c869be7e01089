"""Where the parser of shell scripts is looked for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cuggino.errors import ConfigError
from cuggino.security.shell import shfmt


def test_beside_packages_that_were_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the `bin` of a folder of packages, as a program in a single file unpacks them."""
    empty = tmp_path / "empty"
    packages = tmp_path / "x" / "y" / "z" / "packages"
    monkeypatch.setattr(shfmt, "__file__", str(packages / "cuggino/security/shell/shfmt.py"))
    monkeypatch.setattr(sys, "executable", str(empty / "python3"))
    monkeypatch.setattr(sys, "prefix", str(empty))
    monkeypatch.setenv("PATH", str(empty))
    with pytest.raises(ConfigError, match="is not installed"):
        shfmt.find_shfmt()
    program = packages / "bin" / "shfmt"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    assert str(program) == shfmt.find_shfmt()
