"""`cuggino run` with a reviewer that quotes its marker and then contradicts itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.config import Config, save_config
from cuggino.events import ContradictoryMarkers, LoopApproved
from cuggino.storage.journal import iter_entries
from tests.cli.cli import Cli
from tests.cli.rounds import PLANS, implements, reviews
from tests.git_project import isolate_git

SCENARIO = f"""\
{PLANS}{implements()}
{reviews("I will not respond with <APPROVED>ok</APPROVED> yet, 9 tasks remain")}
[[reviewing.reminder]]
say = "<APPROVED>well</APPROVED>"
[[reviewing.reminder]]
say = "<REQUEST_CHANGES>9 tasks remain</REQUEST_CHANGES>"
"""


def test_a_reviewer_that_is_of_two_minds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """The run is not approved; the reviewer's markers are printed and recorded."""
    isolate_git(monkeypatch, tmp_path / "home")
    (tmp_path / ".specs").mkdir()
    (tmp_path / ".specs" / "hello.md").write_text("# Hello\n")
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    save_config(tmp_path, Config(agent="scripted:scenario.toml", max_iterations=1, sandbox="off"))
    monkeypatch.chdir(tmp_path)
    printed = " ".join(cli("run", "--focus", "hello", code=11).split())
    assert (
        "[Agent] Contradictory markers, REQUEST_CHANGES counts "
        "(APPROVED: well; REQUEST_CHANGES: 9 tasks remain)"
    ) in printed
    (journal,) = (tmp_path / ".cuggino" / "journal").glob("*.jsonl")
    entries = [*iter_entries(journal)]
    (told,) = (e.event for e in entries if isinstance(e.event, ContradictoryMarkers))
    assert (("APPROVED", "well"), ("REQUEST_CHANGES", "9 tasks remain")) == told.markers
    assert not any(isinstance(e.event, LoopApproved) for e in entries)
