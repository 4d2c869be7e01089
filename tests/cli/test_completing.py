"""Shell completion of command lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from cuggino_cli.commands import COMMANDS
from cuggino_cli.main import cli


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        "journal/0193b2c1-old.jsonl",
        "journal/0193b2c2-new.jsonl",
        "backlog/001-login.md",
        "backlog/.hidden",
        "parked/002-search.md",
        "spec-issues/a.md",
        "tbd/b.md",
    ):
        path = tmp_path / ".cuggino" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def offered(*words: str) -> list[str]:
    """Return the completions of the last word."""
    complete = ShellComplete(cli, {}, "cuggino", "_CUGGINO_COMPLETE")
    return [item.value for item in complete.get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("wa",), ["watch"]),
        (("run", "--foc"), ["--focus"]),
        (("run", "--agent", "co"), ["codex", "copilot"]),
        (("doctor", "-a", "sc"), ["scripted:"]),
        (("runs", "show", ""), ["0193b2c2-new", "0193b2c1-old"]),
        (("deliver", "--resume", "0193b2c1"), ["0193b2c1-old"]),
        (("report", "0193b2c1"), ["0193b2c1-old"]),
        (("backlog", "show", ""), ["001-login.md", "002-search.md"]),
        (("backlog", "retry", ""), ["002-search.md"]),
        (("issues", "resolve", ""), ["a.md", "b.md"]),
        (("help", "ev"), ["events", "evidence"]),
        (("help", "events", "CommitP"), ["CommitPerformed"]),
        (("help", "runs", ""), ["list", "replay", "show"]),
        (("help", "run", ""), []),
    ],
)
def test_offers(words: tuple[str, ...], expected: list[str]) -> None:
    """Commands, options, agents, runs, items, issues and topics are offered where they belong."""
    assert sorted(expected) == sorted(offered(*words))


def test_newest_run_is_first() -> None:
    """The newest run is offered first."""
    assert ["0193b2c2-new", "0193b2c1-old"] == offered("runs", "show", "")


def test_all_commands_are_offered() -> None:
    """Without a word, all commands are offered."""
    assert list(COMMANDS) == offered("")


def test_nothing_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without runs offers none and raises no error."""
    (tmp_path / "empty" / ".git").mkdir(parents=True)  # where the search for a project ends
    monkeypatch.chdir(tmp_path / "empty")
    assert [] == offered("runs", "show", "")
