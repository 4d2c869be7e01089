"""Finding the page that is served for a project."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cuggino.errors import StorageError
from cuggino.storage import announce_page, served_page

URL = "http://127.0.0.1:8470/secret/?t=token"


def _project(tmp_path: Path, name: str = "shop") -> Path:
    folder = tmp_path / name
    folder.mkdir()
    return folder


def test_page_is_found_while_it_is_served(tmp_path: Path) -> None:
    """Other programs of the user find the link of a project, until the server ends."""
    shop, blog, state = _project(tmp_path), _project(tmp_path, "blog"), tmp_path / "state"
    assert served_page(shop, state=state) is None
    with announce_page(URL, [shop, blog], state=state):
        assert served_page(shop, state=state) == served_page(blog, state=state) == URL
        assert served_page(tmp_path, state=state) is None
    assert served_page(shop, state=state) is None
    assert [] == list(state.rglob("*.json"))


def test_only_the_user_can_read_the_link(tmp_path: Path) -> None:
    """The file and its folder are private, regardless of the umask."""
    with announce_page(URL, [tmp_path], state=tmp_path / "state"):
        (file,) = (tmp_path / "state").rglob("*.json")
        assert 0o600 == stat.S_IMODE(file.stat().st_mode)
        assert 0o700 == stat.S_IMODE(file.parent.stat().st_mode)


def test_file_of_a_killed_server_counts_for_nothing(tmp_path: Path) -> None:
    """The lock ends with the process; the next look removes the file."""
    program = (
        "import os, sys, pathlib; from cuggino.storage import announce_page\n"
        "with announce_page(sys.argv[1], [pathlib.Path(sys.argv[2])],"
        " state=pathlib.Path(sys.argv[2])): os.kill(os.getpid(), 9)"
    )
    ran = subprocess.run([sys.executable, "-c", program, URL, str(tmp_path)], check=False)
    assert -9 == ran.returncode
    assert 1 == len(list(tmp_path.rglob("*.json")))
    assert served_page(tmp_path, state=tmp_path) is None
    assert [] == list(tmp_path.rglob("*.json"))


def test_two_servers_of_one_process(tmp_path: Path) -> None:
    """Each has its own file."""
    one, two, state = _project(tmp_path, "one"), _project(tmp_path, "two"), tmp_path / "state"
    with announce_page("1", [one], state=state):
        with announce_page("2", [two], state=state):
            assert ("1", "2") == (served_page(one, state=state), served_page(two, state=state))
        assert "1" == served_page(one, state=state)


def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """A state folder that is a file is an error that names it."""
    state = tmp_path / "state"
    state.write_text("")
    with pytest.raises(StorageError, match="state"), announce_page(URL, [tmp_path], state=state):
        pass
    assert served_page(tmp_path, state=state) is None


def test_without_a_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written, and nothing found."""
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv("HOME", raising=False)
    with announce_page(URL, [tmp_path]):
        assert served_page(tmp_path) is None
