"""Agents that each break a few rules and keep all others."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, ClassVar

import reactivex as rx
from reactivex import Observable, operators as ops
from typing_extensions import override

from cuggino import events as ev
from cuggino.agents import Capabilities, SpawnOptions
from cuggino.errors import AgentFailed, AgentFailure, AgentNotFound
from cuggino.guard.policy import Policy
from cuggino.operators import emit
from cuggino.operators.flow import Flow
from cuggino.operators.mapcat import mapcat
from cuggino.testing import AgentConformance, FailureConformance, GuardConformance
from cuggino.testing.conformance.rules import Rules
from tests.testing.plain_agent import GuardedPlainAgent, PlainAgent

_ARGUMENT = 128 * 1024
"""The maximum size of one program argument in bytes."""


class TalksOn(PlainAgent):
    @override
    def spawn(self, options: SpawnOptions) -> Observable[ev.LlmAgentEvent]:
        return super().spawn(options).pipe(ops.concat(rx.of(ev.SystemMessage(text="bye"))))


class BeginsSilently(PlainAgent):
    @override
    def spawn(self, options: SpawnOptions) -> Observable[ev.LlmAgentEvent]:
        kept = ops.filter(lambda event: not isinstance(event, ev.SystemMessage))
        return super().spawn(options).pipe(kept)


class SpeaksLate(PlainAgent):
    @override
    def spawn(self, options: SpawnOptions) -> Observable[ev.LlmAgentEvent]:
        held: list[ev.LlmAgentEvent] = []

        def late(event: ev.LlmAgentEvent) -> list[ev.LlmAgentEvent]:
            if isinstance(event, ev.AgentMessage):
                held.append(event)
                return []
            if isinstance(event, ev.MessageDelta | ev.Thinking | ev.SystemMessage | ev.UsageUpdate):
                return [event]
            said, held[:] = [*held], []
            return [*said, event] if isinstance(event, ev.SessionEnded) else [event, *said]

        return super().spawn(options).pipe(mapcat(late))


class LosesSpaces(PlainAgent):
    @override
    def message(self, text: str, name: str) -> list[ev.LlmAgentEvent]:
        return super().message(text.replace("  ", " "), name)


class NamesDeltasAnew(PlainAgent):
    @override
    def deltas(self, text: str, name: str) -> list[ev.LlmAgentEvent]:
        return super().deltas(text, f"{name} as it is written")


class ThinksAloud(PlainAgent):
    @override
    def thought(self, text: str) -> ev.LlmAgentEvent:
        return ev.AgentMessage(text=text)


class HasNamesOfItsOwn(PlainAgent):
    @override
    def call(self, name: str, given: dict[str, Any], call: str) -> ev.ToolCall:
        return super().call({"Bash": "shell"}.get(name, name), given, call)


class LosesIds(PlainAgent):
    @override
    def result(self, call: str, output: str, failed: bool) -> ev.ToolResult:
        return super().result("unknown", output, failed)


class NeverErrs(PlainAgent):
    @override
    def result(self, call: str, output: str, failed: bool) -> ev.ToolResult:
        return super().result(call, output, failed=False)


class LosesOutput(PlainAgent):
    @override
    def result(self, call: str, output: str, failed: bool) -> ev.ToolResult:
        return super().result(call, "" if failed else output, failed)


class HasNoVersion(PlainAgent):
    @override
    def check(self) -> str:
        return ""


class PutsPromptsInArguments(PlainAgent):
    @override
    def prompt_of(self, options: SpawnOptions) -> str:
        return options.prompt[:_ARGUMENT]


class PutsSystemPromptsInArguments(PlainAgent):
    @override
    def system_of(self, options: SpawnOptions) -> str:
        return super().system_of(options)[:_ARGUMENT]


class AnnouncesNoMessages(PlainAgent):
    @override
    def told(self, text: str) -> ev.LlmAgentEvent:
        return ev.SystemMessage(text=text)


class ClaimsMessages(PlainAgent):
    @override
    def hear(self, options: SpawnOptions, heard: list[str]) -> None:
        pass


class TrimsMessages(PlainAgent):
    @override
    def told(self, text: str) -> ev.LlmAgentEvent:
        return super().told(text.partition("\n")[0])


class AnnouncesMessagesTwice(PlainAgent):
    @override
    def spawn(self, options: SpawnOptions) -> Observable[ev.LlmAgentEvent]:
        def twice(event: ev.LlmAgentEvent) -> list[ev.LlmAgentEvent]:
            return [event, event] if isinstance(event, ev.Steered) else [event]

        return super().spawn(options).pipe(mapcat(twice))


class AsksForMessages(PlainAgent):
    @override
    def begin(self, options: SpawnOptions, session: str) -> Flow[None]:
        if options.messages is not None:
            yield from emit(ev.UserMessage(text="What do you say?"))


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
    def usage(self, answers: int, options: SpawnOptions) -> ev.Usage:
        if options.resume_session_id is None:
            return ev.Usage()
        return super().usage(answers, options)


class AddsUp(PlainAgent):
    @override
    def usage(self, answers: int, options: SpawnOptions) -> ev.Usage:
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
    """Processes to reap once they have been terminated."""

    @override
    def process(self, command: str, options: SpawnOptions) -> Observable[bytes]:
        if "sleep" not in command:
            return super().process(command, options)

        def start(_scheduler: object) -> Observable[bytes]:
            self.left.append(subprocess.Popen(["/bin/sh", "-c", command], start_new_session=True))
            return rx.never()

        return rx.defer(start)


class TakesABadRequestForACrash(PlainAgent):
    @override
    def reason(self, kind: str) -> AgentFailure:
        return "crash" if kind == "bad_request" else super().reason(kind)


class TakesALongPromptForABadRequest(PlainAgent):
    @override
    def reason(self, kind: str) -> AgentFailure:
        return "bad_request" if kind == "too_long" else super().reason(kind)


class GivesNoHint(PlainAgent):
    @override
    def fail(self, reason: AgentFailure, session: str) -> Flow[None]:
        yield from emit(ev.SessionEnded(outcome="failed", session_id=session))
        hint = None if reason == "auth" else "try again"
        raise AgentFailed("the plain agent failed", reason=reason, hint=hint)


class DoesNotReportTheReset(PlainAgent):
    @override
    def lifted(self) -> datetime | None:
        return None


class GivesUpAtOnce(PlainAgent):
    @override
    def retries(self) -> bool:
        return False


class ForgetsFailedSessions(PlainAgent):
    @override
    def fail(self, reason: AgentFailure, session: str) -> Flow[None]:
        self.model.memory.pop(session, None)
        yield from super().fail(reason, session)


class JudgesNoFiles(GuardedPlainAgent):
    @override
    def verdict(
        self, call: ev.ToolCall, options: SpawnOptions, policy: Policy
    ) -> ev.GuardDenied | None:
        if call.name in ("Write", "Edit") and policy.role == "implementing":
            return None
        return super().verdict(call, options, policy)


class LosesItsDenials(GuardedPlainAgent):
    @override
    def verdict(
        self, call: ev.ToolCall, options: SpawnOptions, policy: Policy
    ) -> ev.GuardDenied | None:
        found = super().verdict(call, options, policy)
        return found and found.model_copy(update={"tool_use_id": "unknown"})


class PlansFreely(GuardedPlainAgent):
    @override
    def verdict(
        self, call: ev.ToolCall, options: SpawnOptions, policy: Policy
    ) -> ev.GuardDenied | None:
        return None if policy.role == "planning" else super().verdict(call, options, policy)


class ReadsEverything(GuardedPlainAgent):
    @override
    def verdict(
        self, call: ev.ToolCall, options: SpawnOptions, policy: Policy
    ) -> ev.GuardDenied | None:
        return None if call.name == "Read" else super().verdict(call, options, policy)


class RunsUnlistedPrograms(GuardedPlainAgent):
    @override
    def verdict(
        self, call: ev.ToolCall, options: SpawnOptions, policy: Policy
    ) -> ev.GuardDenied | None:
        return super().verdict(call, options, policy._replace(level="roles"))


class ResumesUnguarded(GuardedPlainAgent):
    @override
    def judge(self, call: ev.ToolCall, options: SpawnOptions) -> ev.GuardDenied | None:
        return None if options.resume_session_id else super().judge(call, options)


class ObeysTheProject(GuardedPlainAgent):
    @override
    def judge(self, call: ev.ToolCall, options: SpawnOptions) -> ev.GuardDenied | None:
        if (options.cwd / "plain.json").exists():
            return None
        return super().judge(call, options)


class KeepsStartupFiles(GuardedPlainAgent):
    @override
    def startup(self, ambient: Mapping[str, str]) -> Mapping[str, str]:
        return ambient


class StartsUnguarded(GuardedPlainAgent):
    @override
    def begin(self, options: SpawnOptions, session: str) -> Flow[None]:
        yield from emit()


class FailsOpen(GuardedPlainAgent):
    @override
    def judge(self, call: ev.ToolCall, options: SpawnOptions) -> ev.GuardDenied | None:
        return None if self.broken("raises") else super().judge(call, options)


class NoticesNothing(GuardedPlainAgent):
    @override
    def broken(self, fault: str) -> bool:
        return fault != "silent" and super().broken(fault)


class CannotBeChecked(GuardedPlainAgent):
    @override
    def check_guard(self, policy: Policy) -> None:
        raise AssertionError("there is nothing to check")


BROKEN: Mapping[type[PlainAgent], tuple[type[Rules], tuple[str, ...]]] = MappingProxyType(
    {
        TalksOn: (AgentConformance, ("session_ended_is_last",)),
        BeginsSilently: (AgentConformance, ("start",)),
        SpeaksLate: (AgentConformance, ("order",)),
        LosesSpaces: (AgentConformance, ("text",)),
        NamesDeltasAnew: (AgentConformance, ("deltas",)),
        ThinksAloud: (AgentConformance, ("reasoning",)),
        HasNamesOfItsOwn: (AgentConformance, ("tool_names",)),
        LosesIds: (AgentConformance, ("results",)),
        NeverErrs: (AgentConformance, ("failed_command",)),
        LosesOutput: (AgentConformance, ("outputs",)),
        HasNoVersion: (AgentConformance, ("is_an_agent",)),
        PutsPromptsInArguments: (AgentConformance, ("long_prompt",)),
        PutsSystemPromptsInArguments: (AgentConformance, ("long_system_prompt",)),
        HasOneModel: (AgentConformance, ("model",)),
        KeepsItsEnvironment: (AgentConformance, ("environment",)),
        WorksInAnotherFolder: (AgentConformance, ("working_directory",)),
        AsksSomebody: (AgentConformance, ("asks_nobody",)),
        ClaimsServers: (AgentConformance, ("mcp_server",)),
        NeedsNoLeave: (AgentConformance, ("needs_permission",)),
        Forgets: (AgentConformance, ("resume",)),
        ResumesAnything: (AgentConformance, ("resume_unknown_session",)),
        CountsNothing: (AgentConformance, ("usage", "message_during_the_last_answer")),
        AddsUp: (AgentConformance, ("usage_of_a_resumed_session",)),
        TakesABrokenServiceForACrash: (
            FailureConformance,
            ("server_error", "resume_after_failure"),
        ),
        TakesALimitForTheKey: (FailureConformance, ("rate_limit",)),
        TakesACutForTheEnd: (FailureConformance, ("cut_stream",)),
        SaysNotWhatToDo: (FailureConformance, ("missing_program",)),
        AnnouncesNoMessages: (AgentConformance, ("message", "message_during_the_last_answer")),
        ClaimsMessages: (AgentConformance, ("message",)),
        TrimsMessages: (AgentConformance, ("message",)),
        AnnouncesMessagesTwice: (AgentConformance, ("message", "message_during_the_last_answer")),
        AsksForMessages: (AgentConformance, ("no_messages",)),
        LeavesItsFiles: (AgentConformance, ("leaves_nothing",)),
        LeavesItsTools: (
            FailureConformance,
            ("dispose_while_a_tool_runs", "subscriber_takes_one_event", "subscriber_raises"),
        ),
        TakesABadRequestForACrash: (FailureConformance, ("bad_request",)),
        TakesALongPromptForABadRequest: (FailureConformance, ("prompt_too_long",)),
        GivesNoHint: (FailureConformance, ("bad_key", "no_login")),
        DoesNotReportTheReset: (FailureConformance, ("usage_limit",)),
        GivesUpAtOnce: (FailureConformance, ("transient_failure", "transient_cut")),
        ForgetsFailedSessions: (FailureConformance, ("resume_after_failure",)),
        JudgesNoFiles: (GuardConformance, ("files",)),
        LosesItsDenials: (GuardConformance, ("commands", "ids")),
        PlansFreely: (GuardConformance, ("planning",)),
        ReadsEverything: (GuardConformance, ("verifying",)),
        RunsUnlistedPrograms: (GuardConformance, ("listed_programs",)),
        ResumesUnguarded: (GuardConformance, ("resumed_session",)),
        ObeysTheProject: (
            GuardConformance,
            ("settings_of_the_project", "settings_during_the_session"),
        ),
        KeepsStartupFiles: (GuardConformance, ("startup_files",)),
        StartsUnguarded: (GuardConformance, ("broken_at_the_start",)),
        FailsOpen: (GuardConformance, ("broken_later",)),
        NoticesNothing: (GuardConformance, ("not_asked",)),
        CannotBeChecked: (GuardConformance, ("check",)),
    }
)
"""The suite and the rules that each agent fails."""
