"""A deliverables run is cut at every instant and resumed: it ends as if nothing had happened."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from cuggino.events import DeliverEnded, RunContinued, RunEnded, SessionEnded
from cuggino.storage import Workspace, list_journals, read_journal, run_totals
from tests.loops.delivered_runs import COST, Process, Undisturbed, finished
from tests.loops.delivered_stories import STORIES, WHOLE, assert_resumed
from tests.loops.resumable import Instants, at_each_append


@pytest.fixture(params=STORIES)
def story(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Undisturbed:
    turns, options, reason, sessions = STORIES[request.param]
    story = Undisturbed(tmp_path, turns, monkeypatch, **options)
    assert (reason, sessions) == (story.story.ended.reason, story.story.ended.sessions)
    assert story.end.sessions == story.process.agent.begun
    assert [] == story.end.left
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


def test_killed_at_every_instant(story: Undisturbed, tmp_path: Path) -> None:
    """Whatever was on the disk when it was killed: words, work and end are as undisturbed."""
    tried = 0
    every = 1 if story.turns is WHOLE else 4
    for n, copy in enumerate(story.instants.copies[::every]):
        for cut in cuts(copy, tmp_path) if n % 4 == 0 else [copy]:
            process = story.at(cut, tmp_path / f"again-{cut.name}")
            if process.has_begun and not process.journal.resumable:
                continue
            assert_resumed(story, process)
            tried += 1
    assert tried > 20


@pytest.mark.parametrize("how", ["dispose_at", "interrupt_at"])
def test_stopped_at_every_second(how: str, story: Undisturbed, tmp_path: Path) -> None:
    """A run that was disposed or interrupted in any half second goes on to the same end."""
    length = story.story.ended.duration
    steps = int(length * 2)
    assert steps > 5
    for n in range(0, steps + 1, 1 if story.turns is WHOLE else 3):
        process = Process(tmp_path / f"stopped-{n}", story.turns)
        at: Any = {how: n / 2}
        first = process.run(**story.options, **at)
        if process.journal.state in ("approved", "stalled", "max_iterations"):
            assert n >= steps
            continue
        assert "interrupted" == process.journal.state
        assert (how == "interrupt_at") == bool(first.of(DeliverEnded))
        again = Process(process.folder, story.turns)
        assert_resumed(story, again)


def test_stopped_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is stopped in every process comes to its end, one step further each time."""
    story = Undisturbed(tmp_path, WHOLE, monkeypatch)
    folder = tmp_path / "steps"
    for how in ("dispose_at", "interrupt_at"):
        folder.mkdir(exist_ok=True)
        process = Process(folder / how, WHOLE)
        step: Any = {how: 3.5}
        process.run(**step)
        for n in range(1, 30):
            process = Process(folder / how, WHOLE)
            if not process.journal.resumable:
                break
            step = {how: 1000.0 * n + 3.5 if how == "dispose_at" else 3.5}
            process.resume(at=1000.0 * n, **step)
        assert 3 < n < 29
        story.assert_equals(process)
        continued = [e for e in process.journal.entries if isinstance(e.event, RunContinued)]
        assert n - 1 == len(continued)


def test_killed_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is killed again while it goes on still ends as the undisturbed one."""
    story = Undisturbed(tmp_path, WHOLE, monkeypatch)
    tried = 0
    for copy in story.instants.copies[::29]:
        folder = tmp_path / f"again-{copy.name}"
        process = story.at(copy, folder)
        if not process.has_begun or not process.journal.resumable:
            continue
        second = Instants(folder, tmp_path / f"second-{copy.name}")
        with at_each_append(monkeypatch, second.keep):
            process.resume()
        for cut in second.copies[:: max(1, len(second.copies) // 5)]:
            last = story.at(cut, tmp_path / f"last-{copy.name}-{cut.name}")
            if last.journal.resumable:
                tried += 1
                assert_resumed(story, last, at=5000.0)
    assert tried > 10


def test_the_totals_of_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cost and time are those of all processes, lost work included, without the time between."""
    story = Undisturbed(tmp_path, WHOLE, monkeypatch)
    whole = story.story.ended
    assert 7 * COST == whole.cost_usd  # the crash has told no cost
    process = Process(tmp_path / "cut", WHOLE)
    process.run(dispose_at=6.5)  # half a second into the third session
    again = Process(process.folder, WHOLE)
    ended = again.resume(at=9999.0).ended
    assert whole.cost_usd == ended.cost_usd
    assert whole.duration + 0.5 == ended.duration
    lost = [copy for copy in story.instants.copies if _has_lost_a_session(copy)]
    assert lost
    for copy in lost:
        process = story.at(copy, tmp_path / f"lost-{copy.name}")
        assert whole.cost_usd + COST == process.resume().ended.cost_usd
        assert whole.cost_usd + COST == run_totals(process.journal).cost_usd


def _has_lost_a_session(copy: Path) -> bool:
    """Whether a session had told its cost in a stage that was not finished."""
    paths = list_journals(Workspace(copy).journal)
    if not paths or not paths[0].stat().st_size:
        return False
    journal = read_journal(paths[0])
    told = [entry for entry in journal.entries if isinstance(entry.event, SessionEnded)]
    done = finished(journal)
    return len(told) > len(done) - (("coding", 1) in done)  # the crash has told no cost


def test_what_an_undisturbed_run_writes(story: Undisturbed) -> None:
    """A run that nobody has cut has one end, told right before its last entry."""
    events = [entry.event for entry in story.journal.entries]
    assert 1 == sum(isinstance(event, DeliverEnded) for event in events)
    assert 0 == sum(isinstance(event, RunContinued) for event in events)
    assert [DeliverEnded, RunEnded] == [type(event) for event in events[-2:]]
    assert "deliver" == story.journal.started.kind
    totals = run_totals(story.journal)
    assert story.story.ended.sessions == totals.agents == totals.rounds
    assert story.story.ended.cost_usd == (totals.cost_usd or 0.0)
