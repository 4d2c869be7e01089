"""Files are read and named as git stores them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuggino.git import EXECUTABLE, LINK, PLAIN, blob_name, index_files, read_file
from tests.git_project import GitProject


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_a_file_has_the_mode_and_name_that_git_gives_it(tmp_path: Path, algorithm: str) -> None:
    """Files, programs and links, also dangling ones, are as in an index."""
    project = GitProject(tmp_path / "project")
    project.git("init", "--quiet", f"--object-format={algorithm}", "of")
    root = project.root / "of"
    (root / "plain").write_bytes(b"\0\r\n")
    (root / "run").touch(0o755)
    (root / "link").symlink_to("nowhere")
    project.git("-C", "of", "add", "--all")
    listed = project.git("-C", "of", "ls-files", "--stage", "-z").split("\0")[:-1]
    modes = {}
    for file in index_files(listed):
        modes[file.path], content = read_file(root / file.path, 100)
        assert (file.mode, file.blob) == (modes[file.path], blob_name(content, algorithm))
    assert {"plain": PLAIN, "run": EXECUTABLE, "link": LINK} == modes


def test_what_is_no_file(tmp_path: Path) -> None:
    """Folders, pipes, missing files and larger ones are refused, and nothing waits."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_text("four")
    assert (PLAIN, b"four") == read_file(tmp_path / "large", 4)
    for name in ("", "pipe", "none"):
        with pytest.raises(OSError):
            read_file(tmp_path / name, 4)
    with pytest.raises(OSError):
        read_file(tmp_path / "large", 3)
