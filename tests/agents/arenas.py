"""Conformance arenas for the real programs, with a scripted model on loopback."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
from typing_extensions import override

from cuggino.agents import LlmAgent
from cuggino.events import Usage
from cuggino.testing import (
    CannotPlay,
    Delegate,
    Fail,
    Fault,
    Meanwhile,
    ModelRequest,
    Play,
    PlayArena,
    Say,
    Think,
    Turn,
    acts_of,
)
from cuggino.testing.conformance.acts import Act
from cuggino.testing.conformance.arena import GuardFault
from tests import model_script as model
from tests.limits import LIMIT
from tests.model_script import Block, Drop, Hang, Message, Reply, Script, Text, Thought
from tests.model_server import ModelServer
from tests.real_program import NOBODY, RealProgram, with_known_version


@dataclass(frozen=True)
class ModelPlay:
    """An agent and its model server."""

    agent: LlmAgent
    server: ModelServer

    def requests(self) -> Sequence[ModelRequest]:
        """Return the requests that the server received."""
        return [
            ModelRequest(
                system=request.system_text,
                text=request.messages_text,
                tools=tuple(request.tool_names),
                model=request.model,
            )
            for request in self.server.requests
        ]

    def usage(self) -> Usage:
        """Return the total usage, counted by the server once per request."""
        count = len(self.server.requests)
        return Usage(input_tokens=1000 * count, output_tokens=100 * count)


class ModelArena(PlayArena):
    """A real program with an empty project."""

    def __init__(self, real: RealProgram) -> None:
        super().__init__(real.project)
        real.project.mkdir(parents=True)
        self.real = real
        self.options = real.usual
        self.patience = LIMIT
        self.hearing = 3.0
        self.unknown_session = real.unknown_session
        self.other_model = real.other_model
        self.harmless_tools = real.harmless_tools
        self.limit_lasts = real.limit_lasts
        self._lines: list[str] = []

    @override
    @contextmanager
    def play(self, turns: Sequence[Turn], fault: Fault | None) -> Iterator[Play]:
        real = self.real
        acts = [acts_of(turn) for turn in turns]
        env = dict(self.ambient)
        if fault == "no_login":
            if real.no_login is None:
                raise CannotPlay("its configuration holds the key")
            env |= real.no_login
        wants_retry = any(isinstance(a, Fail) and a.times for turn in acts for a in turn)
        with self._program(fault), real.serve(Turns(real, acts)) as server:
            nobody = bool(acts) and acts[0] == (Fail("no_connection"),)
            url = NOBODY if nobody else server.url
            agent = real.agent(url, env, retries=int(wants_retry))
            yield ModelPlay(with_known_version(agent), server)

    @contextmanager
    def _program(self, fault: Fault | None) -> Iterator[None]:
        """Replace the program with a missing one, or one that prints the injected lines first."""
        program = self.real.program
        if fault == "missing_program":
            self.real.program = self.folder / "nothing"
        elif self._lines:
            self.real.program = self._wrapped(program)
        try:
            yield
        finally:
            self.real.program = program

    def _wrapped(self, program: Path) -> Path:
        lines = self.real.home.parent / "lines.jsonl"
        lines.write_text("".join(f"{line}\n" for line in self._lines), encoding="utf-8")
        wrapper = self.real.home.parent / program.name
        wrapper.write_text(
            f'#!/bin/sh\n[ "$1" = --version ] || cat "{lines}"\nexec "{program}" "$@"\n',
            encoding="utf-8",
        )
        wrapper.chmod(0o755)
        return wrapper

    @override
    def inject(self, line: str) -> None:
        if not self.real.prints_events:
            raise CannotPlay("the program is a server: its output is not read as events")
        self._lines.append(line)

    @override
    def hostile_settings(self) -> Sequence[Mapping[str, str]]:
        return self.real.hostile_settings()

    @override
    def rewriting_hook(self, command: str) -> None:
        self.real.rewriting_hook(command)

    @override
    def guard_faults(self, when: GuardFault) -> Sequence[str]:
        return self.real.guard_faults(when)

    @override
    def break_guard(
        self, when: GuardFault, fault: str
    ) -> AbstractContextManager[Callable[[], None]]:
        return self.real.break_guard(when, fault)


class Turns:
    """A model that plays these turns regardless of the earlier conversation."""

    def __init__(self, real: RealProgram, turns: Sequence[Sequence[Act]]) -> None:
        self._real = real
        self._turns = turns
        self._blocks = [[self._block(act) for act in turn] for turn in turns]
        helpers = [act.turns for turn in turns for act in turn if isinstance(act, Delegate)]
        self._helper: Script | None = None
        if helpers:
            blocks = [[self._block(act) for act in acts_of(turn)] for turn in helpers[0]]
            made = [[block for block in turn if block is not None] for turn in blocks]
            self._helper = model.spoken((), made, is_helper=lambda _: True, helped=real.helped)
        self._before: int | None = None
        self._failed: Counter[int] = Counter()
        self._over = 0
        """The number of failed turns so far, none of which produced a message."""

    def _block(self, act: Act) -> Block | None:
        match act:
            case Say(text):
                return Text(text)
            case Think(text):
                return Thought(text)
            case Meanwhile() | Fail():
                return None
            case _:
                return self._real.tool(act)

    def __call__(self, request: model.ModelRequest) -> Reply:
        if self._helper is not None and self._real.is_helper(request):
            return self._helper(request)
        if self._before is None:
            self._before = request.turns
        while True:
            at = request.turns - self._before + self._over
            count = len(self._turns)
            assert at < count, f"the agent asks for turn {at + 1} of {count}"
            failure = next((act for act in self._turns[at] if isinstance(act, Fail)), None)
            if failure is None or failure.times is None or self._failed[at] < failure.times:
                break
            self._over += 1
        for act in self._turns[at]:
            if isinstance(act, Meanwhile):
                act.action()
        blocks = [block for block in self._blocks[at] if block is not None]
        if failure is None:
            return Message(blocks)
        self._failed[at] += 1
        return self._failing(failure, Message(blocks) if blocks else None)

    def _failing(self, failure: Fail, begun: Message | None) -> Reply:
        after = self._real.cut_after
        match failure.kind:
            case "cut":
                return Drop(begun, after_events=after)
            case "hang":
                return Hang(message=begun, after_events=after if begun else 0)
            case "no_connection":
                raise CannotPlay("a service cannot vanish in the middle of a session")
            case kind:
                reply = self._real.failure(kind)
                # A transient failure does not ask for a long pause.
                return reply if failure.times is None else replace(reply, headers={})


class RealSuite:
    """A mixin that provides the arena for a real program."""

    pytestmark: ClassVar = pytest.mark.real_agent
    kind: ClassVar[type[RealProgram]]

    @pytest.fixture
    def arena(self, request: pytest.FixtureRequest, tmp_path: Path) -> ModelArena:
        """Return an arena for one rule."""
        program: Path = request.getfixturevalue(self.kind.cli)
        return ModelArena(self.kind(program, tmp_path / "project", tmp_path / "home"))
