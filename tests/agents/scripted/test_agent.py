"""The scripted agent: its steps, roles, guard, and resumed sessions."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from reactivex import Observable, from_iterable, never
from reactivex.subject import Subject

import cuggino
from cuggino import events as ev
from cuggino.agents import Role, SpawnOptions
from cuggino.agents.scripted import ScriptedAgent
from cuggino.agents.scripted.scenario import Scenario, load_scenario
from cuggino.errors import AgentFailed, ConfigError, GuardNotLive, LlmSessionError, QuotaExceeded
from cuggino.events import Event
from cuggino.guard.policy import Policy
from cuggino.guard.roles import role_policy
from cuggino.operators import marker_tags
from cuggino.stages import agent_stage
from tests.agents.claude.claude_lines import kind
from tests.limits import LIMIT

pytestmark = pytest.mark.usefixtures("nothing_is_left")

FAIL = {"fail": {"status": 529, "error": "overloaded_error", "text": "Overloaded."}}


class Player:
    """An agent that records the output of its sessions."""

    def __init__(self, folder: Path, *runs: dict[str, Any], **settings: Any) -> None:
        self.folder = folder
        scenario = Scenario.model_validate({"implementing": runs, **settings})
        self.agent = ScriptedAgent(scenario)
        self.events: list[ev.Event] = []
        self.error: LlmSessionError | None = None

    def options(self, **changes: Any) -> SpawnOptions:
        given = {"prompt": "Go.", "cwd": self.folder, "role": "implementing", **changes}
        return SpawnOptions(**given)

    def play(self, **changes: Any) -> str:
        """Play a session and return its joined texts."""
        self.events, self.error = [], None
        try:
            cuggino.run(self.agent.spawn(self.options(**changes)), self.events.append)
        except LlmSessionError as error:
            self.error = error
        return " ".join(e.text for e in self.events if isinstance(e, ev.AgentMessage))

    def turn(self, turn: int, loop: str = "loop") -> str:
        return self.play(turn=turn, env={"CUGGINO_SESSION_FILE": loop})

    @property
    def ended(self) -> ev.SessionEnded:
        assert isinstance(self.events[-1], ev.SessionEnded)
        return self.events[-1]


def steps(*texts: str | dict[str, Any]) -> list[dict[str, Any]]:
    return [{"say": text} if isinstance(text, str) else text for text in texts]


def run(*texts: str | dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"steps": steps(*texts), **fields}


def test_usage_updates(tmp_path: Path) -> None:
    """Each `usage` step adds tokens to the running count, which is also the final one."""
    first = {"usage": {"input_tokens": 10, "output_tokens": 20}}
    second = {"usage": {"input_tokens": 5, "cache_read_tokens": 7, "cache_creation_tokens": 9}}
    player = Player(tmp_path, run(first, second, "ok", cost_usd=0.25))
    assert "ok" == player.play()
    used = ev.Usage(input_tokens=15, output_tokens=20, cache_read_tokens=7, cache_creation_tokens=9)
    updates = [event.usage for event in player.events if isinstance(event, ev.UsageUpdate)]
    assert [ev.Usage(input_tokens=10, output_tokens=20), used] == updates
    assert (used, 0.25) == (player.ended.usage, player.ended.cost_usd)


def test_a_session_that_listens(tmp_path: Path) -> None:
    """It takes a message where it listens, announces it, and uses it from then on."""
    listen = {"listen": LIMIT}
    wrote = {"write": "said.txt", "text": "$CUGGINO_MESSAGE"}
    shown = {"run": 'printf "%s" "$CUGGINO_MESSAGE" > shown.txt'}
    player = Player(tmp_path, run("begin", listen, "so: $CUGGINO_MESSAGE", wrote, shown))
    messages: Subject[str] = Subject()

    def say(event: ev.Event) -> None:
        player.events.append(event)
        if isinstance(event, ev.AgentMessage) and event.text == "begin":
            messages.on_next("use tabs, è\nplease")

    cuggino.run(player.agent.spawn(player.options(messages=messages)), say)
    said = [event for event in player.events if isinstance(event, ev.AgentMessage | ev.Steered)]
    assert ev.Steered(text="use tabs, è\nplease", to="session") == said[1]
    assert ["begin", "use tabs, è\nplease", "so: use tabs, è\nplease"] == [e.text for e in said]
    assert "use tabs, è\nplease" == (tmp_path / "said.txt").read_text()
    assert "use tabs, è\nplease" == (tmp_path / "shown.txt").read_text()
    assert [] == messages.observers


def test_a_session_that_listens_once(tmp_path: Path) -> None:
    """Messages wait until it listens; those that it never reads are not announced."""
    listen = {"listen": LIMIT}
    player = Player(tmp_path, run("1", listen, "$CUGGINO_MESSAGE", listen, "$CUGGINO_MESSAGE"))
    assert "1 a b" == player.play(messages=from_iterable(["a", "b", "c"]))
    assert ["a", "b"] == [event.text for event in player.events if isinstance(event, ev.Steered)]


@pytest.mark.parametrize("messages", [None, never()])
def test_a_session_to_which_nobody_says_anything(
    tmp_path: Path, messages: Observable[str] | None
) -> None:
    """It listens for so long at most, and goes on without a message."""
    player = Player(tmp_path, run({"listen": 0.05}, "so: $CUGGINO_MESSAGE."))
    assert "so: ." == player.play(messages=messages)
    assert not any(isinstance(event, ev.Steered) for event in player.events)


def test_a_limit_is_reported(tmp_path: Path) -> None:
    """A `limit` step emits the limit with its time, and the session continues."""
    warning = {"limit": {"status": "allowed_warning"}}
    rejected = {"limit": {"status": "rejected", "resets_in": 3600, "type": "weekly"}}
    player = Player(tmp_path, run(warning, rejected, "paid beyond it"))
    assert "paid beyond it" == player.play()
    first, second = (event for event in player.events if isinstance(event, ev.RateLimited))
    assert ev.RateLimited(status="allowed_warning", limit="five_hour") == first
    assert ("rejected", "weekly") == (second.status, second.limit)
    assert second.resets_at is not None
    assert 3500 < (second.resets_at - datetime.now(UTC)).total_seconds() <= 3600
    assert player.error is None


def test_windows_and_overage_are_reported(tmp_path: Path) -> None:
    """A `limit` step may report the used share of its window, and that more is paid for."""
    window = {"limit": {"status": "allowed", "used": 0.85, "resets_in": 3600}}
    overage = {"limit": {"status": "rejected", "overage": True}}
    player = Player(tmp_path, run(window, overage, "paid"))
    assert "paid" == player.play()
    reports = [event for event in player.events if isinstance(event, ev.QuotaUsed)]
    assert [0.85, 1.0] == [report.used for report in reports]
    limits = [event for event in player.events if isinstance(event, ev.RateLimited)]
    assert [False, True] == [limit.overage for limit in limits]


@pytest.mark.parametrize(
    ("fail", "reason"),
    [
        ({"status": 529, "error": "overloaded_error"}, "overloaded"),
        ({"status": 500}, "server"),
        ({"status": 429}, "rate_limit"),
        ({"status": 401}, "auth"),
        ({"error": "connection_failed"}, "connection"),
        ({"error": "usage_limit_reached", "status": 429}, "QuotaExceeded"),
        ({"status": 429, "text": "You've hit your limit"}, "QuotaExceeded"),
        ({}, "unknown"),
    ],
)
def test_failures(tmp_path: Path, fail: dict[str, Any], reason: str) -> None:
    """A `fail` step ends the session with the error of the matching Claude Code line."""
    player = Player(tmp_path, run("before", {"fail": fail}, "never", cost_usd=0.5))
    assert "before" == player.play(session_id="mine")
    assert reason == kind(player.error)
    assert (0.5, "mine") == (player.ended.cost_usd, player.ended.session_id)
    told = [event.text for event in player.events if isinstance(event, ev.SystemMessage)]
    assert fail.get("text", "API Error") == told[-1]


def test_a_rejected_limit(tmp_path: Path) -> None:
    """A rejected `limit` before a `fail` with 429 is a quota error with the limit's reset time."""
    limit = {"limit": {"status": "rejected", "resets_in": 60.0}}
    player = Player(tmp_path, run(limit, {"fail": {"status": 429}}))
    player.play()
    assert isinstance(player.error, QuotaExceeded)
    (event,) = (event for event in player.events if isinstance(event, ev.RateLimited))
    assert event.resets_at == player.error.resets_at
    assert "quota" == player.ended.outcome


