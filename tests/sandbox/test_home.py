"""The home folder of an environment, and paths of settings in it."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from cuggino.sandbox import home_of, named_paths


def test_the_home_of_an_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a folder with a whole path, resolved, and never the root."""
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    link = tmp_path / "link"
    link.symlink_to(home)
    assert home.resolve() == home_of({"HOME": str(home)}) == home_of({"HOME": str(link)})
    for name in ("/", "home", str(tmp_path / "missing")):
        assert home_of({"HOME": name}) is None


def test_the_home_of_an_environment_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is that of the user, who may have no entry."""
    entry = list(pwd.getpwuid(os.getuid()))
    entry[5] = str(tmp_path)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: pwd.struct_passwd(entry))
    for env in ({}, {"HOME": ""}):
        assert tmp_path.resolve() == home_of(env)

    def unknown(_: int) -> pwd.struct_passwd:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert home_of({}) is None


def test_named_paths() -> None:
    """Those in the home folder count only with one."""
    home = Path("/home/me")
    assert (home / "a/b", Path("/c")) == named_paths(["~/a/b", "/c"], home)
    assert (Path("/c"),) == named_paths(["~/a/b", "/c"], None)
