"""Scripts for the scripted program, and sessions with it."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from reactivex import abc

from cuggino.agents import SpawnOptions
from cuggino.agents.acp import AcpAgent, Profile
from cuggino.errors import CugginoError
from cuggino.events import LlmAgentEvent, PingEvent, SessionEnded
from cuggino.guard import Policy, role_policy
from cuggino.operators import LoopScheduler
from tests.agents.acp import program
from tests.limits import LIMIT

E = TypeVar("E", bound=LlmAgentEvent)

PROGRAM = Path(program.__file__)
PROFILE = Profile(
    name="played",
    command=(sys.executable, "-IS", str(PROGRAM)),
    asks=True,
    mode="ask",
    usage="turns",
    cost="dollars",
    silencing=(".played/settings.json",),
)


def say(text: str, **meta: Any) -> dict[str, Any]:
    """Return the step that sends the text as an agent message."""
    content = {"type": "text", "text": text}
    more = {"_meta": meta} if meta else {}
    return {"update": {"sessionUpdate": "agent_message_chunk", "content": content, **more}}


def think(text: str) -> dict[str, Any]:
    """Return the step that shows a thought."""
    content = {"type": "text", "text": text}
    return {"update": {"sessionUpdate": "agent_thought_chunk", "content": content}}


def called(name: str, kind: str = "execute", **given: Any) -> dict[str, Any]:
    """Return a tool call."""
    return {"toolCallId": name, "title": name, "kind": kind, "rawInput": given}


def begun(call: dict[str, Any]) -> dict[str, Any]:
    """Return the step that reports the call."""
    return {"update": {"sessionUpdate": "tool_call", "status": "pending", **call}}


def done(name: str, output: str = "", *, failed: bool = False, **more: Any) -> dict[str, Any]:
    """Return the step that reports the call's result."""
    text = {"type": "content", "content": {"type": "text", "text": output}}
    update = {"toolCallId": name, "status": "failed" if failed else "completed"}
    return {"update": {"sessionUpdate": "tool_call_update", "content": [text], **update, **more}}


def asked(call: dict[str, Any], command: str = "", **more: Any) -> dict[str, Any]:
    """Return the step that asks about the call, and runs a command if it is allowed."""
    name = call["toolCallId"]
    run = [{"run": command}] if command else []
    allowed = [*run, done(name, "ran")]
    return {"ask": call, "allowed": allowed, "denied": [done(name, "no", failed=True)], **more}


def shell(name: str, command: str, **more: Any) -> dict[str, Any]:
    """Return the step that asks about a command, and runs it if it is allowed."""
    return asked(called(name, command=command), command, **more)


def stop(reason: str = "end_turn", **more: Any) -> dict[str, Any]:
    """Return the step that ends the turn."""
    return {"end": {"result": {"stopReason": reason, **more}}}


def error(code: int, message: str, data: Any = None) -> dict[str, Any]:
    """Return the step that ends the turn with an error."""
    return {"end": {"error": {"code": code, "message": message, "data": data}}}


@dataclass
class Session:
    """A session that has ended."""

    events: list[LlmAgentEvent] = field(default_factory=list)
    error: Exception | None = None
    received: list[dict[str, Any]] = field(default_factory=list)
    """What the program was sent."""

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def tags(self) -> list[str]:
        return [event.tag for event in self.events if not isinstance(event, PingEvent)]

    @property
    def ended(self) -> SessionEnded:
        assert isinstance(self.events[-1], SessionEnded)
        return self.events[-1]

    @property
    def failure(self) -> CugginoError:
        assert isinstance(self.error, CugginoError)
        return self.error

    def sent(self, method: str) -> list[dict[str, Any]]:
        """Return the parameters of these requests."""
        return [one["params"] for one in self.received if one.get("method") == method]

    @property
    def prompts(self) -> list[str]:
        return [params["prompt"][0]["text"] for params in self.sent("session/prompt")]

    @property
    def answers(self) -> list[str]:
        """Return what was answered to the requests of the program."""
        outcomes = [one["result"]["outcome"] for one in self.received if "result" in one]
        return [one.get("optionId", one["outcome"]) for one in outcomes]


class Stage:
    """A folder with a project, and the scripted program."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "project"
        (self.project / ".specs").mkdir(parents=True)
        (self.project / ".specs" / "task.md").write_text("There is a file.\n")
        self.script = folder / "script.json"
        self.profile = PROFILE

    def agent(self, *turns: Any, **script: Any) -> AcpAgent:
        self.script.write_text(json.dumps({"turns": turns, **script}), encoding="utf-8")
        command = (*self.profile.command, str(self.script))
        return AcpAgent(replace(self.profile, command=command))

    def policy(self, role: Any = "implementing", **more: Any) -> Policy:
        return role_policy(role, project=self.project, **{"level": "roles", **more})

    def options(self, **options: Any) -> SpawnOptions:
        usual = {"prompt": "go", "cwd": self.project, "dangerously_skip_permissions": True}
        return SpawnOptions(**{**usual, **options})

    def session(self, *turns: Any, script: dict[str, Any] | None = None, **options: Any) -> Session:
        """Run a session to its end."""
        agent = self.agent(*turns, **(script or {}))
        with self.running(agent, **options) as (session, ended, _):
            assert ended.wait(LIMIT), f"the session did not end: {session.events}"
        return session

    def guarded(self, *turns: Any, **options: Any) -> Session:
        """Run a session with the policy of an implementing agent to its end."""
        return self.session(*turns, **{"guard": self.policy(), **options})

    @contextmanager
    def running(
        self, agent: AcpAgent, **options: Any
    ) -> Iterator[tuple[Session, threading.Event, abc.DisposableBase]]:
        session, ended, lane = Session(), threading.Event(), LoopScheduler()

        def fail(raised: Exception) -> None:
            session.error = raised
            ended.set()

        subscription = agent.spawn(self.options(**options)).subscribe(
            session.events.append, fail, ended.set, scheduler=lane
        )
        try:
            yield session, ended, subscription
        finally:
            subscription.dispose()
            lane.close()
            log = self.script.with_suffix(".log")
            if log.exists():
                lines = log.read_text(encoding="utf-8").splitlines()
                session.received = [json.loads(line) for line in lines]
