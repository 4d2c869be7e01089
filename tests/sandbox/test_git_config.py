"""Git's settings, read without git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cuggino.sandbox.git_config import named_by_settings, settings_in

TEXTS = {
    "plain": "[core]\n\tbare = false\n\tsymlinks\n[user]\n\tname = A B\n",
    "sections": '[a "B c"]\nx=1\n[a.b]\nx=2\n[A "q\\"u\\\\o"] y = 3\n[branch "x/y"]\n\tmerge = z\n',
    "comments": '# one\n[a] ; two\nx = 1 # three\ny = "a # b" ; c\n;z = 4\n',
    "quotes": '[a]\nx = " b "\ny = c"d"e\nz = "a\\nb\\tc"\nq = a\\\\b\n',
    "long": "[a]\nx = one \\\n two\ny = 3\n",
    "case": "[CORE]\nHooksPath = X\n[Include]\nPATH = ../y\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_settings_are_those_of_git(tmp_path: Path, text: str) -> None:
    """Git itself lists the same keys and values."""
    file = tmp_path / "config"
    file.write_text(text)
    listed = subprocess.run(
        ["git", "config", "--file", file, "--list", "-z"],
        capture_output=True,
        text=True,
        check=True,
    )
    expected = [entry.partition("\n")[::2] for entry in listed.stdout.split("\0") if entry]
    assert expected == list(settings_in(file))


def test_files_that_settings_name(tmp_path: Path) -> None:
    """Included files, also by others and missing ones, and programs that get logins or keys."""
    project, home = tmp_path / "project", tmp_path / "home"
    git = project / ".git"
    git.mkdir(parents=True)
    home.mkdir()
    (project / "sign.sh").touch()
    (project / "more").write_text("[include]\npath = sub/deep\n")
    (git / "config").write_text(
        '[include]\npath = ../more\n[includeIf "onbranch:x"]\npath = ../later\n'
        "[gpg]\nprogram = ./sign.sh --fast\n[credential]\nhelper = !./none.sh\n"
        "[core]\nhooksPath = .husky\n"
    )
    (home / ".gitconfig").write_text(f"[include]\npath = {project}/team\npath = ~/own\n")
    found = set(named_by_settings(project, [git], home))
    names = {"more", "sub/deep", "later", "sign.sh", "team"}
    assert {project / name for name in names} == found


def test_a_file_that_includes_itself(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("[include]\npath = config\n")
    assert {tmp_path / "config"} == set(named_by_settings(tmp_path, [tmp_path], None))
