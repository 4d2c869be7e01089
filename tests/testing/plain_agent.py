"""A complete in-process agent on which the conformance suites are tested."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import reactivex as rx
from reactivex import Observable, operators as ops
from typing_extensions import override

from cuggino import events as ev
from cuggino.agents import Capabilities, LlmAgent, SpawnOptions
from cuggino.agents.base import calls
from cuggino.agents.base.guard import NOT_JUDGED, make_guard
from cuggino.agents.claude.guard import try_hook
from cuggino.errors import (
    AgentFailed,
    AgentFailure,
    AgentNotFound,
    GuardNotLive,
    ProcessFailed,
    QuotaExceeded,
)
from cuggino.guard.policy import Policy
from cuggino.operators import ask, emit, flow
from cuggino.operators.flow import Flow
from cuggino.processes import process_lines
from cuggino.testing import (
    Call,
    CannotPlay,
    Delegate,
    Edit,
    Fail,
    Fault,
    Meanwhile,
    ModelRequest,
    Play,
    PlayArena,
    Read,
    Run,
    Say,
    Think,
    Turn,
    Write,
    acts_of,
)
from cuggino.testing.conformance.arena import GuardFault
from tests.limits import LIMIT

REASONS: dict[str, AgentFailure] = {
    "bad_request": "bad_request",
    "bad_key": "auth",
    "rate_limit": "rate_limit",
    "too_long": "prompt_too_long",
    "overload": "overloaded",
    "server_error": "server",
    "no_connection": "connection",
    "cut": "connection",
}
LIFTED = timedelta(hours=1)
"""Time until a usage limit resets."""

_PIECE = 24


@dataclass
class Model:
    """The model behind a session."""

    turns: Sequence[Turn]
    fault: Fault | None
    memory: dict[str, list[str]]
    """The conversations of all sessions."""
    requests: list[ModelRequest] = field(default_factory=list)
    guard_faults: list[str] = field(default_factory=list)
    ambient: Mapping[str, str] = field(default_factory=dict)


class PlainAgent(LlmAgent):
    """An agent that plays the turns with built-in tools."""

    name = "plain"
    tools: tuple[str, ...] = ("shell", "write")

    def __init__(self, model: Model) -> None:
        self.model = model
        self._ids = count(1)

    @property
    def capabilities(self) -> Capabilities:
        """Return the capabilities."""
        return Capabilities(resume=True, cost="tokens", deltas=True, messages=True)

    def check(self) -> str:
        """Return the version."""
        return "1"

    def spawn(self, options: SpawnOptions) -> Observable[ev.LlmAgentEvent]:
        """Run one session."""
        return flow(lambda: self.story(options))

    def story(self, options: SpawnOptions) -> Flow[None]:
        """Play the session from its start to its end."""
        if self.model.fault == "missing_program":
            raise self.missing()
        yield from emit(ev.SystemMessage(text="plain has started"))
        session = options.resume_session_id or f"plain-{len(self.model.memory)}"
        if options.resume_session_id and not self.knows(session):
            yield from self.fail("bad_request", session)
        if self.model.fault == "no_login":
            yield from self.fail("auth", session)
        yield from self.begin(options, session)
        said = self.model.memory.setdefault(session, [])
        said.append(self.prompt_of(options))
        answers = 0
        heard: list[str] = []
        self.hear(options, heard)
        for turn in self.model.turns:
            told, heard[:] = [*heard], []
            said += told
            yield from emit(*map(self.told, told))
            self.ask_model(options, said, is_resumed=options.resume_session_id is not None)
            answers += 1
            acts = acts_of(turn)
            for number, act in enumerate(acts):
                match act:
                    case Say(text) if any(act in acts[number:] for act in self.cuts()):
                        yield from emit(*self.deltas(text[:_PIECE], "cut"))
                    case Say(text):
                        said.append(text)
                        yield from emit(*self.message(text, f"message {next(self._ids)}"))
                    case Think(text):
                        yield from emit(self.thought(text))
                    case Run() | Write() | Edit() | Read():
                        said.append((yield from self.use(act, options)))
                    case Meanwhile(action):
                        action()
                    case Fail("hang"):
                        yield from ask(rx.never())
                    case Fail("usage_limit"):
                        yield from self.limit(session)
                    case Fail(_, int()) if self.retries():
                        pass
                    case Fail(kind):
                        yield from self.fail(self.reason(kind), session)
                    case _:
                        raise CannotPlay("it has no sub-agents and no servers of tools")
            used = any(isinstance(act, Run | Write | Edit | Read | Fail) for act in acts)
            if not used and not heard:
                break
        usage = self.usage(answers, options)
        yield from emit(ev.UsageUpdate(usage=usage))
        yield from emit(ev.SessionEnded(outcome="completed", usage=usage, session_id=session))

    def cuts(self) -> tuple[Fail, Fail]:
        """Return the failures in the middle of a text."""
        return Fail("cut"), Fail("cut", times=1)

    def limit(self, session: str) -> Flow[None]:
        """End with a usage limit."""
        lifted = self.lifted()
        yield from emit(ev.RateLimited(status="rejected", resets_at=lifted))
        yield from emit(ev.SessionEnded(outcome="quota", session_id=session))
        raise QuotaExceeded("the limit is reached", resets_at=lifted)

    def ask_model(self, options: SpawnOptions, said: Sequence[str], *, is_resumed: bool) -> None:
        """Send the request of the next turn to the model."""
        request = ModelRequest(
            system=self.system_of(options),
            text="\n".join(said),
            tools=self.tools,
            model=options.model or "plain-model",
        )
        self.model.requests.append(request)

    def use(self, act: Run | Write | Edit | Read, options: SpawnOptions) -> Flow[str]:
        """Use the tool and return its output."""
        call = f"call {next(self._ids)}"
        made = self.call_of(act, call)
        yield from emit(made)
        denial = self.judge(made, options)
        if denial is not None:
            yield from emit(denial, self.result(call, denial.reason, failed=True))
            return denial.reason
        output, failed = "no permission", not isinstance(act, Read)
        match act:
            case Read(path):
                output = (options.cwd / path).read_text()
            case Run(command) if self.may(options):
                output, failed = yield from self.run(command, options)
            case Write(path, text) if self.may(options):
                output, failed = self.write(options.cwd / path, text)
            case Edit(path, old, new) if self.may(options):
                file = options.cwd / path
                output, failed = self.write(file, file.read_text().replace(old, new))
            case _:
                pass
        yield from emit(self.result(call, output, failed))
        return output

    def write(self, file: Path, text: str) -> tuple[str, bool]:
        """Write the file; return the output of the tool and whether it failed."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return "written", False

    def call_of(self, act: Run | Write | Edit | Read, call: str) -> ev.ToolCall:
        match act:
            case Run(command):
                return self.call("Bash", {"command": command}, call)
            case Write(path, text):
                return self.call("Write", {"file_path": path, "content": text}, call)
            case Edit(path, old, new):
                given = {"file_path": path, "old_string": old, "new_string": new}
                return self.call("Edit", given, call)
            case Read(path):
                return self.call("Read", {"file_path": path}, call)

    def run(self, command: str, options: SpawnOptions) -> Flow[tuple[str, bool]]:
        """Run the command; return its output and whether it failed."""
        lines: list[str] = []

        def keep(line: bytes) -> None:
            lines.append(line.decode())

        try:
            yield from ask(self.process(command, options).pipe(ops.do_action(keep)))
        except ProcessFailed:
            return "\n".join(lines), True
        return "\n".join(lines), False

    def fail(self, reason: AgentFailure, session: str) -> Flow[None]:
        """End with this error."""
        yield from emit(ev.SessionEnded(outcome="failed", session_id=session))
        hint = {"auth": "log in", "bad_request": "start a new session"}.get(reason)
        raise AgentFailed("the plain agent failed", reason=reason, hint=hint)

    # Broken agents override these.

    def begin(self, options: SpawnOptions, session: str) -> Flow[None]:
        yield from emit()

    def hear(self, options: SpawnOptions, heard: list[str]) -> None:
        if options.messages is not None:
            options.messages.subscribe(heard.append)

    def told(self, text: str) -> ev.LlmAgentEvent:
        return ev.Steered(text=text, to="session")

    def judge(self, call: ev.ToolCall, options: SpawnOptions) -> ev.GuardDenied | None:
        return None

    def retries(self) -> bool:
        return True

    def lifted(self) -> datetime | None:
        return datetime.now(UTC) + LIFTED

    def missing(self) -> AgentNotFound:
        return AgentNotFound("there is no plain agent", hint="make one")

    def knows(self, session: str) -> bool:
        return session in self.model.memory

    def prompt_of(self, options: SpawnOptions) -> str:
        return options.prompt

    def system_of(self, options: SpawnOptions) -> str:
        return options.system_prompt or ""

    def may(self, options: SpawnOptions) -> bool:
        return options.dangerously_skip_permissions

    def reason(self, kind: str) -> AgentFailure:
        return REASONS[kind]

    def usage(self, answers: int, options: SpawnOptions) -> ev.Usage:
        return ev.Usage(input_tokens=10 * answers, output_tokens=answers)

    def message(self, text: str, name: str) -> list[ev.LlmAgentEvent]:
        return [*self.deltas(text, name), ev.AgentMessage(text=text, message_id=name)]

    def deltas(self, text: str, name: str) -> list[ev.LlmAgentEvent]:
        pieces = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
        return [ev.MessageDelta(text=piece, message_id=name) for piece in pieces]

    def thought(self, text: str) -> ev.LlmAgentEvent:
        return ev.Thinking(text=text)

    def call(self, name: str, given: dict[str, Any], call: str) -> ev.ToolCall:
        return ev.ToolCall(name=name, input=given, id=call)

    def result(self, call: str, output: str, failed: bool) -> ev.ToolResult:
        return ev.ToolResult(name=call, output=output, is_error=failed)

    def process(self, command: str, options: SpawnOptions) -> Observable[bytes]:
        return process_lines(
            ["/bin/bash", "-c", command],
            cwd=options.cwd,
            env=self.env(options),
            merge_stderr=True,
            grace=0.1,
        )

    def env(self, options: SpawnOptions) -> dict[str, str]:
        return {"PATH": "/usr/bin:/bin", **options.env}


