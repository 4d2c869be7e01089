"""Agents that each break a few rules and keep all others."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, TypeVar

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
BROKEN: dict[type[PlainAgent], tuple[type[Rules], tuple[str, ...]]] = {}
"""The suite and the rules that each agent fails."""
A = TypeVar("A", bound=type[PlainAgent])


def fails(suite: type[Rules], *rules: str) -> Callable[[A], A]:
    """Add an agent that breaks these rules of the suite."""

    def added(agent: A) -> A:
        BROKEN[agent] = (suite, rules)
        return agent

    return added


def broken(suite: type[Rules], name: str, rules: str, **methods: Any) -> type[PlainAgent]:
    """Add an agent of this name with other methods, which breaks these rules."""
    base = GuardedPlainAgent if suite is GuardConformance else PlainAgent
    return fails(suite, *rules.split())(type(name, (base,), methods))


def mapped(change: Callable[[ev.LlmAgentEvent], list[ev.LlmAgentEvent]]) -> Any:
    """Return a session whose every event becomes these."""
    return lambda self, options: PlainAgent.spawn(self, options).pipe(mapcat(change))


def taken(kind: str, *, for_: AgentFailure) -> Any:
    """Return a judge that takes this failure for another."""
    return lambda self, found: for_ if found == kind else PlainAgent.reason(self, found)


of_agents = partial(broken, AgentConformance)
of_failures = partial(broken, FailureConformance)
of_guards = partial(broken, GuardConformance)

of_agents(
    "TalksOn",
    "session_ended_is_last",
    spawn=lambda self, options: PlainAgent.spawn(self, options).pipe(
        ops.concat(rx.of(ev.SystemMessage(text="bye")))
    ),
)
of_agents(
    "BeginsSilently",
    "start",
    spawn=mapped(lambda event: [] if isinstance(event, ev.SystemMessage) else [event]),
)
of_agents(
    "LosesSpaces",
    "text",
    message=lambda self, text, name: PlainAgent.message(self, text.replace("  ", " "), name),
)
of_agents(
    "NamesDeltasAnew",
    "deltas",
    deltas=lambda self, text, name: PlainAgent.deltas(self, text, f"{name} as it is written"),
)
of_agents("ThinksAloud", "reasoning", thought=lambda _self, text: ev.AgentMessage(text=text))
of_agents(
    "HasNamesOfItsOwn",
    "tool_names",
    call=lambda self, name, given, call: PlainAgent.call(
        self, str({"Bash": "shell"}.get(name, name)), given, call
    ),
)
of_agents(
    "LosesIds",
    "results",
    result=lambda self, _call, output, failed: PlainAgent.result(self, "unknown", output, failed),
)
of_agents(
    "NeverErrs",
    "failed_command",
    result=lambda self, call, output, _failed: PlainAgent.result(self, call, output, False),
)
of_agents(
    "LosesOutput",
    "outputs",
    result=lambda self, call, output, failed: PlainAgent.result(
        self, call, "" if failed else output, failed
    ),
)
of_agents("HasNoVersion", "is_an_agent", check=lambda _self: "")
of_agents(
    "PutsPromptsInArguments",
    "long_prompt",
    prompt_of=lambda _self, options: options.prompt[:_ARGUMENT],
)
of_agents(
    "PutsSystemPromptsInArguments",
    "long_system_prompt",
    system_of=lambda self, options: PlainAgent.system_of(self, options)[:_ARGUMENT],
)
of_agents(
    "AnnouncesNoMessages",
    "message message_during_the_last_answer",
    told=lambda _self, text: ev.SystemMessage(text=text),
)
of_agents("ClaimsMessages", "message", hear=lambda _self, _options, _heard: None)
of_agents(
    "TrimsMessages",
    "message",
    told=lambda self, text: PlainAgent.told(self, text.partition("\n")[0]),
)
of_agents(
    "AnnouncesMessagesTwice",
    "message message_during_the_last_answer",
    spawn=mapped(lambda event: [event] * (1 + isinstance(event, ev.Steered))),
)
of_agents(
    "AsksForMessages",
    "no_messages",
    begin=lambda _self, options, _session: emit(
        *([] if options.messages is None else [ev.UserMessage(text="What do you say?")])
    ),
)
of_agents(
    "HasOneModel",
    "model",
    ask_model=lambda self, options, said, *, is_resumed: PlainAgent.ask_model(
        self, replace(options, model=None), said, is_resumed=is_resumed
    ),
)
of_agents(
    "KeepsItsEnvironment", "environment", env=lambda _self, _options: {"PATH": "/usr/bin:/bin"}
)
of_agents(
    "WorksInAnotherFolder",
    "working_directory",
    process=lambda self, command, options: PlainAgent.process(
        self, command.replace("pwd -P >", "cd /; pwd -P > $OLDPWD/"), options
    ),
)
AsksSomebody = of_agents(
    "AsksSomebody", "asks_nobody", tools=("shell", "write", "ask_user_question")
)
of_agents("NeedsNoLeave", "needs_permission", may=lambda _self, _options: True)
of_agents(
    "Forgets",
    "resume",
    ask_model=lambda self, options, said, *, is_resumed: PlainAgent.ask_model(
        self, options, said[-1:] if is_resumed else said, is_resumed=is_resumed
    ),
)
of_agents("ResumesAnything", "resume_unknown_session", knows=lambda _self, _session: True)
of_agents(
    "CountsNothing",
    "usage message_during_the_last_answer",
    usage=lambda self, answers, options: (
        PlainAgent.usage(self, answers, options) if options.resume_session_id else ev.Usage()
    ),
)
of_agents(
    "AddsUp",
    "usage_of_a_resumed_session",
    usage=lambda self, answers, options: PlainAgent.usage(
        self, answers + 5 * (options.resume_session_id is not None), options
    ),
)
of_failures(
    "TakesABrokenServiceForACrash", "server_error", reason=taken("server_error", for_="crash")
)
of_failures("TakesALimitForTheKey", "rate_limit", reason=taken("rate_limit", for_="auth"))
of_failures(
    "TakesACutForTheEnd",
    "cut_stream",
    reason=taken("cut", for_="aborted"),
    fail=lambda self, reason, session: (
        emit() if reason == "aborted" else PlainAgent.fail(self, reason, session)
    ),
)
of_failures("TakesABadRequestForACrash", "bad_request", reason=taken("bad_request", for_="crash"))
of_failures(
    "TakesALongPromptForABadRequest",
    "prompt_too_long",
    reason=taken("too_long", for_="bad_request"),
)
of_failures(
    "SaysNotWhatToDo",
    "missing_program",
    missing=lambda _self: AgentNotFound("there is no plain agent"),
)
of_failures("DoesNotReportTheReset", "usage_limit", lifted=lambda _self: None)
of_failures("GivesUpAtOnce", "transient_failure transient_cut", retries=lambda _self: False)
of_guards(
    "JudgesNoFiles",
    "files",
    verdict=lambda self, call, options, policy: (
        None
        if call.name in ("Write", "Edit") and policy.role == "implementing"
        else GuardedPlainAgent.verdict(self, call, options, policy)
    ),
)
of_guards(
    "LosesItsDenials",
    "commands ids",
    verdict=lambda self, call, options, policy: (
        (found := GuardedPlainAgent.verdict(self, call, options, policy))
        and found.model_copy(update={"tool_use_id": "unknown"})
    ),
)
of_guards(
    "PlansFreely",
    "planning",
    verdict=lambda self, call, options, policy: (
        None
        if policy.role == "planning"
        else GuardedPlainAgent.verdict(self, call, options, policy)
    ),
)
of_guards(
    "ReadsEverything",
    "verifying",
    verdict=lambda self, call, options, policy: (
        None if call.name == "Read" else GuardedPlainAgent.verdict(self, call, options, policy)
    ),
)
of_guards(
    "RunsUnlistedPrograms",
    "listed_programs",
    verdict=lambda self, call, options, policy: GuardedPlainAgent.verdict(
        self, call, options, policy._replace(level="roles")
    ),
)
of_guards(
    "ResumesUnguarded",
    "resumed_session",
    judge=lambda self, call, options: (
        None if options.resume_session_id else GuardedPlainAgent.judge(self, call, options)
    ),
)
of_guards(
    "ObeysTheProject",
    "settings_of_the_project settings_during_the_session",
    judge=lambda self, call, options: (
        None
        if (options.cwd / "plain.json").exists()
        else GuardedPlainAgent.judge(self, call, options)
    ),
)
of_guards("KeepsStartupFiles", "startup_files", startup=lambda _self, ambient: ambient)
of_guards("StartsUnguarded", "broken_at_the_start", begin=lambda _self, _options, _session: emit())
of_guards(
    "FailsOpen",
    "broken_later",
    judge=lambda self, call, options: (
        None if self.broken("raises") else GuardedPlainAgent.judge(self, call, options)
    ),
)
of_guards(
    "NoticesNothing",
    "not_asked",
    broken=lambda self, fault: fault != "silent" and GuardedPlainAgent.broken(self, fault),
)


@fails(AgentConformance, "order")
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


@fails(AgentConformance, "mcp_server")
class ClaimsServers(PlainAgent):
    @property
    @override
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, mcp=True)


@fails(AgentConformance, "leaves_nothing")
class LeavesItsFiles(PlainAgent):
    @override
    def prompt_of(self, options: SpawnOptions) -> str:
        if len(options.prompt) > _ARGUMENT:
            handle, _ = tempfile.mkstemp()
            os.write(handle, options.prompt.encode())
            os.close(handle)
        return super().prompt_of(options)


@fails(
    FailureConformance,
    "dispose_while_a_tool_runs",
    "subscriber_takes_one_event",
    "subscriber_raises",
)
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


@fails(FailureConformance, "bad_key", "no_login")
class GivesNoHint(PlainAgent):
    @override
    def fail(self, reason: AgentFailure, session: str) -> Flow[None]:
        yield from emit(ev.SessionEnded(outcome="failed", session_id=session))
        hint = None if reason == "auth" else "try again"
        raise AgentFailed("the plain agent failed", reason=reason, hint=hint)


@fails(FailureConformance, "resume_after_failure")
class ForgetsFailedSessions(PlainAgent):
    @override
    def fail(self, reason: AgentFailure, session: str) -> Flow[None]:
        self.model.memory.pop(session, None)
        yield from super().fail(reason, session)


@fails(GuardConformance, "check")
class CannotBeChecked(GuardedPlainAgent):
    @override
    def check_guard(self, policy: Policy) -> None:
        raise AssertionError("there is nothing to check")
