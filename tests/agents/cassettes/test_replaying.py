"""What is played: the same events in the same time, or a clear word on why not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents import GuardedAgent, SpawnOptions, make_agent
from cuggino.agents.cassettes import ReplayAgent, record_to, replay_of, with_speed
from cuggino.errors import (
    AgentFailed,
    AgentNotFound,
    AgentStalled,
    BudgetExceeded,
    CassetteError,
    ConfigError,
    CugginoError,
    GuardNotLive,
    QuotaExceeded,
)
from cuggino.events import AgentMessage, PingEvent, RateLimited
from cuggino.testing import InMemoryAgent, Marbles, no_leaks
from tests.agents.cassettes.recorded import ENDED, HELLO, diverged, lines, options, played, recorded

RUN = "0198c0de-0000-7000-8000-00000000000"


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Every test ends without a process, thread or file of its own."""
    with no_leaks():
        yield


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "c"


@pytest.mark.parametrize(
    ("speed", "diagram"),
    [
        (1, "--a-e--|"),
        (2, "-ae 500ms |"),
        (0.5, "----a---e-----|"),
        (0, "(ae|)"),
        (float("inf"), "(ae|)"),
    ],
)
def test_speed(path: Path, tmp_path: Path, speed: float, diagram: str) -> None:
    """Events come as they were recorded, faster, slower, or all at once."""
    t = Marbles(a=HELLO, e=ENDED)
    recorded(path, tmp_path, t, "--a-e--|")
    assert t.parse(diagram) == played(path, tmp_path, speed=speed)


@pytest.mark.parametrize("speed", [-1, float("nan")])
def test_no_speed(path: Path, tmp_path: Path, speed: float) -> None:
    """A speed below 0, or that is no number, is refused; so is any for another agent."""
    recorded(path, tmp_path, Marbles(), "|")
    with pytest.raises(ConfigError, match="is no speed"):
        replay_of(path, speed=speed)
    with pytest.raises(ConfigError, match="the agent memory has no speed"):
        with_speed(InMemoryAgent({}), 1)


@pytest.mark.parametrize(
    "error",
    [
        AgentFailed("no", reason="auth", hint="log in"),
        AgentNotFound("where", hint="there"),
        AgentStalled("silent"),
        BudgetExceeded("all spent"),
        GuardNotLive("dead"),
        QuotaExceeded("limit"),
    ],
)
def test_errors(path: Path, tmp_path: Path, error: CugginoError) -> None:
    """A session that failed fails in the same way, at the same time."""
    recorded(path, tmp_path, Marbles(error=error, a=HELLO), "-a-#")
    at, kind, again = played(path, tmp_path)[-1]
    assert (3.0, "error", type(error), error.message) == (at, kind, type(again), again.message)
    assert getattr(error, "reason", None) == getattr(again, "reason", None)
    assert error.hint == again.hint


def test_an_error_of_somebody_else(path: Path, tmp_path: Path) -> None:
    """What was none of cuggino's errors is a failure of the agent with its words."""
    recorded(path, tmp_path, Marbles(error=OSError("odd")), "#")
    error = played(path, tmp_path)[-1][2]
    assert isinstance(error, AgentFailed)
    assert ("odd", "unknown") == (error.message, error.reason)


@pytest.mark.parametrize(("speed", "expected"), [(1, 3600.0), (60, 60.0), (0, 1.0)])
def test_limits_are_as_far_away_as_they_were(
    path: Path, tmp_path: Path, speed: float, expected: float
) -> None:
    """The time at which a usage limit is lifted moves with the replay, and signs of life too."""
    t = Marbles()
    lifted = t.scheduler.now.replace(tzinfo=UTC) + timedelta(hours=1)
    t.events |= {
        "r": RateLimited(status="rejected", resets_at=lifted),
        "p": PingEvent(timestamp=1e9),
    }
    t.error = QuotaExceeded("limit", resets_at=lifted)
    recorded(path, tmp_path, t, "rp#")
    (_, _, limit), (_, _, ping), (_, _, error) = played(path, tmp_path, speed=speed)
    start = datetime(1970, 1, 1, tzinfo=UTC)
    assert expected == pytest.approx((limit.resets_at - start).total_seconds())
    assert expected == pytest.approx((error.resets_at - start).total_seconds(), abs=2.1)
    assert (1 / speed if speed else 0) == pytest.approx(ping.timestamp, abs=1e-5)


