"""The policies of the coding loop when the API fails real programs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

import cuggino
from cuggino import Config, Runtime, events as ev, save_config
from cuggino.agents.claude import ClaudeAgent
from cuggino.events import AgentFellBack, LoopApproved, RateLimited, SessionEnded, StageCost
from cuggino.loops import LoopRunOptions
from cuggino.processes import process_lines
from cuggino.storage import Workspace, list_journals, read_journal
from cuggino.testing import no_leaks
from tests import real_codex
from tests.limits import LIMIT
from tests.loops.demo import agent_env
from tests.model_responses import ResponsesServer
from tests.model_script import (
    SUBSCRIPTION,
    ApiError,
    Drop,
    Hang,
    Message,
    ModelRequest,
    Reply,
    Text,
    Tool,
    overloaded,
    rate_limited,
    server_error,
    usage_limit,
)
from tests.model_server import ModelServer
from tests.real_codex import bash

pytestmark = pytest.mark.real_agent

E = TypeVar("E", bound=ev.Event)

PLAN = Message([Tool("Bash", {"command": 'echo "- [ ] one" > "$CUGGINO_PLAN_FILE"'})])
PLANNED = Message([Text("<PLAN_COMPLETE>One task.</PLAN_COMPLETE>")])
WORK = Message([Tool("Bash", {"command": "echo worked | tee one.txt"})])
DONE = Message([Text("<DONE>one</DONE>")])
APPROVED = Message([Text("<APPROVED>Fine.</APPROVED>")])
LONG = Message([Text("A text that is longer than one delta of the stream, so it can be cut.")])
DEAR = Message(WORK.blocks, input_tokens=50_000, output_tokens=10_000)
PROMPT = "Do the next task of the plan"


RESETS_IN = 30
SILENCE = 40.0
"""Seconds that pass in real time, longer than the program takes to start on a busy machine."""


class Model:
    """A model that plans, works by the given replies (one for each request), and approves."""

    def __init__(self, *working: Reply | Callable[[], Reply]) -> None:
        self._left: dict[str, Iterator[Reply | Callable[[], Reply]]] = {
            "planning": iter((PLAN, PLANNED)),
            "implementing": iter(working),
            "reviewing": iter((APPROVED,)),
        }
        self.working: list[ModelRequest] = []
        """The requests of implementing agents."""

    def __call__(self, request: ModelRequest) -> Reply:
        (role,) = (role for role in self._left if f"# Role: {role} agent" in request.system_text)
        if role == "implementing":
            self.working.append(request)
        reply = next(self._left[role], None)
        assert reply is not None, f"nothing is scripted any more for {role}"
        return reply() if callable(reply) else reply

    def assert_gone_on_with(self, prompt: str) -> None:
        """Assert that the last request belongs to the session of the first, asked this."""
        begun, last = self.working[0], self.working[-1]
        assert PROMPT in begun.messages_text
        for known in (PROMPT, "worked", prompt):
            assert known in last.messages_text
        # The system prompt is that of the first; the agent does not take a new one.
        assert "# Role: implementing agent" in last.system_text


@dataclass(frozen=True)
class Told:
    """The result of a command: its events, its error message, its exit code."""

    events: Sequence[ev.Event]
    complaint: str
    code: int


@dataclass(frozen=True)
class Project:
    """A project with a specification, and the program in its own home."""

    folder: Path
    program: Path
    env: Mapping[str, str] = field(default_factory=dict)

    def agent_env(self, server: ModelServer, env: Mapping[str, str]) -> dict[str, str]:
        own = agent_env(self.folder.parent / "home", server)
        return {**own, "CLAUDE_CODE_MAX_RETRIES": "0", **env}

    def run(
        self, model: Model, env: Mapping[str, str] | None = None, **options: Any
    ) -> list[ev.Event]:
        """Run the loop in this process, with short pauses."""
        events: list[ev.Event] = []
        with ModelServer(model) as server:
            agent = ClaudeAgent(path=self.program, env=self.agent_env(server, env or {}))
            runtime = Runtime.live(cwd=self.folder, agent=agent)
            short = {"retry_pause": 0.1, "quota_margin": 0.0, "linger": LIMIT}
            given = {**dict(runtime.loop_options(focus="the task")), **short, **options}
            cuggino.run(runtime.loop.run(LoopRunOptions(**given)), events.append)
        return events

    def command(
        self, server: ModelServer, *args: str, env: Mapping[str, str] | None = None
    ) -> Told:
        """`cuggino run --json` with these arguments."""
        done = subprocess.run(
            [sys.executable, "-m", "cuggino_cli", "run", "--json", *args],
            cwd=self.folder,
            env=self.agent_env(server, env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT,
            check=False,
        )
        events = [ev.parse_event(line) for line in done.stdout.decode().splitlines()]
        return Told(events, done.stderr.decode(), done.returncode)


@pytest.fixture
def project(claude_cli: Path, tmp_path: Path) -> Iterator[Project]:
    folder = tmp_path / "project"
    (folder / ".specs").mkdir(parents=True)
    (folder / ".specs" / "task.md").write_text("There is a file one.txt.\n")
    save_config(folder, Config(agent_path=str(claude_cli)))
    cuggino.run(process_lines(["true"]))  # the guardian stays, and keeps a pipe
    with no_leaks(within=LIMIT):
        yield Project(folder, claude_cli)


def of(events: Sequence[ev.Event], cls: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, cls)]


@pytest.mark.parametrize(
    ("reason", "failures"),
    [
        ("rate_limit", [rate_limited(1)]),
        ("overloaded", [overloaded()]),
        ("server", [server_error()]),
        # It asks once more without streaming, before it gives up.
        ("connection", [Drop(LONG, after_events=4), Drop(LONG)]),
    ],
    ids=["429", "529", "500", "cut"],
)
def test_a_failure_that_passes(project: Project, reason: str, failures: list[Reply]) -> None:
    """A failure that the program gives up on is retried in its session, which has all context."""
    model = Model(WORK, *failures, DONE)
    events = project.run(model)
    (retry,) = of(events, ev.AgentRetry)
    assert (reason, 1, 3) == (retry.reason, retry.attempt, retry.max_retries)
    assert isinstance(events[-1], ev.LoopApproved)
    assert "worked\n" == (project.folder / "one.txt").read_text()
    model.assert_gone_on_with("Your session was cut off")
    ids = [ended.session_id for ended in of(events, ev.SessionEnded)]
    outcomes = [ended.outcome for ended in of(events, ev.SessionEnded)]
    assert ["completed", "failed", "completed", "completed"] == outcomes
    assert ids[1] == ids[2]
    assert 3 == len(set(ids))


def test_a_usage_limit_is_waited_for(project: Project) -> None:
    """A subscription's limit is waited for until its reset, then the session goes on."""
    told: list[int] = []

    def limit() -> Reply:
        told.append(int(time.time()) + RESETS_IN)
        return usage_limit(told[0])

    model = Model(WORK, limit, DONE)
    events = project.run(model, SUBSCRIPTION, wait_for_quota=True)
    wait = of(events, ev.QuotaWaiting)[0]
    assert wait.resets_at is not None
    assert told == [wait.resets_at.timestamp()]
    assert 0 < wait.remaining <= RESETS_IN
    (lifted,) = of(events, ev.QuotaLifted)
    assert wait.remaining - 0.1 <= lifted.waited
    assert isinstance(events[-1], ev.LoopApproved)
    model.assert_gone_on_with("Your session was cut off")
    assert [] == of(events, ev.AgentRetry)