def test_resumed_sessions(tmp_path: Path) -> None:
    """The reminder plays `reminder`, any other prompt plays `resumed`."""
    more = {"reminder": steps("reminded"), "resumed": steps("resumed")}
    player = Player(tmp_path, run("no marker", FAIL, **more), run("next"))
    assert "no marker" == player.play(session_id="s")
    assert "resumed" == player.play(prompt="Go on.", resume_session_id="s")
    reminder = "You ended without one of the markers of your role, so nobody knows."
    assert "reminded" == player.play(prompt=reminder, resume_session_id="s")
    assert "next" == player.play()


def test_the_reminder_of_a_stage(tmp_path: Path) -> None:
    """The prompt of a stage after a missing marker plays `reminder`."""
    more = {"reminder": steps("<DONE>asked</DONE>"), "resumed": steps("<DONE>not asked</DONE>")}
    player = Player(tmp_path, run("I forgot.", **more))
    stage = agent_stage(
        player.agent,
        player.options(session_id="s"),
        phase="implementing",
        tags=marker_tags(ev.Done),
        on_marker=lambda _marker: None,
    )
    assert ev.Done(content="asked") == cuggino.run(stage)


def test_resuming_without_a_resumed_section(tmp_path: Path) -> None:
    """Each resumed session continues after the step that failed."""
    player = Player(tmp_path, run("one", FAIL, "two", FAIL, "three"))
    played = [player.play(session_id="s")]
    played += [player.play(resume_session_id="s") for _ in range(2)]
    assert ["one", "two", "three"] == played
    assert player.error is None
    assert "one" == player.play(resume_session_id="s")


