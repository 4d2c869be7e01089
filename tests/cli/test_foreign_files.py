"""Runs that meet the files of others: links in the workspace, secrets, control characters."""

from __future__ import annotations

import os
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cuggino.config import Config, save_config
from cuggino.events import RunStarted
from cuggino.storage import Journal, new_run_id
from cuggino_cli.main import main
from tests.cli.cli import Cli
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
    save_config(
        git.root, Config(agent="scripted:../scenario.toml", commit=True, guard="off", sandbox="off")
    )
    monkeypatch.chdir(git.root)
    return git


def _files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return mode and content of every file below the folder."""
    found = sorted(folder.rglob("*"))
    modes = {str(path.relative_to(folder)): path.lstat().st_mode for path in (folder, *found)}
    content = {str(path.relative_to(folder)): path.read_bytes() for path in found if path.is_file()}
    return {name: (mode, content.get(name, b"")) for name, mode in modes.items()}


@pytest.mark.parametrize("name", [".cuggino", ".cuggino/journal"])
def test_links_to_files_of_others(project: GitProject, tmp_path: Path, name: str, cli: Cli) -> None:
    """No run starts in a workspace that is a link to the files of others, which stay."""
    other = tmp_path / "transcripts"
    other.mkdir(mode=0o755)
    for stem in ("notes", "5f0c2b1e-6d1f-4c5e-9d1e-0123456789ab"):
        (other / f"{stem}.jsonl").write_text('{"type":"user"}\n')
        os.utime(other / f"{stem}.jsonl", (1, 1))
    (project.root / name).parent.mkdir(exist_ok=True)
    (project.root / name).symlink_to("../" * (1 + name.count("/")) + "transcripts")
    before = _files(other)
    for command in (["run", "--focus", "x"], ["watch"]):
        assert f"{name} is a link to ../" in cli.err(*command)
    assert 0 == main(["runs"])
    assert before == _files(other)


@pytest.mark.real_agent
@pytest.mark.parametrize("name", [".cuggino", ".cuggino/journal"])
def test_links_to_a_folder_of_ones_own(project: GitProject, tmp_path: Path, name: str) -> None:
    """A user can keep the workspace, or the journals, elsewhere; nothing is pruned there."""
    other = tmp_path / "elsewhere"
    other.mkdir(mode=0o755)
    (project.root / name).parent.mkdir(exist_ok=True)
    (project.root / name).symlink_to(other)
    for count in (1, 2):
        assert 0 == main(["run", "--focus", "x", "--quiet"])
        assert count == len([*other.rglob("*.jsonl")])
    assert 0o755 == other.stat().st_mode & 0o777


def test_a_link_to_the_journal_of_another_project(
    project: GitProject, tmp_path: Path, cli: Cli
) -> None:
    """A link among the journals is neither resumed nor listed, and its target stays."""
    started = RunStarted(run_id=new_run_id(), kind="run", command="cuggino run", focus="x")
    with closing(Journal.create(tmp_path / "other", started, at=datetime.now(UTC))) as journal:
        path = journal.path
    content = path.read_bytes()
    (project.root / ".cuggino/journal").mkdir(parents=True)
    (project.root / ".cuggino/journal" / path.name).symlink_to(path)
    assert "there is no unfinished run" in cli.err("run", "--resume")
    assert 0 == main(["runs"])
    assert started.run_id[:8] not in cli.printed().out
    assert content == path.read_bytes()


def test_links_in_place_of_the_digests(project: GitProject, tmp_path: Path) -> None:
    """A run writes no digest where a link leads."""
    other = tmp_path / "other"
    other.mkdir()
    (project.root / ".cuggino").mkdir()
    (project.root / ".cuggino/digests").symlink_to(other)
    assert 0 == main(["run", "--focus", "x", "--quiet"])
    assert [] == [*other.iterdir()]


def test_the_message_of_a_commit(project: GitProject) -> None:
    """A marker's control characters are in no commit message."""
    assert 0 == main(["run", "--focus", "x", "--quiet"])
    assert "Add settings\n" == project.message()


def test_secrets_in_a_recording(
    project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cassette has no password of the environment, although an agent wrote it into a file."""
    monkeypatch.setenv("DB_PASSWORD", "gr33n!Eggs")
    assert 0 == main(["run", "--focus", "x", "--quiet", "--record", "../c.jsonl"])
    text = (tmp_path / "c.jsonl").read_text(encoding="utf-8")
    assert "gr33n!Eggs" in (project.root / "settings.ini").read_text()
    assert "gr33n!Eggs" not in text
    assert "password = ⟦masked " in text
