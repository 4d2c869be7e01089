"""A run that is killed, disposed or interrupted and then resumed ends as it would have ended.

It is sampled here for each loop; `tests/operators/test_flow_crash.py` proves it for every instant.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.runs import RunState
from tests.loops.crashes import (
    CODING,
    LOOPS,
    SCENARIOS,
    TWO_ITERATIONS,
    Instants,
    Uninterrupted,
    instead,
    spread,
)
from tests.loops.durable_runs import CodingProcess, Turn, WatchProcess

Whole = Callable[[str], Uninterrupted]


@pytest.mark.parametrize("share", [5, pytest.param(1, marks=pytest.mark.real_agent)])
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_killed_run(name: str, share: int, whole: Whole, tmp_path: Path) -> None:
    """A run killed at any change of its folder, also within a journal line, ends as if it had not.

    Among the samples are kills between a commit, an archived item or the end of a session and its
    record, and at the start of a wait for usage. Of the other stories of a
    loop the quick suite draws two.
    """
    run = whole(name)
    if name != "watch":
        _assert_journal(run)
    kills = run.kills(share)
    if share > 1 and name not in (*LOOPS, "watch"):
        kills = random.sample(kills, min(2, len(kills)))
    for n, instant in enumerate(kills):
        process = run.at(instant, tmp_path / f"killed-{n}")
        if process.is_resumable:
            story = run.assert_resumes(process)
            numbers = [event.session for event in story.of(ev.DeliverSessionStarted)]
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers)) if numbers else [])


@pytest.mark.parametrize("how", ["dispose_at", "interrupt_at"])
@pytest.mark.parametrize(
    "name",
    [
        # The other stories: with the second command.
        pytest.param(name, marks=[] if name in (*LOOPS, "watch") else [pytest.mark.real_agent])
        for name in SCENARIOS
    ],
)
def test_a_stopped_run(name: str, how: str, whole: Whole, tmp_path: Path) -> None:
    """A run disposed or interrupted at any time, also during a wait, ends as if it had not."""
    run = whole(name)
    if how == "interrupt_at" and run.scenario.kind in ("run", "watch"):
        return  # those two are interrupted by disposal
    samples = 2 if name in (*LOOPS, "watch") else 1
    for n in range(samples):
        at = round(run.seconds * 2 * (n + 0.5) / samples) / 2  # half seconds are within sessions
        process = run.scenario.process(tmp_path / f"stopped-{n}")
        process.prepare()
        story = process.run(**run.scenario.options, **{how: at})
        assert all(journal.state == "interrupted" for journal in process.journals[-1:])
        if name != "watch":
            assert (how == "interrupt_at") == any(
                isinstance(event, ev.RunResult) for event in story.events
            )
        run.assert_resumes(run.scenario.process(process.folder))


@pytest.mark.parametrize("name", [*LOOPS, "watch"])
def test_a_run_killed_twice(name: str, whole: Whole, tmp_path: Path) -> None:
    """A resumed run that is killed too still ends as if it had not."""
    run = whole(name)
    for n, instant in enumerate(spread(3, run.kills())[1:]):
        folder = tmp_path / f"killed-{n}"
        first = run.at(instant, folder)
        second = Instants(folder, stride=1000)
        with second.watched():
            first.finish()
        for m, again in enumerate(second.kept[1::2]):
            process = run.at(again, tmp_path / f"killed-{n}-{m}")
            if process.is_resumable:
                run.assert_resumes(process, at=5000.0)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("coding", "dispose_at"),
        ("deliver", "interrupt_at"),
        pytest.param("deliver", "dispose_at", marks=pytest.mark.real_agent),
        pytest.param("plan_build", "interrupt_at", marks=pytest.mark.real_agent),
        ("plan_build", "dispose_at"),
    ],
)
def test_a_run_stopped_again_and_again(name: str, how: str, whole: Whole, tmp_path: Path) -> None:
    """A run that is stopped in every process still finishes."""
    run = whole(name)
    process = run.scenario.process(tmp_path)
    first: Any = {how: 3.5}
    process.run(**first)
    for n in range(1, 40):
        process = run.scenario.process(tmp_path)
        if not process.is_resumable:
            break
        at = 1000.0 * n
        step: Any = {how: at + 3.5 if how == "dispose_at" else 3.5}
        process.resume(at=at, **step)
    assert 1 < n < 39
    assert run.end == process.end()
    continued = [e for e in process.journal.entries if isinstance(e.event, ev.RunContinued)]
    assert n - 1 == len(continued)


def _assert_journal(run: Uninterrupted) -> None:
    """Assert that it has stages and exactly one result, which only the last entry follows."""
    events = [entry.event for entry in run.journal.entries]
    kinds = [type(event) for event in events]
    assert ev.StageStarted in kinds
    assert ev.StageFinished in kinds
    assert (1, 0) == (kinds.count(ev.RunEnded), kinds.count(ev.RunContinued))
    assert [events[-2]] == [event for event in events if isinstance(event, ev.RunResult)]
    assert ev.RunEnded is kinds[-1]
    assert run.scenario.kind == run.journal.started.kind
    totals = RunState.of(run.journal.entries).totals
    if run.scenario.kind == "deliver":
        assert run.story.last.sessions == totals.agents == totals.rounds
    if run.scenario.kind != "run":
        assert run.story.last.cost_usd == (totals.cost_usd or 0.0)


def test_half_a_review_is_not_read(tmp_path: Path) -> None:
    """A reviewer that starts again does not find the review file of the one that was killed."""
    process = CODING.process(tmp_path)
    process.run(dispose_at=5.5)
    assert ("", "reviewing", 1) == process.agent.begun[-1]
    (half,) = process.workspace.wip.glob("*.reviewing/review.md")
    assert "Three is missing" in half.read_text()
    silent = Turn(TWO_ITERATIONS["reviewing"][0].said)
    again = CodingProcess(tmp_path, instead(TWO_ITERATIONS, "reviewing", 1, silent))
    again.resume()
    (second,) = [options for options in again.agent.spawned if options.role == "planning"]
    assert "redo" in (second.system_prompt or "")
    assert "Three is missing" not in (second.system_prompt or "")


def test_a_killed_watch_counts_once(whole: Whole, tmp_path: Path) -> None:
    """A resumed watch processes the rest and does not count earlier costs again."""
    run = whole("watch")
    words = ("kiwi", "plum")
    commits = [f"Add {word}-{n}" for word in words for n in ("one", "two")]
    assert commits == run.process.repository.commits
    archived = sorted(path.name[37:] for path in run.process.workspace.archive.iterdir())
    assert [f"approved-{word}.md" for word in words] == archived
    resumed = 0
    for n, instant in enumerate(spread(6, run.nasty[""])[1:]):
        process = run.at(instant, tmp_path / f"killed-{n}")
        resumed += len(process.finish().of(ev.RunResumed))
        watches = [journal for journal in process.journals if journal.started.kind == "watch"]
        entries = [entry.event for journal in watches for entry in journal.entries]
        assert [] == [event for event in entries if isinstance(event, ev.RunResumed)]
    assert resumed > 2


def test_a_lost_end_is_recorded(whole: Whole, tmp_path: Path) -> None:
    """A run whose item was archived, but whose last entry was lost, gets its end with the next."""
    run = whole("watch")
    for n, instant in enumerate(run.nasty["archived"]):
        folder = tmp_path / f"lost-{n}"
        process = run.at(instant, folder)
        path = max((folder / ".cuggino/journal").iterdir())
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
        assert "unfinished" in process.states
        run.assert_resumes(process)


@pytest.mark.real_agent
def test_an_approved_item_is_not_run_again(whole: Whole, tmp_path: Path) -> None:
    """An item whose run was approved is archived without another run, however often it is cut."""
    run = whole("watch")
    for kind in ("approved", "archived"):
        for n, instant in enumerate(run.nasty[kind]):
            folder = tmp_path / f"{kind}-{n}"
            process = run.at(instant, folder)
            second = Instants(folder, stride=1000)
            with second.watched():
                run.assert_resumes(process)
            assert not any(item == WatchProcess.words[n] for item, _, _ in process.agent.begun)
            for m, again in enumerate(second.kept):
                run.assert_resumes(run.at(again, tmp_path / f"{kind}-{n}-{m}"), at=5000.0)