def test_a_disposed_session(tmp_path: Path) -> None:
    """A session disposed during a tool call is resumed after that call."""
    player = Player(tmp_path, run("one", {"run": "sleep 600"}, "two"))
    called = threading.Event()

    def note(event: ev.Event) -> None:
        if isinstance(event, ev.ToolCall):
            called.set()

    stream = player.agent.spawn(player.options(session_id="s"))
    subscription = stream.subscribe(note)
    assert called.wait(LIMIT)
    subscription.dispose()
    assert "two" == player.play(resume_session_id="s")


def test_a_session_of_another_process(tmp_path: Path) -> None:
    """A session unknown to this process plays the run of its turn."""
    player = Player(tmp_path, run("a"), run("b"), run("c", resumed=steps("c again")))
    env = {"CUGGINO_SESSION_FILE": "loop"}
    assert "b" == player.play(turn=2, env=env, resume_session_id="unknown")
    assert "c again" == player.play(turn=3, env=env, resume_session_id="unknown too")


def test_turns_of_an_earlier_process(tmp_path: Path) -> None:
    """Sessions completed by an earlier process are skipped; the next ones are in order."""
    player = Player(tmp_path, *(run(name) for name in "abcdefg"))
    assert ["c", "d"] == [player.turn(3), player.turn(4)]
    # A retry of the same session takes the next run, and so do later sessions.
    assert ["e", "f", "g"] == [player.turn(4), player.turn(3), player.turn(5)]


def test_turns_of_another_loop(tmp_path: Path) -> None:
    """Each run of the loop counts its own turns and skips none of its sessions."""
    player = Player(tmp_path, *(run(name) for name in "abcd"))
    played = [player.turn(1), player.turn(2), player.turn(1, "other"), player.turn(2, "other")]
    assert ["a", "b", "c", "d"] == played


def test_turns_beyond_the_scenario(tmp_path: Path) -> None:
    """A turn without a run fails, or repeats the last one if configured."""
    player = Player(tmp_path, run("a"))
    player.turn(3)
    assert isinstance(player.error, AgentFailed)
    assert "the scenario has no run 3 for the role implementing" == player.error.message
    assert "a" == Player(tmp_path, run("a"), repeat=True).turn(3)


def test_the_documented_scenario(tmp_path: Path) -> None:
    """The scenario for failing agents behaves as its comments describe."""
    text = """
    [[implementing]]
    [[implementing.steps]]
    usage = { input_tokens = 9000, output_tokens = 400 }
    [[implementing.steps]]
    limit = { status = "rejected", resets_in = 3600 }
    [[implementing.steps]]
    fail = { status = 429, text = "You've hit your limit" }
    [[implementing.resumed]]
    say = "<DONE>Done after all.</DONE>"
    """
    file = tmp_path / "scenario.toml"
    file.write_text(text, encoding="utf-8")
    player = Player(tmp_path)
    player.agent = ScriptedAgent(load_scenario(file))
    player.play(session_id="s")
    assert (kind(player.error), "quota") == ("QuotaExceeded", player.ended.outcome)
    assert player.ended.usage == ev.Usage(input_tokens=9000, output_tokens=400)
    assert "<DONE>Done after all.</DONE>" == player.play(resume_session_id="s")


