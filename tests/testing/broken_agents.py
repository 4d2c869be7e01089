"""Agents that each break one rule, and keep all others."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar

import reactivex as rx
from reactivex import Observable, operators as ops
from typing_extensions import override

from cuggino.agents import Capabilities, SpawnOptions
from cuggino.errors import AgentFailure, AgentNotFound
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
from cuggino.operators import mapcat
from cuggino.operators.flow import Flow
from cuggino.security.policy import Policy
from tests.testing.plain_agent import PlainAgent

_ARGUMENT = 128 * 1024
"""The bytes that one argument of a program can have."""


class TalksOn(PlainAgent):
    @override
    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        return super().spawn(options).pipe(ops.concat(rx.of(SystemMessage(text="bye"))))


class BeginsSilently(PlainAgent):
    @override
    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        told = ops.filter(lambda event: not isinstance(event, SystemMessage))
        return super().spawn(options).pipe(told)


class SpeaksLate(PlainAgent):
    @override
    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        held: list[LlmAgentEvent] = []

        def late(event: LlmAgentEvent) -> list[LlmAgentEvent]:
            if isinstance(event, AgentMessage):
                held.append(event)
                return []
            if isinstance(event, MessageDelta | Thinking | SystemMessage | UsageUpdate):
                return [event]
            said, held[:] = [*held], []
            return [*said, event] if isinstance(event, SessionEnded) else [event, *said]

        return super().spawn(options).pipe(mapcat(late))


class LosesSpaces(PlainAgent):
    @override
    def message(self, text: str, name: str) -> list[LlmAgentEvent]:
        return super().message(text.replace("  ", " "), name)


class NamesDeltasAnew(PlainAgent):
    @override
    def deltas(self, text: str, name: str) -> list[LlmAgentEvent]:
        return super().deltas(text, f"{name} as it is written")


class ThinksAloud(PlainAgent):
    @override
    def thought(self, text: str) -> LlmAgentEvent:
        return AgentMessage(text=text)


class HasNamesOfItsOwn(PlainAgent):
    @override
    def call(self, name: str, given: dict[str, Any], call: str) -> ToolCall:
        return super().call({"Bash": "shell"}.get(name, name), given, call)


class LosesIds(PlainAgent):
    @override
    def result(self, call: str, output: str, failed: bool) -> ToolResult:
        return super().result("unknown", output, failed)


class NeverErrs(PlainAgent):
    @override
    def result(self, call: str, output: str, failed: bool) -> ToolResult:
        return super().result(call, output, failed=False)


class LosesOutput(PlainAgent):
    @override
    def result(self, call: str, output: str, failed: bool) -> ToolResult:
        return super().result(call, "" if failed else output, failed)


class SaysItCannotResume(PlainAgent):
    can_resume = False


class PutsPromptsInArguments(PlainAgent):
    @override
    def prompt_of(self, options: SpawnOptions) -> str:
        return options.prompt[:_ARGUMENT]


class PutsSystemPromptsInArguments(PlainAgent):
    @override
    def system_of(self, options: SpawnOptions) -> str:
        return super().system_of(options)[:_ARGUMENT]


class HasOneModel(PlainAgent):
    @override
    def ask_model(self, options: SpawnOptions, said: Sequence[str], *, is_resumed: bool) -> None:
        super().ask_model(replace(options, model=None), said, is_resumed=is_resumed)


class KeepsItsEnvironment(PlainAgent):
    @override
    def env(self, options: SpawnOptions) -> dict[str, str]:
        return {"PATH": "/usr/bin:/bin"}


class WorksInAnotherFolder(PlainAgent):
    @override
    def process(self, command: str, options: SpawnOptions) -> Observable[bytes]:
        return super().process(command.replace("pwd -P >", "cd /; pwd -P > $OLDPWD/"), options)


class AsksSomebody(PlainAgent):
    tools = ("shell", "write", "ask_user_question")


class ClaimsServers(PlainAgent):
    @property
    @override
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, mcp=True)


class ClaimsAGuard(PlainAgent):
    @property
    @override
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, guard="calls")

    def check_guard(self, policy: Policy) -> None:
        """Nothing is looked at."""


class NeedsNoLeave(PlainAgent):
    @override
    def may(self, options: SpawnOptions) -> bool:
        return True


class Forgets(PlainAgent):
    @override
    def ask_model(self, options: SpawnOptions, said: Sequence[str], *, is_resumed: bool) -> None:
        super().ask_model(options, said[-1:] if is_resumed else said, is_resumed=is_resumed)


class ResumesAnything(PlainAgent):
    @override
    def knows(self, session: str) -> bool:
        return True


class CountsNothing(PlainAgent):
    @override
    def usage(self, answers: int, options: SpawnOptions) -> Usage:
        if options.resume_session_id is None:
            return Usage()
        return super().usage(answers, options)


class AddsUp(PlainAgent):
    @override
    def usage(self, answers: int, options: SpawnOptions) -> Usage:
        return super().usage(answers + 5 * (options.resume_session_id is not None), options)


class TakesABrokenServiceForACrash(PlainAgent):
    @override
    def reason(self, kind: str) -> AgentFailure:
        return "crash" if kind == "server_error" else super().reason(kind)


class TakesALimitForTheKey(PlainAgent):
    @override
    def reason(self, kind: str) -> AgentFailure:
        return "auth" if kind == "rate_limit" else super().reason(kind)


class TakesACutForTheEnd(PlainAgent):
    @override
    def reason(self, kind: str) -> AgentFailure:
        return "aborted" if kind == "cut" else super().reason(kind)

    @override
    def fail(self, reason: AgentFailure, session: str) -> Flow[None]:
        if reason != "aborted":
            yield from super().fail(reason, session)


class SaysNotWhatToDo(PlainAgent):
    @override
    def missing(self) -> AgentNotFound:
        return AgentNotFound("there is no plain agent")


class LeavesItsFiles(PlainAgent):
    @override
    def prompt_of(self, options: SpawnOptions) -> str:
        if len(options.prompt) > _ARGUMENT:
            handle, _ = tempfile.mkstemp()
            os.write(handle, options.prompt.encode())
            os.close(handle)
        return super().prompt_of(options)


class LeavesItsTools(PlainAgent):
    left: ClassVar[list[subprocess.Popen[bytes]]] = []
    """To be waited for when somebody has ended them."""

    @override
    def process(self, command: str, options: SpawnOptions) -> Observable[bytes]:
        if "sleep" not in command:
            return super().process(command, options)

        def start(_scheduler: object) -> Observable[bytes]:
            self.left.append(subprocess.Popen(["/bin/sh", "-c", command], start_new_session=True))
            return rx.never()

        return rx.defer(start)


BROKEN: Mapping[type[PlainAgent], str] = MappingProxyType(
    {
        TalksOn: "the_end_is_the_end",
        BeginsSilently: "the_start_is_told",
        SpeaksLate: "events_come_in_order",
        LosesSpaces: "text_is_whole",
        NamesDeltasAnew: "deltas_make_up_their_message",
        ThinksAloud: "reasoning_is_no_text",
        HasNamesOfItsOwn: "tools_are_told_as_claude_code_names_them",
        LosesIds: "results_are_paired_with_their_calls",
        NeverErrs: "a_command_that_fails_is_an_error",
        LosesOutput: "results_have_what_their_tools_said",
        SaysItCannotResume: "it_is_an_agent",
        PutsPromptsInArguments: "a_long_prompt_arrives",
        PutsSystemPromptsInArguments: "a_long_system_prompt_arrives",
        HasOneModel: "the_model_is_the_one_asked_for",
        KeepsItsEnvironment: "the_environment_arrives",
        WorksInAnotherFolder: "it_works_in_its_folder",
        AsksSomebody: "nobody_is_asked",
        ClaimsServers: "servers_of_tools_are_started",
        ClaimsAGuard: "a_policy_is_held",
        NeedsNoLeave: "nothing_is_written_without_leave",
        Forgets: "a_session_is_gone_on_with",
        ResumesAnything: "a_session_that_is_not_there",
        CountsNothing: "a_session_tells_what_it_took",
        AddsUp: "a_resumed_session_tells_what_it_took_itself",
        TakesABrokenServiceForACrash: "a_service_that_fails",
        TakesALimitForTheKey: "too_many_requests",
        TakesACutForTheEnd: "a_cut_stream_is_no_success",
        SaysNotWhatToDo: "a_missing_program",
        LeavesItsFiles: "a_session_leaves_nothing",
        LeavesItsTools: "ended_while_a_tool_runs",
    }
)
"""Which rule each of them breaks."""