def test_a_usage_limit_ends_a_run_that_can_be_resumed(project: Project) -> None:
    """Without waiting the command exits with 12; a later command resumes that run."""
    resets_at = int(time.time()) + 3 * 3600
    model = Model(WORK, usage_limit(resets_at), WORK, DONE)
    with ModelServer(model) as server:
        limited = project.command(server, "--focus", "the task", env=SUBSCRIPTION)
        assert 12 == limited.code
        assert "hit your 5-hour limit" in limited.complaint
        assert "start again after" in limited.complaint
        resumed = project.command(server, "--resume", env=SUBSCRIPTION)
    assert (0, "") == (resumed.code, resumed.complaint)
    assert ["RunResumed", "LoopApproved"] == [resumed.events[0].tag, resumed.events[-1].tag]
    assert "PlanningStart" not in {event.tag for event in resumed.events}


def test_a_budget_that_is_used_up(project: Project) -> None:
    """The agent is cut at the end of the budget (exit code 13); a larger one resumes the run."""
    model = Model(DEAR, DEAR, DONE)
    with ModelServer(model) as server:
        spent = project.command(server, "--focus", "the task", "--budget", "0.1")
        assert 13 == spent.code
        assert "The budget of the run is used up: ~$" in spent.complaint
        assert "resume with a larger `--budget`" in spent.complaint
        outcomes = [ended.outcome for ended in of(spent.events, ev.SessionEnded)]
        assert ["completed"] == outcomes
        again = project.command(server, "--resume", "--budget", "10")
    assert (0, "") == (again.code, again.complaint)
    assert "LoopApproved" == again.events[-1].tag