@pytest.mark.parametrize(
    ("step", "where"),
    [
        ("fail = { status = 200 }", "0.fail.status"),
        ("limit = { resets = 3 }", "0.limit.resets"),
        ("usage = { input_tokens = -1 }", "0.usage.input_tokens"),
        ("fail = {}\nsay = 'x'", "0: a step has exactly one of"),
        ("tool = 'a'\nrun = 'b'", "0: a step has exactly one of"),
        ("run = 'a'\ninput = { a = 1 }", "0: only a step with a tool has an input"),
        ("input = { a = 1 }", "0: a step has exactly one of"),
        ("tool = ''", "0.tool"),
        ("tool = 'server/'", "0.tool"),
        ("tool = 'a'\ninput = 'b'", "0.input"),
        ("tool = 'a'\ninput = { day = 2026-01-01 }", "0.input.day"),
    ],
)
def test_invalid_steps(tmp_path: Path, step: str, where: str) -> None:
    """An invalid step is refused with its place in the file."""
    file = tmp_path / "scenario.toml"
    file.write_text(f"[[coding]]\n[[coding.steps]]\n{step}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_scenario(file)
    assert f"coding.0.steps.{where}" in caught.value.message


ROLES = get_args(Role)


class RolePlayer(Player):
    """An agent with runs for a single role."""

    def __init__(self, folder: Path, role: str, *runs: dict[str, Any]) -> None:
        super().__init__(folder, **{role: runs})
        self.role = role

    def play(self, **changes: Any) -> str:
        return super().play(role=self.role, **changes)


@pytest.mark.parametrize("role", ["planning", "verify"])
def test_every_role_has_runs(role: str, tmp_path: Path) -> None:
    """A role plays its own runs in order, skips those of earlier turns, and then has no more."""
    player = RolePlayer(tmp_path, role, run("a", cost_usd=0.5), run("b"), run("c"))
    assert "a" == player.turn(1)
    assert 0.5 == player.ended.cost_usd
    assert "c" == player.turn(3)
    player.turn(4)
    assert isinstance(player.error, AgentFailed)
    assert f"the scenario has no run 4 for the role {role}" == player.error.message


def test_an_agent_without_a_role(tmp_path: Path) -> None:
    """It has no runs, and the failure names the option."""
    player = RolePlayer(tmp_path, "coding", run("a"))
    player.role = ""
    player.turn(1)
    assert isinstance(player.error, AgentFailed)
    assert "for an agent without a role (`SpawnOptions.role`)" in player.error.message


def test_the_roles_of_a_scenario() -> None:
    """A scenario has one section per role, all of the same kind, and one for the manager."""
    fields = Scenario.model_fields
    assert set(ROLES) | {"pause", "repeat", "pm"} == set(fields)
    assert 1 == len({repr(fields[role]) for role in ROLES})


def play(folder: Path, *steps: dict[str, Any], policy: Policy | None) -> list[Event]:
    """Return the events of a session with these steps."""
    scenario = Scenario.model_validate({"implementing": [{"steps": steps}]})
    options = SpawnOptions(prompt="Go.", cwd=folder, role="implementing", guard=policy)
    events: list[Event] = []
    cuggino.run(ScriptedAgent(scenario).spawn(options), events.append)
    return events


STEPS: tuple[dict[str, Any], ...] = (
    {"write": "a.txt", "text": "a"},
    {"write": ".specs/a.md", "text": "a"},
    {"run": "echo b > b.txt"},
    {"run": "echo b > .specs/b.md"},
    {"append": "a.txt", "text": "a"},
    {"append": ".specs/task.md", "text": "a"},
    {"delete": ".specs/task.md"},
    {"say": "done"},
)


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".specs").mkdir()
    (tmp_path / ".specs" / "task.md").write_text("task")
    return tmp_path


def test_without_a_guard(project: Path) -> None:
    """An unguarded session runs all steps."""
    events = play(project, *STEPS, policy=None)
    expected = {"a.txt": "aa", "b.txt": "b\n", ".specs/a.md": "a", ".specs/b.md": "b\n"}
    assert expected == contents(project)
    assert "GuardDenied" not in [event.tag for event in events]


def test_without_a_parser(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a parser no guarded session starts."""

    def find() -> str:
        raise ConfigError("no shfmt", hint="install it")

    monkeypatch.setattr("cuggino.agents.base.guard.find_shfmt", find)
    policy = role_policy("implementing", project=project, level="roles")
    with pytest.raises(GuardNotLive, match="no shfmt") as caught:
        play(project, *STEPS, policy=policy)
    assert "install it" == caught.value.hint
    assert {".specs/task.md": "task"} == contents(project)


def test_a_broken_parser(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard that fails its canary ends the session before its first tool."""
    monkeypatch.setattr("cuggino.agents.base.guard.find_shfmt", lambda: "/nonexistent/shfmt")
    policy = role_policy("implementing", project=project, level="roles")
    with pytest.raises(GuardNotLive, match="not live: it answers deny"):
        play(project, {"sleep": 0.5}, *STEPS, policy=policy)
    assert {".specs/task.md": "task"} == contents(project)
