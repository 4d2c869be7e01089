"""A run is cut at every instant of its disk and resumed: it ends as if nothing had happened."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cuggino.events import (
    LoopTerminalEvent,
    RunContinued,
    RunEnded,
    RunResumed,
    SessionEnded,
    StageCost,
    StageFinished,
    StageStarted,
)
from cuggino.storage import Workspace, list_journals, run_totals
from tests.loops.resumable import (
    Instants,
    Process,
    Undisturbed,
    at_each_append,
    finished_turns,
    resumed,
)
from tests.loops.turns import COST, ENDINGS, STORIES, TWO_ROUNDS


@pytest.fixture(params=STORIES)
def story(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Undisturbed:
    story = Undisturbed(tmp_path, STORIES[request.param], monkeypatch)
    assert ENDINGS[request.param] == story.journal.state
    return story


def cuts(copy: Path, place: Path) -> list[Path]:
    """The instant itself, and the same with half of its journal's last line."""
    begun = list_journals(Workspace(copy).journal)
    if not begun:
        return [copy]
    half = place / f"{copy.name}-half"
    shutil.copytree(copy, half)
    (path,) = list_journals(Workspace(half).journal)
    whole = path.read_bytes()
    begin = whole.rstrip(b"\n").rfind(b"\n") + 1
    path.write_bytes(whole[: (begin + len(whole)) // 2])
    return [copy, half] if begin else [copy]


def test_cut_at_every_instant(
    story: Undisturbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was on the disk when it was killed: work, files and words are as undisturbed."""
    tried = 0
    for copy in story.instants.copies:
        for cut in cuts(copy, tmp_path):
            process = story.at(cut, tmp_path / f"again-{cut.name}")
            before = process.journal if process.has_begun else None
            if before is not None and not before.resumable:
                continue
            seen, log = resumed(process, monkeypatch)
            tried += 1
            story.assert_equals(process, log)
            assert isinstance(seen[-1], LoopTerminalEvent), cut.name
            done = finished_turns(before) if before else []
            left = [turn for turn in story.process.agent.spawned if turn not in done]
            assert left == process.agent.spawned, cut.name
            if before is not None:
                assert run_totals(before) == seen[0]
                assert 1 == sum(isinstance(event, RunResumed) for event in seen)
    assert tried > 60


def test_cut_twice(story: Undisturbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is killed again while it goes on still ends as the undisturbed one."""
    tried = 0
    for copy in story.instants.copies[::11]:
        folder = tmp_path / f"again-{copy.name}"
        process = story.at(copy, folder)
        if not process.has_begun or not process.journal.resumable:
            continue
        second = Instants(folder, tmp_path / f"second-{copy.name}")
        with at_each_append(monkeypatch, second.keep):
            process.resume()
        for again in second.copies[:: max(1, len(second.copies) // 5)]:
            last = story.at(again, tmp_path / f"last-{copy.name}-{again.name}")
            if not last.journal.resumable:
                continue
            _, log = resumed(last, monkeypatch, at=5000)
            tried += 1
            story.assert_equals(last, log)
    assert tried > 10


def test_the_cost_of_all_processes(
    story: Undisturbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The total counts each session once, also one whose stage was not finished and ran again."""
    sessions = len(story.process.agent.spawned)
    assert sessions == len(finished_turns(story.journal))
    assert COST * sessions == run_totals(story.journal).cost_usd
    lost = set()
    for copy in story.instants.copies:
        process = story.at(copy, tmp_path / f"again-{copy.name}")
        before = process.journal if process.has_begun else None
        if before is None or not before.resumable:
            continue
        ended = [entry for entry in before.entries if isinstance(entry.event, SessionEnded)]
        wasted = len(ended) - len(finished_turns(before))
        if wasted in lost and copy not in story.instants.copies[::3]:
            continue
        lost.add(wasted)
        seen, _ = resumed(process, monkeypatch)
        totals = run_totals(process.journal)
        assert COST * (sessions + wasted) == totals.cost_usd
        costs = [event for event in seen if isinstance(event, StageCost)]
        if costs:
            assert totals.cost_usd == costs[-1].total_cost
    assert {0, 1} == lost


def test_times_of_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The duration of a resumed run is that of its processes, without the time between them."""
    story = Undisturbed(tmp_path, TWO_ROUNDS, monkeypatch)
    whole = run_totals(story.journal)
    process = Process(tmp_path / "cut", TWO_ROUNDS)
    process.run(dispose_at=3.5)  # the second implementing agent has worked for half a second
    assert "interrupted" == process.journal.state
    before = run_totals(process.journal)
    assert (3.5, 1, 1, 3) == (before.duration, before.rounds, before.tasks, before.agents)
    again = Process(process.folder, TWO_ROUNDS)
    again.resume(at=9999)
    after = run_totals(again.journal)
    assert whole.duration + 0.5 == after.duration
    assert (2, 3) == (after.rounds, after.tasks)
    assert [message for _, message in after.commits] == again.repository.commits


def test_half_a_review_of_a_killed_reviewer_is_not_read(tmp_path: Path) -> None:
    """A reviewer that begins anew finds no review file of the one that was killed."""
    turns = {**TWO_ROUNDS, "reviewing": [*TWO_ROUNDS["reviewing"]]}
    process = Process(tmp_path, turns)
    process.run(dispose_at=5.5)
    assert ("reviewing", 1) == process.agent.spawned[-1]
    (half,) = process.workspace.wip.glob("*.review.md")
    assert "Three is missing" in half.read_text()
    turns["reviewing"][0] = type(turns["reviewing"][0])(turns["reviewing"][0].said)
    again = Process(tmp_path, turns)
    again.resume()
    (second,) = [options for options in again.agent.told if options.role == "planning"]
    assert "redo" in (second.system_prompt or "")
    assert "Three is missing" not in (second.system_prompt or "")


def test_what_an_undisturbed_run_writes(story: Undisturbed) -> None:
    """A run that nobody has cut has a first and a last entry, stages, and no continuation."""
    kinds = [type(entry.event) for entry in story.journal.entries]
    assert StageStarted in kinds
    assert StageFinished in kinds
    assert (1, 0) == (kinds.count(RunEnded), kinds.count(RunContinued))
    assert issubclass(kinds[-2], LoopTerminalEvent)
