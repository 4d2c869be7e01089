"""Replaying a cassette: the same events at the same times, or a clear error."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from reactivex import just

from cuggino.agents import SpawnOptions, make_agent
from cuggino.agents.cassettes import ReplayAgent, record_to, replay_of, with_speed
from cuggino.agents.cassettes.masking import mark
from cuggino.agents.cassettes.matching import PolicyCheck
from cuggino.agents.cassettes.places import Places
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
from cuggino.events import (
    AgentMessage,
    PingEvent,
    QuotaUsed,
    RateLimited,
    Steered,
    ToolCall,
    ToolResult,
)
from cuggino.guard.policy import Policy
from cuggino.testing import InMemoryAgent, Marbles
from tests.agents.cassettes.recorded import (
    ENDED,
    HELLO,
    diverged,
    lines,
    options,
    played,
    recorded,
    sessions,
)

pytestmark = pytest.mark.usefixtures("nothing_is_left")

RUN = "0198c0de-0000-7000-8000-00000000000"


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
    """Events are replayed as recorded, faster, slower, or immediately."""
    t = Marbles(a=HELLO, e=ENDED)
    recorded(path, tmp_path, t, "--a-e--|")
    assert t.parse(diagram) == played(path, tmp_path, speed=speed)


@pytest.mark.parametrize("speed", [-1, float("nan")])
def test_an_invalid_speed(path: Path, tmp_path: Path, speed: float) -> None:
    """A negative speed and NaN are refused, and so is any speed for another agent."""
    recorded(path, tmp_path, Marbles(), "|")
    with pytest.raises(ConfigError, match="is not a speed"):
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
    """A failed session fails in the same way, at the same time."""
    recorded(path, tmp_path, Marbles(error=error, a=HELLO), "-a-#")
    at, kind, again = played(path, tmp_path)[-1]
    assert (3.0, "error", type(error), error.message) == (at, kind, type(again), again.message)
    assert getattr(error, "reason", None) == getattr(again, "reason", None)
    assert error.hint == again.hint


def test_a_foreign_error(path: Path, tmp_path: Path) -> None:
    """An error from outside cuggino is replayed as an agent failure with its message."""
    recorded(path, tmp_path, Marbles(error=OSError("odd")), "#")
    error = played(path, tmp_path)[-1][2]
    assert isinstance(error, AgentFailed)
    assert ("odd", "unknown") == (error.message, error.reason)


@pytest.mark.parametrize(("speed", "expected"), [(1, 3600.0), (60, 60.0), (0, 1.0)])
def test_usage_limits_are_shifted(
    path: Path, tmp_path: Path, speed: float, expected: float
) -> None:
    """The reset time of a usage limit moves with the replay, and so do keepalives."""
    t = Marbles()
    lifted = t.scheduler.now.replace(tzinfo=UTC) + timedelta(hours=1)
    t.events |= {
        "r": RateLimited(status="rejected", resets_at=lifted),
        "q": QuotaUsed(window="five_hour", used=0.5, resets_at=lifted),
        "p": PingEvent(timestamp=1e9),
    }
    t.error = QuotaExceeded("limit", resets_at=lifted)
    recorded(path, tmp_path, t, "(qr)p#")
    (_, _, window), (_, _, limit), (_, _, ping), (_, _, error) = played(path, tmp_path, speed=speed)
    start = datetime(1970, 1, 1, tzinfo=UTC)
    for event in (window, limit):
        assert expected == pytest.approx((event.resets_at - start).total_seconds())
    assert expected == pytest.approx((error.resets_at - start).total_seconds(), abs=2.1)
    assert (1 / speed if speed else 0) == pytest.approx(ping.timestamp, abs=1e-5)


def test_paths_of_the_current_project(path: Path, tmp_path: Path) -> None:
    """Replayed events name the files of the current project and run."""
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
            "was a new session in the recording, and resumes another one",
        ),
    ],
)
def test_an_unrecorded_session(
    path: Path, tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    """A session that was not recorded, or started differently, is reported."""
    recorded(path, tmp_path, Marbles(), "|")
    assert said in diverged(path, tmp_path, **given)


def test_sessions_by_role_and_turn(path: Path, tmp_path: Path) -> None:
    """Sessions are found by role and turn; those of one turn are played in order."""
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


def test_a_divergence_is_permanent(path: Path, tmp_path: Path) -> None:
    """After a divergence every session fails with it, without retries."""
    recorded(path, tmp_path, Marbles(a=HELLO), "a|")
    agent = replay_of(path)
    spawned: list[SpawnOptions] = [options(tmp_path, turn=2), options(tmp_path)]
    first, second = (Marbles().record(agent.spawn(each))[0][2] for each in spawned)
    assert first is second
    assert ("session 1 (implementing 1)",) == agent.unplayed


def test_a_session_disposed_by_its_loop(path: Path, tmp_path: Path) -> None:
    """A session disposed in the recording stays silent from there until it is disposed again."""
    t = Marbles(a=HELLO)
    agent = InMemoryAgent({"implementing": [t.cold("-a-----"), t.cold("|")]})
    recording = record_to(path, agent, env={})
    t.record(recording.spawn(options(tmp_path)), dispose_at=3, until=5)
    t.record(recording.spawn(options(tmp_path)))
    assert [(1.0, "next", HELLO)] == played(path, tmp_path, until=1000)


def test_an_interrupted_run(path: Path, tmp_path: Path) -> None:
    """The last session of an interrupted run fails where it was interrupted."""
    recorded(path, tmp_path, Marbles(a=HELLO), "-a-----", dispose_at=3)
    _, (at, kind, error) = played(path, tmp_path)
    assert (3.0, "error") == (at, kind)
    assert isinstance(error, AgentFailed)
    assert "the recording ends within session 1 (implementing 1)" == str(error)
    assert "aborted" == error.reason


def test_a_killed_run(path: Path, tmp_path: Path) -> None:
    """A truncated cassette plays up to the truncation and reports it."""
    recorded(path, tmp_path, Marbles(a=HELLO, e=ENDED), "-a-e|")
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex(b'"_tag": "SessionEnded"')])
    (_, _, event), (_, _, error) = played(path, tmp_path)
    assert event == HELLO
    assert "the recording ends within" in str(error)


def test_a_session_disposed_after_its_end(path: Path, tmp_path: Path) -> None:
    """A session disposed after its final event completes."""
    t = Marbles(a=HELLO, e=ENDED)
    recorded(path, tmp_path, t, "ae-----", dispose_at=3)
    assert t.parse("ae-|") == played(path, tmp_path)


def test_disposal(path: Path, tmp_path: Path) -> None:
    """Nothing is emitted after disposal."""
    t = Marbles(a=HELLO)
    recorded(path, tmp_path, t, "a-a-a|")
    stream = replay_of(path, speed=1).spawn(options(tmp_path))
    assert [(0.0, "next", HELLO)] == Marbles().record(stream, dispose_at=1)


def test_events_of_a_later_version(path: Path, tmp_path: Path) -> None:
    """Events of unknown types are skipped."""
    recorded(path, tmp_path, Marbles(a=HELLO), "aa|")
    header, began, first, *rest = lines(path)
    first["event"] = {"_tag": "SomethingNew", "x": 1}
    path.write_text("".join(json.dumps(x) + "\n" for x in (header, began, first, *rest)))
    assert [(1.0, "next", HELLO), (2.0, "completed", None)] == played(path, tmp_path)


def test_by_name(path: Path, tmp_path: Path) -> None:
    """`replay:FILE` selects a cassette relative to the project and reports the recorded agent."""
    recorded(path, tmp_path, Marbles(), "|")
    agent = make_agent("replay:c", cwd=tmp_path)
    assert isinstance(agent, ReplayAgent)
    assert agent.capabilities.guard == "none"
    assert ("replay", True) == (agent.name, agent.capabilities.resume)
    assert "memory in memory, recorded 1970-01-01" == agent.check()
    assert "plays a recording of memory" == agent.capabilities.note
    with pytest.raises(CassetteError, match="cannot read the cassette"):
        make_agent("replay:missing", cwd=tmp_path)


def test_what_a_person_said(tmp_path: Path) -> None:
    """It is in the recording, without secrets, and is announced again where it was."""
    secret = "sk-ant-api03-0123456789abcdef"
    said = Steered(text=f"use tabs, and the key {secret}", to="session")
    t = Marbles(a=HELLO, w=said, s=ENDED)
    cassette = tmp_path / "run.jsonl"
    recorded(cassette, tmp_path, t, "a-w-s|", env={"API_KEY": secret})
    assert secret not in cassette.read_text()
    replay = played(cassette, tmp_path, messages=just("other words"))
    steered = [(at, value) for at, _, value in replay if isinstance(value, Steered)]
    assert [2.0] == [at for at, _ in steered]
    assert steered[0][1].text.startswith("use tabs, and the key ")
    assert not replay_of(cassette).capabilities.messages


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("Ran 2 tests in 0.001s", "Ran 2 tests in 12.345s"),
        ("baseline 0123456789abcdef0123456789abcdef01234567", "baseline " + "89" * 20),
        ("commit 1a2b3c4 was made", "commit 9f8e7d6 was made"),
        (f"id {RUN}1", f"id {RUN}7"),
        ("at 2026-01-02T03:04:05Z", "at 2027-11-12T13:14:15.678+02:00"),
        ("at 2026-01-02 03:04", "at 2027-11-12 13:14"),
        ("at 03:04:05", "at 13:14:15"),
        ("see /tmp/tmpabc123/x.log", "see /tmp/tmpdef/deep/er/x.log"),
        ("in /tmp/tmpVt8zNRbT", "in /tmp/tmpXy3"),
        ("BUILD SUCCESSFUL in 5s", "BUILD SUCCESSFUL in 7s"),
        ("Time: 00:00.074, Memory", "Time: 00:01.211, Memory"),
        ("Total: 01:02 min", "Total: 00:59 min"),
        ("(12ms)", "(1s)"),
        ("===== 2 passed in 59.98s =====", "==== 2 passed in 61.02s (0:01:01) ===="),
        ("8.1 runs/s, 3.2 assertions/s", "9.9 runs/s, 4.0 assertions/s"),
        ("Randomized with seed 54321", "Randomized with seed 1"),
        ("v1.0-3-gabc1234", "v1.0-3-g9876fed"),
        ("at 0x7f00aa12bb", "at 0x7f33aa12cc"),
        ("on http://127.0.0.1:4711/", "on http://127.0.0.1:8080/"),
        ("a line \nb\n", "a line\nb"),
    ],
)
def test_allowed_differences_in_a_prompt(path: Path, tmp_path: Path, then: str, now: str) -> None:
    """Times, durations, ids, hashes and temporary folders may differ."""
    recorded(path, tmp_path, Marbles(), "|", prompt=then)
    assert [(0.0, "completed", None)] == played(path, tmp_path, prompt=now)
    assert "in line 1" in diverged(path, tmp_path, prompt=f"more {now}")


@pytest.mark.parametrize("which", ["prompt", "system_prompt"])
def test_another_prompt(path: Path, tmp_path: Path, which: str) -> None:
    """A changed prompt is reported with the session, the line and both texts; nothing is played."""
    told: dict[str, Any] = {which: "One.\nTwo is here.\nThree."}
    recorded(path, tmp_path, Marbles(a=HELLO), "a|", **told)
    message = diverged(path, tmp_path, **{which: "One.\nTwo was here.\nThree."})
    assert (
        f"the replay diverges: the {which.replace('_', ' ')} of session 1 (implementing 1) "
        "differs in line 2: recorded “Two is here.”, now “Two was here.”" == message
    )


def test_a_shorter_and_a_longer_prompt(path: Path, tmp_path: Path) -> None:
    """The report names the text that ended early."""
    recorded(path, tmp_path, Marbles(), "|", prompt="One.\nTwo.")
    assert "recorded “Two.”, now nothing more" in diverged(path, tmp_path, prompt="One.")
    longer = diverged(path, tmp_path, prompt="One.\nTwo.\nThree.")
    assert "in line 3: recorded nothing more, now “Three.”" in longer


def test_a_difference_far_in_a_line(path: Path, tmp_path: Path) -> None:
    """Only the surroundings of a difference in a long line are shown."""
    recorded(path, tmp_path, Marbles(), "|", prompt="x" * 5000 + "here" + "y" * 5000)
    message = diverged(path, tmp_path, prompt="x" * 5000 + "there" + "y" * 5000)
    assert "“…xxx" in message
    assert "here" in message
    assert len(message) < 600


def test_a_masked_secret_may_differ(path: Path, tmp_path: Path) -> None:
    """A masked secret matches other words; the text around it must be equal."""
    secret = "first-value-of-it"
    recorded(path, tmp_path, Marbles(), "|", prompt=f"Use {secret} now.\nGo.", env={"KEY": secret})
    assert [(0.0, "completed", None)] == played(
        path, tmp_path, prompt="Use any two words now.\nGo."
    )
    assert "line 1" in diverged(path, tmp_path, prompt="Use any two words later.\nGo.")
    assert "line 2" in diverged(path, tmp_path, prompt="Use any two words now.\nStop.")


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (
            "focus\n-----BEGIN RSA PRIVATE KEY----- is what to look for.\nTask: add tests.",
            "focus\ntotally different task: delete the database",
        ),
        ("in 5 files", "in 7 files"),
        ("Use a seed.", "Use no seed."),
    ],
)
def test_forbidden_differences_in_a_prompt(path: Path, tmp_path: Path, then: str, now: str) -> None:
    """Counts and words must be equal; prose about a key is not a key."""
    recorded(path, tmp_path, Marbles(), "|", prompt=then)
    assert "in line" in diverged(path, tmp_path, prompt=now)


def test_a_mask_matches_few_words(path: Path, tmp_path: Path) -> None:
    """A mask matches a few words, never a different task."""
    env = {"POSTGRES_PASSWORD": "postgres"}
    recorded(path, tmp_path, Marbles(), "|", prompt="Use postgres for it.", env=env)
    assert [(0.0, "completed", None)] == played(path, tmp_path, prompt="Use mysql for it.")
    message = diverged(path, tmp_path, prompt="Use mysql; then rm -rf everything. for it.")
    assert "in line 1" in message


def test_a_masked_secret_in_a_command(tmp_path: Path) -> None:
    """The mask of a secret contains spaces but counts as one word of the command."""
    command = f"TOKEN={mark('github token')} echo hi"
    call = ToolCall(name="Bash", input={"command": command}, id="c")
    t = Marbles(c=call, r=ToolResult(name="c", output="hi"))
    recorded(tmp_path / "c", tmp_path, t, "cr|")
    (session,) = sessions(tmp_path / "c")
    given = options(tmp_path, guard=Policy(project=str(tmp_path), level="full"))
    check = PolicyCheck(session, given, Places.of(given), same_version=False)
    assert check.complaint(call) is None
    other = ToolCall(name="Bash", input={"command": f"{command}; shutdown"}, id="c")
    assert "is denied now" in (check.complaint(other) or "")
