"""Resolving paths that share folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuggino.sandbox.resolving import Resolver


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "real" / "file").touch()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "up").symlink_to("..")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "gone").symlink_to("nowhere/else")
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        *("real", "real/inner", "real/file", "link", "link/inner", "link/up/link/file"),
        *("real/inner/../../link", "loop", "loop/below", "gone", "gone/below", "missing/file"),
        *("real/file/below", ".", "link/.."),
    ],
)
def test_paths_are_resolved_as_by_python(tree: Path, name: str) -> None:
    resolver = Resolver()
    paths = [tree / name, tree / name / "more", tree / "link" / name]
    assert [str(resolver.path(path)) for path in paths] == [
        os.path.realpath(path) for path in paths
    ]


def test_relative_paths_start_at_the_working_directory(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree)
    for name in ("real", "link/inner", ".", "..", "link/../real"):
        assert Resolver().path(Path(name)) == Path(name).resolve()


def test_the_root_is_itself() -> None:
    assert Resolver().path(Path("/")) == Path("/")
    assert Resolver().path(Path("/missing")) == Path("/missing")
