"""A whole agent in this process, and ways to break it: what the rules for agents are tried on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import reactivex as rx
from reactivex import Observable, operators as ops
from typing_extensions import override

from cuggino.agents import Capabilities, InteractiveOptions, SpawnOptions
from cuggino.errors import AgentFailed, AgentFailure, AgentNotFound, ProcessFailed
from cuggino.events import (
    AgentMessage,
    LlmAgentEvent,
    MessageDelta,
    SessionEnded,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UsageUpdate,
)
from cuggino.operators import ask, emit, flow
from cuggino.operators.flow import Flow
from cuggino.sources import process_lines
from cuggino.testing import (
    CannotPlay,
    Fail,
    Fault,
    Play,
    PlayArena,
    Run,
    Say,
    Think,
    Told,
    Turn,
    Write,
    acts_of,
)

REASONS: dict[str, AgentFailure] = {
    "bad_key": "auth",
    "rate_limit": "rate_limit",
    "overload": "overloaded",
    "server_error": "server",
    "no_connection": "connection",
    "cut": "connection",
}
_PIECE = 24


@dataclass
class Model:
    """What a session of the agent talks to."""

    turns: Sequence[Turn]
    fault: Fault | None
    memory: dict[str, list[str]]
    """What was said in each session that there was."""
    told: list[Told] = field(default_factory=list)


class PlainAgent:
    """An agent that does what the turns say, with tools of its own."""

    name = "plain"
    can_resume = True
    tools: tuple[str, ...] = ("shell", "write")

    def __init__(self, model: Model) -> None:
        self.model = model
        self._ids = count(1)

    @property
    def capabilities(self) -> Capabilities:
        """What it does."""
        return Capabilities(resume=True, cost="tokens", deltas=True)

    def check(self) -> str:
        """Always there."""
        return "1"

    def interactive(self, options: InteractiveOptions) -> int:
        """Nothing to talk to."""
        return 0

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """One session."""
        return flow(lambda: self.story(options))

    def story(self, options: SpawnOptions) -> Flow[None]:
        """The session from its start to its end."""
        if self.model.fault == "missing_program":
            raise self.missing()
        yield from emit(SystemMessage(text="plain has started"))
        session = options.resume_session_id or f"plain-{len(self.model.memory)}"
        if options.resume_session_id and not self.knows(session):
            yield from self.fail("bad_request", session)
        said = self.model.memory.setdefault(session, [])
        said.append(self.prompt_of(options))
        answers = 0
        for turn in self.model.turns:
            self.ask_model(options, said, is_resumed=options.resume_session_id is not None)
            answers += 1
            for number, act in enumerate(acts_of(turn)):
                match act:
                    case Say(text) if Fail("cut") in acts_of(turn)[number:]:
                        yield from emit(*self.deltas(text[:_PIECE], "cut"))
                    case Say(text):
                        said.append(text)
                        yield from emit(*self.message(text, f"message {next(self._ids)}"))
                    case Think(text):
                        yield from emit(self.thought(text))
                    case Run() | Write():
                        said.append((yield from self.use(act, options)))
                    case Fail("hang"):
                        yield from ask(rx.never())
                    case Fail(kind):
                        yield from self.fail(self.reason(kind), session)
            if not any(isinstance(act, Run | Write) for act in acts_of(turn)):
                break
        usage = self.usage(answers, options)
        yield from emit(UsageUpdate(usage=usage))
        yield from emit(SessionEnded(outcome="completed", usage=usage, session_id=session))

    def ask_model(self, options: SpawnOptions, said: Sequence[str], *, is_resumed: bool) -> None:
        """Put the question of the next turn to the model."""
        told = Told(
            system=self.system_of(options),
            text="\n".join(said),
            tools=self.tools,
            model=options.model or "plain-model",
        )
        self.model.told.append(told)

    def use(self, act: Run | Write, options: SpawnOptions) -> Flow[str]:
        """Use the tool; gives what it said."""
        call = f"call {next(self._ids)}"
        if isinstance(act, Run):
            yield from emit(self.call("Bash", {"command": act.command}, call))
        else:
            yield from emit(self.call("Write", {"file_path": act.path}, call))
        output, failed = "not without leave", True
        if self.may(options) and isinstance(act, Run):
            output, failed = yield from self.run(act.command, options)
        elif self.may(options) and isinstance(act, Write):
            file = options.cwd / act.path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(act.text)
            output, failed = "written", False
        yield from emit(self.result(call, output, failed))
        return output

    def run(self, command: str, options: SpawnOptions) -> Flow[tuple[str, bool]]:
        """Run the command; gives its output, and whether it failed."""
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
        yield from emit(SessionEnded(outcome="failed", session_id=session))
        raise AgentFailed("the plain agent failed", reason=reason)

    # What follows is what broken agents do in another way.

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

    def usage(self, answers: int, options: SpawnOptions) -> Usage:
        return Usage(input_tokens=10 * answers, output_tokens=answers)

    def message(self, text: str, name: str) -> list[LlmAgentEvent]:
        return [*self.deltas(text, name), AgentMessage(text=text, message_id=name)]

    def deltas(self, text: str, name: str) -> list[LlmAgentEvent]:
        pieces = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
        return [MessageDelta(text=piece, message_id=name) for piece in pieces]

    def thought(self, text: str) -> LlmAgentEvent:
        return Thinking(text=text)

    def call(self, name: str, given: dict[str, Any], call: str) -> ToolCall:
        return ToolCall(name=name, input=given, id=call)

    def result(self, call: str, output: str, failed: bool) -> ToolResult:
        return ToolResult(name=call, output=output, is_error=failed)

    def process(self, command: str, options: SpawnOptions) -> Observable[bytes]:
        return process_lines(
            ["/bin/sh", "-c", command],
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

    def told(self) -> Sequence[Told]:
        """Every request."""
        return self.model.told

    def taken(self) -> Usage:
        """What its requests took."""
        asked = len(self.model.told)
        return Usage(input_tokens=10 * asked, output_tokens=asked)


class PlainArena(PlayArena):
    """The plain agent, or one of its kind that is broken."""

    patience = 10.0
    other_model = "other-model"
    made: Callable[[Model], PlainAgent] = PlainAgent

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.memory: dict[str, list[str]] = {}

    @override
    @contextmanager
    def play(self, turns: Sequence[Turn], fault: Fault | None) -> Iterator[Play]:
        model = Model(turns, fault, self.memory)
        yield PlainPlay(type(self).made(model), model)

    @override
    def program(self) -> int:
        raise CannotPlay("it has no program but its tools")
