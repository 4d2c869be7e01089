"""Runs that meet the files of others: links in the workspace, secrets, control characters."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuggino.config import Config, save_config
from cuggino_cli.main import main
from tests.git_project import GitProject, isolate_git

SCENARIO = """
[[planning]]
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan"
[[planning.steps]]
say = "<PLAN_COMPLETE>One task.</PLAN_COMPLETE>"
[[implementing]]
[[implementing.steps]]
write = "settings.ini"
text = "[db]\\npassword = gr33n!Eggs\\n"
[[implementing.steps]]
say = "It answered `Set-Cookie: sid=aB3dE5fG7hJ9kL1m`."
[[implementing.steps]]
say = "<DONE>Add \\u001b[31msettings\\u001b[0m\\u0007</DONE>"
[[reviewing]]
[[reviewing.steps]]
say = "<APPROVED>Fine.</APPROVED>"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    isolate_git(monkeypatch, tmp_path / "home")
    git = GitProject(tmp_path / "project")
    git.write(".specs/a.md", "# A\n")
    git.git("add", "--all")
    git.git("commit", "--message", "Begin")
    (tmp_path / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    save_config(git.root, Config(agent="scripted:../scenario.toml", commit=True, guard="off"))
    monkeypatch.chdir(git.root)
    return git


def test_a_run_through_links(project: GitProject, tmp_path: Path) -> None:
    """A run writes its journal where a link leads, and removes and changes nothing there."""
    other = tmp_path / "transcripts"
    other.mkdir(mode=0o755)
    theirs = [other / f"{name}.jsonl" for name in ("notes", "5f0c2b1e-6d1f-4c5e-9d1e-0123456789ab")]
    for path in theirs:
        path.write_text('{"type":"user"}\n')
        os.utime(path, (1, 1))
    (project.root / ".cuggino").mkdir()
    for name in ("journal", "digests"):
        (project.root / ".cuggino" / name).symlink_to(other)
    assert 0 == main(["run", "--focus", "x", "--quiet"])
    own = {*other.iterdir()} - {*theirs}
    assert [".jsonl"] == [path.suffix for path in own]
    assert ['{"type":"user"}\n'] * 2 == [path.read_text() for path in theirs]
    assert 0o755 == other.stat().st_mode & 0o777


def test_the_message_of_a_commit(project: GitProject) -> None:
    """A marker's control characters are in no commit message."""
    assert 0 == main(["run", "--focus", "x", "--quiet"])
    assert "Add settings\n" == project.message()


def test_secrets_in_a_recording(project: GitProject, tmp_path: Path) -> None:
    """A cassette has neither the password of a written file nor a cookie that an agent repeats."""
    assert 0 == main(["run", "--focus", "x", "--quiet", "--record", "../c.jsonl"])
    text = (tmp_path / "c.jsonl").read_text(encoding="utf-8")
    assert "gr33n!Eggs" in (project.root / "settings.ini").read_text()
    for secret in ("gr33n!Eggs", "aB3dE5fG7hJ9kL1m"):
        assert secret not in text
    assert "password = ⟦masked assignment⟧" in text
