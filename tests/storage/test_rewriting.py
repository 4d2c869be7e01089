"""Files of a project that are written anew."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from cuggino.storage.rewriting import rewrite


def test_a_new_file(tmp_path: Path) -> None:
    """It is made with its folders, and nothing is left beside it."""
    rewrite(tmp_path / "a" / "b.json", "è\r\n")
    assert ["b.json"] == [path.name for path in (tmp_path / "a").iterdir()]
    assert "è\r\n".encode() == (tmp_path / "a" / "b.json").read_bytes()


def test_what_stays(tmp_path: Path) -> None:
    """A link stays one, and the file behind it keeps its permissions."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    rewrite(link, "new")
    assert link.is_symlink()
    assert ("new", 0o640) == (real.read_text(), stat.S_IMODE(real.stat().st_mode))


@pytest.mark.parametrize("laid", ["link", "file"])
def test_what_lies_in_the_way(laid: str, tmp_path: Path) -> None:
    """What an agent, or a killed process, has laid beside the file is not written through."""
    other, beside = tmp_path / "other", tmp_path / ".a.json.tmp"
    other.write_text("somebody's")
    if laid == "link":
        beside.symlink_to(other)
    else:
        beside.hardlink_to(other)
    rewrite(tmp_path / "a.json", "ours")
    assert "somebody's" == other.read_text()
    assert ("ours", False) == (
        (tmp_path / "a.json").read_text(),
        (tmp_path / "a.json").is_symlink(),
    )
    assert not beside.exists()


def test_a_failure(tmp_path: Path) -> None:
    """The file stays as it is when another cannot take its place."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        rewrite(tmp_path / "a", "text")
    assert ["a"] == [path.name for path in tmp_path.iterdir()]
