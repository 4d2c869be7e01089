"""`commits_since`, with a real repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import cuggino
from cuggino.stages.repository import commits_since


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e@x", *words]
    return subprocess.check_output(command, text=True).strip()


def commit(folder: Path, subject: str) -> str:
    git(folder, "commit", "-q", "--allow-empty", "-m", subject)
    return git(folder, "rev-parse", "HEAD")


def since(folder: Path, base: str | None) -> list[list[str]]:
    found = cuggino.run(commits_since(folder, base))
    assert isinstance(found, list)
    return found


def test_what_is_behind_a_commit(tmp_path: Path) -> None:
    """The abbreviated hash and the subject of each, the oldest first."""
    git(tmp_path, "init", "-q")
    base = commit(tmp_path, "feat: a")
    first, second = commit(tmp_path, "fix: b\n\nlong text"), commit(tmp_path, "docs: ä c")
    found = since(tmp_path, base)
    assert ["fix: b", "docs: ä c"] == [subject for _, subject in found]
    for full, (short, _) in zip((first, second), found, strict=True):
        assert full.startswith(short)
    assert [] == since(tmp_path, second)


def test_the_first_commits(tmp_path: Path) -> None:
    """Without a commit before all are new; in an empty repository there are none."""
    git(tmp_path, "init", "-q")
    assert [] == since(tmp_path, None)
    commit(tmp_path, "feat: a")
    commit(tmp_path, "feat: b")
    assert ["feat: a", "feat: b"] == [subject for _, subject in since(tmp_path, None)]


def test_an_amended_commit(tmp_path: Path) -> None:
    """An amended commit is a new one, although the old one is on no branch any more."""
    git(tmp_path, "init", "-q")
    commit(tmp_path, "feat: a")
    base = commit(tmp_path, "feat: b")
    git(tmp_path, "commit", "-q", "--amend", "--allow-empty", "-m", "feat: c")
    assert ["feat: c"] == [subject for _, subject in since(tmp_path, base)]


def test_no_repository(tmp_path: Path) -> None:
    """There are none, also where the commit before is not known."""
    assert [] == since(tmp_path, None)
    assert [] == since(tmp_path, "0" * 40)
    git(tmp_path, "init", "-q")
    commit(tmp_path, "feat: a")
    assert [] == since(tmp_path, "0" * 40)


def test_settings_of_a_person(tmp_path: Path) -> None:
    """Colours and signatures that are always shown do not get between."""
    git(tmp_path, "init", "-q")
    base = commit(tmp_path, "feat: a")
    for key, value in (("color.ui", "always"), ("log.showSignature", "true"), ("log.follow", "1")):
        git(tmp_path, "config", key, value)
    commit(tmp_path, "feat: b")
    assert ["feat: b"] == [subject for _, subject in since(tmp_path, base)]


def test_at_most_the_latest(tmp_path: Path) -> None:
    """Of very many it is the latest 200."""
    git(tmp_path, "init", "-q")
    stream = "".join(
        f"commit refs/heads/x\ncommitter n <e@x> {n} +0000\ndata {len(f'c{n}')}\nc{n}\n"
        for n in range(1, 206)
    )
    command = ["git", "-C", str(tmp_path), "fast-import", "--quiet"]
    subprocess.run(command, input=stream.encode(), check=True)
    git(tmp_path, "checkout", "-q", "x")
    found = [subject for _, subject in since(tmp_path, None)]
    assert [f"c{n}" for n in range(6, 206)] == found