def test_a_silent_agent_is_nudged(project: Project) -> None:
    """An agent whose API stream hangs is ended, and its session is resumed."""
    model = Model(WORK, Hang(message=LONG, after_events=4), DONE)
    events = project.run(model, idle_timeout=SILENCE)
    (nudge,) = of(events, ev.AgentNudged)
    assert nudge.idle is not None
    assert SILENCE <= nudge.idle
    assert isinstance(events[-1], ev.LoopApproved)
    model.assert_gone_on_with("the agent was silent for ")


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [(401, "authentication_error", "Failed to authenticate"), (403, "permission_error", "403")],
)
def test_a_bad_key_is_not_tried_again(project: Project, status: int, kind: str, words: str) -> None:
    """A rejected key ends the command at once with exit code 1 and an error with the cause."""
    model = Model(ApiError(status, kind, "This key is not accepted."))
    with ModelServer(model) as server:
        told = project.command(server, "--focus", "the task")
    assert 1 == told.code
    assert [] == of(told.events, ev.AgentRetry)
    assert 1 == len(model.working)
    assert "Loop error in implementing phase: " in told.complaint
    assert words in told.complaint
    assert "set ANTHROPIC_API_KEY" in told.complaint


# -- the coding loop when the real Claude Code CLI has no usage left, or is not logged in


SPARE = """
[[implementing]]
cost_usd = 0.5
[[implementing.steps]]
run = "cat one.txt > two.txt"
[[implementing.steps]]
say = "<DONE>both files</DONE>"
[[reviewing]]
[[reviewing.steps]]
say = "<APPROVED>Fine.</APPROVED>"
"""


def test_a_usage_limit_in_mid_session(project: Project) -> None:
    """Another agent takes over the work as it is in the project, and keeps it to the end."""
    (project.folder / "spare.toml").write_text(SPARE)
    config = {"agentPath": str(project.program), "fallback": ["scripted:spare.toml"]}
    (project.folder / ".cuggino.json").write_text(json.dumps(config))
    with ModelServer(Model(WORK, usage_limit(int(time.time()) + 3600))) as server:
        told = project.command(server, "--focus", "the task", env=SUBSCRIPTION)
    assert (0, "") == (told.code, told.complaint)
    assert isinstance(told.events[-1], LoopApproved)
    (fell,) = of(told.events, AgentFellBack)
    assert ("implementing", "claude", "scripted:spare.toml", "quota") == (
        fell.role,
        fell.from_agent,
        fell.to_agent,
        fell.reason,
    )
    (limit,) = [e for e in of(told.events, RateLimited) if e.status == "rejected"]
    assert limit.resets_at == fell.until
    assert "worked\n" == (project.folder / "two.txt").read_text()
    stage = next(e for e in of(told.events, StageCost) if e.phase == "implementing")
    costs = [event.cost_usd or 0.0 for event in of(told.events, SessionEnded)][1:3]
    assert costs[0] > 0
    assert pytest.approx(sum(costs)) == stage.cost_usd
    (path,) = list_journals(Workspace(project.folder).journal)
    assert any(entry.event == fell for entry in read_journal(path).entries)