@dataclass(frozen=True)
class PlainPlay:
    """The agent and its model."""

    agent: PlainAgent
    model: Model

    def requests(self) -> Sequence[ModelRequest]:
        """Return every request."""
        return self.model.requests

    def usage(self) -> ev.Usage:
        """Return the usage of its requests."""
        asked = len(self.model.requests)
        return ev.Usage(input_tokens=10 * asked, output_tokens=asked)


class PlainArena(PlayArena):
    """The plain agent, or a broken variant."""

    patience = LIMIT
    limit_lasts = LIFTED.total_seconds()
    other_model = "other-model"
    hearing = 0.0
    made: Callable[[Model], PlainAgent] = PlainAgent

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.memory: dict[str, list[str]] = {}
        self.broken: list[str] = []

    @override
    @contextmanager
    def play(self, turns: Sequence[Turn], fault: Fault | None) -> Iterator[Play]:
        for turn in turns:
            if any(isinstance(act, Delegate | Call) for act in acts_of(turn)):
                raise CannotPlay("it has no sub-agents and no servers of tools")
        model = Model(turns, fault, self.memory, guard_faults=self.broken, ambient=self.ambient)
        yield PlainPlay(type(self).made(model), model)

    @override
    def program(self) -> int:
        raise CannotPlay("it has no program but its tools")

    @override
    def guard_faults(self, when: GuardFault) -> Sequence[str]:
        return {"at the start": ("no parser",), "later": ("raises",), "unasked": ("silent",)}[when]

    @override
    @contextmanager
    def break_guard(self, when: GuardFault, fault: str) -> Iterator[Callable[[], None]]:
        self.broken[:] = [fault] if when == "at the start" else []
        yield lambda: self.broken.append(fault)
        self.broken.clear()

    @override
    def hostile_settings(self) -> Sequence[Mapping[str, str]]:
        return [{"plain.json": '{"guard": false}'}]