def test_the_project_and_the_run_are_those_of_now(path: Path, tmp_path: Path) -> None:
    """In another folder and run the events name the files of these."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    env = {"CUGGINO_SESSION_FILE": f"{old}/.cuggino/wip/{RUN}1.md"}
    t = Marbles(a=AgentMessage(text=f"see {old}/a.py and {RUN}1.plan.md"))
    recorded(path, old, t, "a|", prompt=f"Work in {old}, by {RUN}1.md.", env_of=env)
    env = {"CUGGINO_SESSION_FILE": f"{new}/.cuggino/wip/{RUN}2.md"}
    (_, _, event), _ = played(path, new, prompt=f"Work in {new}, by {RUN}2.md.", env=env)
    assert f"see {new}/a.py and {RUN}2.plan.md" == event.text
    assert str(old) not in path.read_text()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"role": "reviewing"}, "no (other) session of reviewing 1; left are session 1 (impl"),
        ({"turn": 2}, "no (other) session of implementing 2"),
        (
            {"resume_session_id": "s1"},
            "session 1 (implementing 1) was a new one in the recording, and goes on with another",
        ),
    ],
)
def test_another_session(path: Path, tmp_path: Path, given: dict[str, Any], said: str) -> None:
    """A session that was not recorded, or was begun in another way, is told."""
    recorded(path, tmp_path, Marbles(), "|")
    assert said in diverged(path, tmp_path, **given)


def test_sessions_by_role_and_turn(path: Path, tmp_path: Path) -> None:
    """Sessions are found by role and turn, those of the same turn in their order."""
    t = Marbles(a=AgentMessage(text="a"), b=AgentMessage(text="b"), c=AgentMessage(text="c"))
    agents = InMemoryAgent({"planning": [t.cold("a|"), t.cold("b|")], "reviewing": [t.cold("c|")]})
    recording = record_to(path, agents, env={})
    planning = options(tmp_path, role="planning")
    reviewing = options(tmp_path, role="reviewing", turn=None)
    for number, each in enumerate((planning, planning, reviewing), start=1):
        t.record(recording.spawn(each), until=number * 10)
    agent = replay_of(path)
    said = [Marbles().record(agent.spawn(o))[0][2].text for o in (reviewing, planning, planning)]
    assert ["c", "a", "b"] == said
    assert () == agent.unplayed


def test_a_divergence_stays(path: Path, tmp_path: Path) -> None:
    """After a divergence every session fails with it: nothing is tried again."""
    recorded(path, tmp_path, Marbles(a=HELLO), "a|")
    agent = replay_of(path)
    spawned: list[SpawnOptions] = [options(tmp_path, turn=2), options(tmp_path)]
    first, second = (Marbles().record(agent.spawn(each))[0][2] for each in spawned)
    assert first is second
    assert ("session 1 (implementing 1)",) == agent.unplayed


def test_a_session_that_its_loop_cut_off(path: Path, tmp_path: Path) -> None:
    """It is silent where it was cut off, until it is cut off again."""
    t = Marbles(a=HELLO)
    agent = InMemoryAgent({"implementing": [t.cold("-a-----"), t.cold("|")]})
    recording = record_to(path, agent, env={})
    t.record(recording.spawn(options(tmp_path)), dispose_at=3, until=5)
    t.record(recording.spawn(options(tmp_path)))
    assert [(1.0, "next", HELLO)] == played(path, tmp_path, until=1000)


def test_a_run_that_was_interrupted(path: Path, tmp_path: Path) -> None:
    """The last session of a run that was interrupted fails where it was."""
    recorded(path, tmp_path, Marbles(a=HELLO), "-a-----", dispose_at=3)
    _, (at, kind, error) = played(path, tmp_path)
    assert (3.0, "error") == (at, kind)
    assert isinstance(error, AgentFailed)
    assert "the recording ends in the midst of session 1 (implementing 1)" == str(error)
    assert "aborted" == error.reason


def test_a_run_that_was_killed(path: Path, tmp_path: Path) -> None:
    """A cassette that is cut off in a line plays up to there, and says so."""
    recorded(path, tmp_path, Marbles(a=HELLO, e=ENDED), "-a-e|")
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex(b'"_tag": "SessionEnded"')])
    (_, _, event), (_, _, error) = played(path, tmp_path)
    assert event == HELLO
    assert "the recording ends in the midst of" in str(error)


def test_one_that_was_let_go_behind_its_end(path: Path, tmp_path: Path) -> None:
    """A session that was left when it had said how it ended simply ends."""
    t = Marbles(a=HELLO, e=ENDED)
    recorded(path, tmp_path, t, "ae-----", dispose_at=3)
    assert t.parse("ae-|") == played(path, tmp_path)


def test_disposal(path: Path, tmp_path: Path) -> None:
    """Nothing is said after disposal."""
    t = Marbles(a=HELLO)
    recorded(path, tmp_path, t, "a-a-a|")
    stream = replay_of(path, speed=1).spawn(options(tmp_path))
    assert [(0.0, "next", HELLO)] == Marbles().record(stream, dispose_at=1)


def test_events_of_a_later_version(path: Path, tmp_path: Path) -> None:
    """An event that this version does not know is passed over."""
    recorded(path, tmp_path, Marbles(a=HELLO), "aa|")
    header, began, first, *rest = lines(path)
    first["event"] = {"_tag": "SomethingNew", "x": 1}
    path.write_text("".join(json.dumps(x) + "\n" for x in (header, began, first, *rest)))
    assert [(1.0, "next", HELLO), (2.0, "completed", None)] == played(path, tmp_path)


def test_by_name(path: Path, tmp_path: Path) -> None:
    """`replay:FILE` names it, relative to the project; what was recorded is what it tells."""
    recorded(path, tmp_path, Marbles(), "|")
    agent = make_agent("replay:c", cwd=tmp_path)
    assert isinstance(agent, ReplayAgent)
    assert not isinstance(agent, GuardedAgent)
    assert ("replay", True, "") == (agent.name, agent.can_resume, agent.sandbox_unavailable())
    assert "memory in memory, recorded 1970-01-01" == agent.check()
    assert "plays a recording of memory" == agent.capabilities.note
    with pytest.raises(CassetteError, match="cannot read the cassette"):
        make_agent("replay:missing", cwd=tmp_path)