def test_the_model_is_that_of_the_role(project: Project) -> None:
    """A role with its own model requests that one, the others the configured one."""
    config = {
        "agentPath": str(project.program),
        "model": "claude-sonnet-4-5",
        "agents": {"planning": {"model": "claude-opus-4-5"}},
    }
    (project.folder / ".cuggino.json").write_text(json.dumps(config))
    with ModelServer(Model(WORK, DONE)) as server:
        told = project.command(server, "--focus", "the task")
    assert (0, "") == (told.code, told.complaint)
    asked = [str(request.body["model"]) for request in server.requests]
    assert ["claude-opus-4-5", "claude-sonnet-4-5"] == list(dict.fromkeys(asked))


# -- a budget in money over two real agents, of which one reports no dollars


PRICED = Message([bash("echo worked | tee one.txt")], input_tokens=200_000, output_tokens=20_000)
MORE = Message([bash("sleep 20; echo more > two.txt")])
OVER = Message([Text("<DONE>one</DONE>")])


class Worker:
    """The model of the implementing agents: work that is dear, then more of it."""

    def __init__(self, *replies: Message) -> None:
        self._left = iter(replies)

    def __call__(self, _request: ModelRequest) -> Message:
        return next(self._left, OVER)


def run(
    project: Project, codex: Path, claude: ModelServer, openai: ModelServer, *words: str
) -> tuple[Sequence[ev.Event], str, int]:
    home = project.folder.parent / "codex"
    (home / ".codex").mkdir(parents=True, exist_ok=True)
    (home / "tmp").mkdir(exist_ok=True)
    program = home / "bin" / "codex"
    program.parent.mkdir(exist_ok=True)
    program.unlink(missing_ok=True)
    program.symlink_to(codex)
    own = real_codex.clean_env(home, openai.url)
    env = {**own, **agent_env(project.folder.parent / "home", claude)}
    env["PATH"] = f"{program.parent}:{env['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "cuggino_cli", "run", "--json", *words],
        cwd=project.folder,
        env={**env, "CLAUDE_CODE_MAX_RETRIES": "0", "TMPDIR": own["TMPDIR"]},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )
    events = [ev.parse_event(line) for line in done.stdout.decode().splitlines()]
    return events, done.stderr.decode(), done.returncode


def test_a_budget_of_two_agents(project: Project, codex_cli: Path) -> None:
    """Codex's tokens are priced: its session is cut when the budget is spent, and marked."""
    worker = {"agent": "codex", "model": real_codex.MODEL}
    config = {"agentPath": str(project.program), "agents": {"implementing": worker}}
    (project.folder / ".cuggino.json").write_text(json.dumps(config))
    with ModelServer(Model()) as claude, ResponsesServer(Worker(PRICED, MORE)) as openai:
        events, complaint, code = run(
            project, codex_cli, claude, openai, "--focus", "the task", "--budget", "0.5"
        )
        assert 13 == code, complaint
        assert "The budget of the run is used up: ~$" in complaint
        (planned,) = of(events, ev.SessionEnded)
        assert not planned.cost_estimated
        spent = of(events, ev.UsageUpdate)[-1]
        assert (real_codex.MODEL, True) == (spent.model, spent.cost_estimated)
        assert spent.cost_usd is not None
        assert spent.cost_usd > 0.5
        assert not (project.folder / "two.txt").exists()
        again, complaint, code = run(
            project, codex_cli, claude, openai, "--resume", "--budget", "10"
        )
    assert (0, "") == (code, complaint)
    assert "LoopApproved" == again[-1].tag
