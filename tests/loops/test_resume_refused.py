"""Runs that cannot be gone on with are refused before anything is done, and then cleared away."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.errors import RunNotResumable, StorageError
from cuggino.events import RunStarted
from cuggino.loops import LoopRunOptions
from cuggino.loops.resuming import resumed_options
from cuggino.storage import Workspace, find_run, list_journals
from tests.loops.resumable import Process
from tests.loops.turns import SPEC_ISSUE, STORIES, TWO_ROUNDS


@pytest.mark.parametrize("name", STORIES)
def test_a_finished_run(name: str, tmp_path: Path) -> None:
    """A run with a result is refused, by the search and by the loop, and nothing is written."""
    process = Process(tmp_path, STORIES[name])
    process.run()
    before = process.journal
    with pytest.raises(RunNotResumable, match="has ended"):
        find_run(process.workspace.journal, before.run_id[:13])
    with pytest.raises(RunNotResumable, match="no unfinished run"):
        find_run(process.workspace.journal, None)
    again = Process(tmp_path, STORIES[name])
    seen = again.resume()
    assert [("error", RunNotResumable)] == [(kind, type(value)) for _, kind, value in seen]
    assert not isinstance(seen[0][2], StorageError)  # the disk is not to blame
    assert [] == again.agent.spawned
    assert before == again.journal
    again.assert_released()


def test_a_run_that_went_on_elsewhere(tmp_path: Path) -> None:
    """A journal that has grown since it was read is refused: its stages are done already."""
    Process(tmp_path, TWO_ROUNDS).run(dispose_at=3.5)
    stale = Process(tmp_path, TWO_ROUNDS)
    known = stale.journal
    Process(tmp_path, TWO_ROUNDS).resume()
    grown = stale.journal
    seen = stale.resume(known=known)
    assert [("error", RunNotResumable)] == [(kind, type(value)) for _, kind, value in seen]
    assert "another process has just gone on" in seen[0][2].message
    assert [] == stale.agent.spawned
    assert grown == stale.journal
    stale.assert_released()


def test_a_journal_of_other_stages(tmp_path: Path) -> None:
    """A journal whose stages have other names is refused by name, with no agent started."""
    Process(tmp_path, TWO_ROUNDS).run(dispose_at=3.5)
    process = Process(tmp_path, TWO_ROUNDS)
    (path,) = list_journals(process.workspace.journal)
    text = path.read_text()
    assert 1 == text.count('"name":"planning"')
    path.write_text(text.replace('"name":"planning"', '"name":"dreaming"'))
    seen = process.resume()
    kind, error = seen[-1][1:]
    assert ("error", RunNotResumable) == (kind, type(error))
    assert "is dreaming, but this version of the loop has planning there" in error.message
    assert [] == process.agent.spawned
    process.assert_released()


def test_left_overs_are_removed(tmp_path: Path) -> None:
    """The next run removes session files and journals of which no run can go on; others stay."""
    workspace = Workspace(tmp_path)
    Process(tmp_path, TWO_ROUNDS).run()
    done = list_journals(workspace.journal)[0].stem
    Process(tmp_path, TWO_ROUNDS).run(dispose_at=3.5)
    unfinished = list_journals(workspace.journal)[0].stem
    assert done != unfinished
    never = "0193b2c1-0000-7000-8000-000000000000"
    for name in (f"{done}.md", f"{done}.review.md", f"{never}.md", "notes.md"):
        (workspace.wip / name).touch()
    (workspace.journal / f"{never}.jsonl").touch()
    assert "completed" == Process(tmp_path, SPEC_ISSUE).run()[-1][1]
    left = {path.name.partition(".")[0] for path in workspace.wip.iterdir()}
    assert {unfinished, "notes"} == left
    assert not (workspace.journal / f"{never}.jsonl").exists()
    assert 3 == len(list_journals(workspace.journal))


def test_options_of_another_version(tmp_path: Path) -> None:
    """Options that this version does not understand are refused by name."""
    started = RunStarted(
        run_id="1", kind="run", command="cuggino run", focus="x", options={"gate": "sometimes"}
    )
    current = LoopRunOptions(cwd=tmp_path, focus="x")
    with pytest.raises(RunNotResumable, match="the options of run 1 cannot be used") as caught:
        resumed_options(current, started)
    assert "gate" in caught.value.message
    assert "start the run anew" == caught.value.hint
