"""A plan/build run is cut at every instant and resumed: it ends as if nothing had happened."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from cuggino.errors import (
    RunNotResumable,
)
from cuggino.events import (
    PlanBuildEnded,
    RunContinued,
    RunEnded,
    VerificationEnded,
)
from cuggino.storage import (
    JournalFile,
    Workspace,
    find_run,
    finished_stages,
    list_journals,
    run_totals,
)
from tests.loops.built import is_of_job
from tests.loops.built_ends import Undisturbed, end_of
from tests.loops.built_runs import COST, WHOLE, Process, Turns, works
from tests.loops.resumable import Instants, at_each_append

REFUTED: Turns = {
    "plan": [works(J1="open")],
    "build": [works(f"feat: {n}", J1="done") for n in range(3)],
}
STORIES: dict[str, tuple[Turns, dict[str, Any], str, int]] = {
    "whole": (WHOLE, {}, "complete", 5),
    "refuted": (REFUTED, {}, "blocked", 4),
    "planned": (WHOLE, {"plan_only": True}, "planned", 1),
    "limit": (WHOLE, {"max_sessions": 3}, "max_iterations", 3),
}


@pytest.fixture(params=STORIES)
def story(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Undisturbed:
    turns, options, reason, sessions = STORIES[request.param]
    keep = "killed" in request.node.name
    story = Undisturbed(tmp_path, monkeypatch, turns, keep=keep, **options)
    assert (reason, sessions) == (story.story.ended.reason, story.story.ended.iterations)
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
    every = 2 if story.turns is WHOLE and not story.options else 7
    for n, copy in enumerate(story.instants.copies[::every]):
        for cut in cuts(copy, tmp_path) if n % 8 == 0 else [copy]:
            process = story.at(cut, tmp_path / f"again-{cut.name}")
            if process.has_begun and not process.journal.resumable:
                continue
            story.assert_resumed(process)
            tried += 1
    assert tried > 3


@pytest.mark.parametrize("how", ["dispose_at", "interrupt_at"])
def test_stopped_at_every_half_second(how: str, story: Undisturbed, tmp_path: Path) -> None:
    """A run that was disposed or interrupted at any time goes on to the same end."""
    steps = int(story.story.ended.duration * 2)
    for n in range(0, steps + 1, 1 if story.turns is WHOLE and not story.options else 4):
        process = Process(tmp_path / f"stopped-{n}", story.turns)
        at: Any = {how: n / 2}
        first = process.run(**story.options, **at)
        if not process.journal.resumable:
            assert n >= steps - 1
            continue
        assert "interrupted" == process.journal.state
        assert (how == "interrupt_at") == bool(first.of(PlanBuildEnded))
        story.assert_resumed(Process(process.folder, story.turns))


def test_stopped_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is stopped in every process comes to its end, one step further each time."""
    story = Undisturbed(tmp_path, monkeypatch, keep=False)
    for how in ("dispose_at", "interrupt_at"):
        folder = tmp_path / how
        process = Process(folder)
        step: Any = {how: 3.5}
        process.run(**step)
        for n in range(1, 40):
            process = Process(folder)
            if not process.journal.resumable:
                break
            step = {how: 1000.0 * n + 3.5 if how == "dispose_at" else 3.5}
            process.resume(at=1000.0 * n, **step)
        assert 3 < n < 39
        assert story.end == end_of(process)
        continued = [e for e in process.journal.entries if isinstance(e.event, RunContinued)]
        assert n - 1 == len(continued)


def test_killed_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is killed again while it goes on still ends as the undisturbed one."""
    story = Undisturbed(tmp_path, monkeypatch)
    tried = 0
    for copy in story.instants.copies[::47]:
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
                story.assert_resumed(last, at=5000.0)
    assert tried > 3


def test_a_verdict_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is killed right behind a refutation counts it once, and asks nobody again."""
    story = Undisturbed(tmp_path, monkeypatch, REFUTED)
    told = [e.failures for e in story.story.of(VerificationEnded)]
    assert [{"J1": 1}, {"J1": 2}, {"J1": 3}] == told
    tried = 0
    for copy in story.instants.copies:
        process = story.at(copy, tmp_path / f"again-{copy.name}")
        if process.has_begun and _is_between(process.journal):
            story.assert_resumed(process)
            assert 1 == sum(is_of_job(options) for options in process.agent.spawned)
            tried += 1
    assert tried > 2


def _is_between(journal: JournalFile) -> bool:
    """Whether the second verdict is known, and its verification has not ended."""
    ended = [e for e in journal.entries if isinstance(e.event, VerificationEnded)]
    known = [stage for stage in finished_stages(journal) if stage.name == "verify-job"]
    return (1, 2) == (len(ended), len(known))


def test_the_totals_of_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cost and time are those of all processes, without the time between."""
    story = Undisturbed(tmp_path, monkeypatch, keep=False)
    whole = story.story.ended
    judged = [x for x in story.process.agent.spawned if x.role == "judge"]
    assert (4 + len(judged)) * COST == whole.cost_usd  # the crash has told no cost
    first = Process(tmp_path / "cut")
    first.run(dispose_at=0.5)
    ended = Process(first.folder).resume(at=9999.0).ended
    assert (whole.cost_usd, whole.duration + 0.5) == (ended.cost_usd, ended.duration)


def test_what_an_undisturbed_run_writes(story: Undisturbed) -> None:
    """A run that nobody has cut has one end, told right before its last entry."""
    events = [entry.event for entry in story.journal.entries]
    assert 1 == sum(isinstance(event, PlanBuildEnded) for event in events)
    assert 0 == sum(isinstance(event, RunContinued) for event in events)
    assert [PlanBuildEnded, RunEnded] == [type(event) for event in events[-2:]]
    assert "loop" == story.journal.started.kind
    assert story.story.ended.cost_usd == (run_totals(story.journal).cost_usd or 0.0)


def test_a_run_that_has_ended(story: Undisturbed) -> None:
    """It is refused, by the search and by the loop, and nothing is written or removed."""
    before, end = story.journal, story.end
    folder = story.process.workspace.journal
    with pytest.raises(RunNotResumable, match="has ended"):
        find_run(folder, before.run_id[:13], kind="loop")
    with pytest.raises(RunNotResumable, match="no unfinished run"):
        find_run(folder, None, kind="loop")
    again = Process(story.process.folder, story.turns)
    seen = again.resume().seen
    assert [("error", RunNotResumable)] == [(kind, type(value)) for _, kind, value in seen]
    assert [] == again.agent.begun
    assert (before, end) == (again.journal, end_of(again))
    again.assert_released()
