"""Privileges that a session of root has given to files: they are taken from them."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from reactivex.operators import do_action

from cuggino.events import Progress
from cuggino.sandbox import privileged_files, protected_for
from cuggino.stages import verified
from cuggino.testing import Marbles

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="capabilities of files are Linux's")

CAPABILITY = struct.pack("<5I", 0x02000001, 1 << 21, 0, 0, 0)  # cap_sys_admin, effective


def give(path: Path) -> None:
    """Give a file capabilities, as `setcap` does."""
    path.write_text("#!/bin/sh\n")
    try:
        os.setxattr(path, "security.capability", CAPABILITY)
    except OSError as error:
        pytest.skip(f"this user may not give capabilities: {error.strerror}")


def set_id(path: Path) -> None:
    """Let a file run with its group, as `chmod g+s` does."""
    path.write_text("#!/bin/sh\n")
    path.chmod(0o2755)


@pytest.mark.skipif(os.getuid() != 0, reason="others than root have few privileges to give")
@pytest.mark.parametrize("given", [give, set_id])
def test_of_a_session(given: Callable[[Path], None], tmp_path: Path) -> None:
    """A file that the role has given them loses them; the rest of it stays."""
    path = tmp_path / "bin" / "tool"
    path.parent.mkdir()

    def work(_: object) -> None:
        given(path)
        assert [path] == list(privileged_files(tmp_path, since=0))

    t = Marbles(p=Progress(content="one"))
    session = t.cold("p|").pipe(do_action(work))
    t.record(session.pipe(verified(protected_for("implementing", project=tmp_path))))
    assert "#!/bin/sh\n" == path.read_text()
    assert path.stat().st_mode & 0o6000 == 0
    assert [] == list(privileged_files(tmp_path, since=0))


def test_of_earlier_ones(tmp_path: Path) -> None:
    """Files that had them before are not looked at: a person gave them."""
    path = tmp_path / "tool"
    give(path)
    assert [] == list(privileged_files(tmp_path, since=path.stat().st_ctime + 1))
    began = path.stat().st_ctime
    assert [path] == list(privileged_files(tmp_path, since=began))
    assert [path] == list(privileged_files(tmp_path.parent, since=began, exempt=[path]))
    assert [] == list(privileged_files(tmp_path.parent, since=began, exempt=[tmp_path]))


def test_of_a_folder_that_was_moved_here(tmp_path: Path) -> None:
    """Its files are older than the session."""
    elsewhere, project = tmp_path / "elsewhere", tmp_path / "project"
    for folder in (elsewhere / "in", project):
        folder.mkdir(parents=True)
    tool = elsewhere / "in" / "tool"
    give(tool)
    before = tool.stat().st_ctime
    moved = project / "bin"
    while elsewhere.stat().st_ctime <= before:  # until the clock of the file system goes on
        elsewhere.rename(moved)
        moved.rename(elsewhere)
    began = elsewhere.stat().st_ctime
    elsewhere.rename(moved)
    assert [moved / "in" / "tool"] == list(privileged_files(project, since=began))