class GuardedPlainAgent(PlainAgent):
    """A plain agent with a guard."""

    @property
    @override
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, guard="calls")

    def check_guard(self, policy: Policy) -> None:
        """Check the guard without a session."""
        try_hook(make_guard(policy))

    @override
    def begin(self, options: SpawnOptions, session: str) -> Flow[None]:
        if options.guard is not None and self.broken("no parser"):
            yield from emit(ev.SessionEnded(outcome="failed", session_id=session))
            raise GuardNotLive("the guard does not work")

    def broken(self, fault: str) -> bool:
        return fault in self.model.guard_faults

    @override
    def judge(self, call: ev.ToolCall, options: SpawnOptions) -> ev.GuardDenied | None:
        if options.guard is None:
            return None
        if self.broken("raises"):
            return ev.GuardDenied(tool=call.name, tool_use_id=call.id, part="", reason=NOT_JUDGED)
        return self.verdict(call, options, options.guard)

    @override
    def use(self, act: Run | Write | Edit | Read, options: SpawnOptions) -> Flow[str]:
        output = yield from super().use(act, options)
        if options.guard is not None and self.broken("silent"):
            yield from emit(ev.SessionEnded(outcome="failed"))
            raise GuardNotLive("a tool was used without its verdict")
        return output

    @override
    def env(self, options: SpawnOptions) -> dict[str, str]:
        return {**super().env(options), **self.startup(self.model.ambient)}

    def startup(self, ambient: Mapping[str, str]) -> Mapping[str, str]:
        return {name: text for name, text in ambient.items() if name != "BASH_ENV"}

    def verdict(
        self, call: ev.ToolCall, options: SpawnOptions, policy: Policy
    ) -> ev.GuardDenied | None:
        """Return the denial of the call, None when it is allowed."""
        asked = calls.Call(call.name, call.input)
        orders = make_guard(policy).judge
        answer = orders.verdict(asked, call_id=call.id, cwd=str(options.cwd))
        part, reason = answer.get("part"), answer.get("reason")
        given = call.input if isinstance(call.input, dict) else {}
        place = (options.cwd / str(given.get("file_path", ""))).resolve()
        if (
            call.name == "Read"
            and policy.rules is not None
            and not place.is_relative_to(options.cwd)
        ):
            part, reason = str(place), "Only the project may be read."
        if reason is None:
            return None
        return ev.GuardDenied(tool=call.name, tool_use_id=call.id, part=str(part), reason=reason)


class GuardedPlainArena(PlainArena):
    """The guarded plain agent, or a broken variant."""

    made: Callable[[Model], PlainAgent] = GuardedPlainAgent
