"""`cuggino runs replay`: a replayed run, in virtual time and in the command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from reactivex import operators
from reactivex.scheduler import VirtualTimeScheduler

from cuggino import events as ev, run
from cuggino.runs import replay
from tests.cli.cli import Cli
from tests.cli.recorded_runs import APPROVED, ONE, SAID, Said, record


def emitted() -> Iterator[str]:
    return (ev.dump_event(event) for _, _, event in SAID if not event.tag.startswith("Stage"))


def test_replay_as_json(project: Path, cli: Cli) -> None:
    """The replay prints the run's events without journal-only entries."""
    new = ev.UnknownEvent(raw={"_tag": "Tomorrow"})
    record(project, ONE, *SAID, (98, None, new), (99, None, ev.RunEnded(state="quota")))
    out = cli("runs", "replay", "0193", "--json")
    assert [*emitted(), ev.dump_event(new)] == out.splitlines()


def test_replay_as_text(project: Path, cli: Cli) -> None:
    """The replay looks like the run, with its duration, and always exits with 0."""
    record(project, ONE, *SAID, *APPROVED)
    out = cli("runs", "replay", "0193")
    assert "▶ Bash: ls" in out
    assert "[Summary] Approved" in out
    assert "Duration   1m 40s" in out
    assert "▶ Bash: ls" not in cli("runs", "replay", "0193", "--quiet")
    coloured = cli("runs", "replay", "0193", "--color", "always")
    assert "\x1b[" in coloured
    assert out == re.sub(r"\x1b\[[0-9;]*m", "", coloured)


@pytest.mark.parametrize(
    ("state", "words"),
    [("failed", "[Failed] it broke"), ("interrupted", "[Interrupted] it broke")],
)
def test_replay_of_a_failed_run(project: Path, cli: Cli, state: Any, words: str) -> None:
    """The error is printed before the summary."""
    record(project, ONE, *SAID, (99, None, ev.RunEnded(state=state, message="it broke")))
    out = cli("runs", "replay", "0193")
    assert out.index(words) < out.index(f"[Summary] {state.capitalize()}")


def test_replay_of_a_resumed_run(project: Path, cli: Cli) -> None:
    """The summary counts the work of two processes once.

    The second process repeated events that the first one had emitted before it was killed.
    """
    totals = ev.RunResumed(run_id=ONE, stages=3, rounds=1, tasks=1, agents=2, cost_usd=1.25)
    rest: list[Said] = [(500, None, ev.RunContinued()), (500, None, totals)]
    rest += [(505, "implementing#2", done) for _, stage, done in SAID if done.tag == "Progress"]
    record(project, ONE, *SAID, *rest, (510, None, ev.RunEnded(state="budget")))
    out = cli("runs", "replay", "0193", "--quiet")
    summary = out[out.index("[Summary] Budget spent") :]
    for line in (
        "Iterations 1",
        "Tasks      1",
        "Agents     2",
        "Cost       $1.25",
        "Duration   1m 47s",
    ):
        assert line in summary


def test_replay_of_an_item(project: Path, cli: Cli) -> None:
    """Paths are relative to the slot, and the total is that of the watch."""
    slots = project.parent / "slots"
    write = ev.ToolCall(name="Write", input={"file_path": f"{slots}/slot-2/a.txt"})
    cost = ev.StageCost(phase="planning", cost_usd=0.5, total_cost=2.0)
    record(
        project,
        ONE,
        (1, "planning#1", write),
        (2, "planning#1", cost),
        item="001-log-in.md 7f3a",
        options={"slot": 2, "apart": [str(slots), str(project)]},
    )
    out = cli("runs", "replay", "0193")
    assert "▶ Write: a.txt\n" in out
    assert "[Planning] $0.50 (watch total $2.00)" in out


@pytest.mark.parametrize("speed", ["-1", "nan", "fast"])
def test_an_invalid_speed(project: Path, cli: Cli, speed: str) -> None:
    """A negative or non-numeric speed is rejected."""
    record(project, ONE)
    assert "--speed" in cli.err("runs", "replay", ONE, "--speed", speed)


WORDS = [ev.AgentMessage(text=text) for text in "abcd"]


def played(path: Path, speed: float) -> list[tuple[float, str]]:
    """Return each event with its virtual time."""
    seen: list[tuple[float, str]] = []
    scheduler = VirtualTimeScheduler()
    replay(path, speed=speed).subscribe(
        lambda event: seen.append((scheduler.clock, cast("ev.AgentMessage", event).text)),
        lambda error: seen.append((scheduler.clock, type(error).__name__)),
        lambda: seen.append((scheduler.clock, "|")),
        scheduler=scheduler,
    )
    scheduler.start()
    return seen


def test_the_times_of_a_replay(tmp_path: Path) -> None:
    """Events follow after the recorded gaps, divided by the speed.

    Hidden entries keep their gaps; time between two processes and a clock set back add none.
    """
    a, b, c, d = WORDS
    path = record(
        tmp_path,
        ONE,
        (10, None, a),
        (20, "x#1", ev.StageStarted(name="x")),
        (30, None, b),
        (5000, None, ev.RunContinued()),
        (5010, None, c),
        (5005, None, d),
    )
    assert [(10, "a"), (30, "b"), (40, "c"), (40, "d"), (40, "|")] == played(path, 1)
    assert [(5, "a"), (15, "b"), (20, "c"), (20, "d"), (20, "|")] == played(path, 2)
    assert {0} == {time for time, _ in played(path, 0)}


def test_a_replay_that_meets_a_broken_line(tmp_path: Path) -> None:
    """The lines before the broken one are replayed, followed by the error."""
    path = record(tmp_path, ONE, *[(1, None, word) for word in WORDS])
    path.write_bytes(path.read_bytes().replace(b'"seq":4', b'"seq":9'))
    assert [(1, "a"), (1, "b"), (1, "StorageError")] == played(path, 1)


@pytest.mark.parametrize("seconds", [0, 1, 15])
def test_a_replay_that_is_disposed(tmp_path: Path, seconds: float) -> None:
    """After disposal nothing is emitted and no file stays open."""
    path = record(tmp_path, ONE, *[(10 * n, None, word) for n, word in enumerate(WORDS, 1)])
    files = len(list(Path("/dev/fd").iterdir()))
    seen: list[ev.Event] = []
    scheduler = VirtualTimeScheduler()
    playing = replay(path, speed=1).subscribe(seen.append, scheduler=scheduler)
    scheduler.advance_to(seconds)
    playing.dispose()
    assert files == len(list(Path("/dev/fd").iterdir()))
    scheduler.start()
    assert WORDS[: int(seconds // 10)] == seen


def test_a_subscriber_that_disposes_in_an_event(tmp_path: Path) -> None:
    """Disposal during an event ends the replay with that event."""
    path = record(tmp_path, ONE, *[(1, None, word) for word in WORDS])
    seen: list[ev.Event] = []
    scheduler = VirtualTimeScheduler()
    replay(path, speed=0).pipe(operators.take(2)).subscribe(seen.append, scheduler=scheduler)
    scheduler.start()
    assert WORDS[:2] == seen


@pytest.mark.real_agent
def test_a_long_replay(project: Path) -> None:
    """Twenty thousand events at once neither overflow the stack nor get lost."""
    path = record(project, ONE, *[(1, None, WORDS[0])] * 20_000)
    seen: list[ev.Event] = []
    run(replay(path, speed=0), seen.append)
    assert 20_000 == len(seen)
