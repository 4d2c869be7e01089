"""The tool calls of a session: reported, judged, answered, and compared with what ran."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from acp import schema

from cuggino.agents.acp.profiles import Profile
from cuggino.agents.acp.tools import CallUpdate, ReportedCall, key_of, refusal
from cuggino.agents.base.agent import SpawnOptions
from cuggino.agents.base.calls import Call
from cuggino.agents.base.watch import Used, Verdict, Watch
from cuggino.agents.base.wire import shown
from cuggino.events import LlmAgentEvent, ToolCall, ToolResult

_CHOICE = "Nobody is there to choose between its answers: do without"

CANCELLED = schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
"""The answer to a request that cannot be judged, or offers nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A call to be judged: before it runs, or after it ran without being asked about."""

    call: Call
    call_id: str
    request: object = None
    """The id of the permission request; None for a call that has already run."""
    options: Sequence[schema.PermissionOption] = ()
    """The answers that the program offers."""
    refusal: str = ""
    """The reason why it cannot be allowed, or ""."""

    def outcome(self, *, is_allowed: bool) -> schema.RequestPermissionResponse:
        """Return the answer to the request; one that holds for later calls is never given."""
        wanted = "allow_once" if is_allowed else "reject_once"
        for option in self.options:
            if option.kind == wanted:
                chosen = schema.AllowedOutcome(outcome="selected", option_id=option.option_id)
                return schema.RequestPermissionResponse(outcome=chosen)
        return CANCELLED


class Calls:
    """The calls of one session, by their ids."""

    def __init__(
        self, profile: Profile, options: SpawnOptions, watch: Watch, *, is_confined: bool
    ) -> None:
        self.questions: deque[Question] = deque()
        """Calls to be judged."""
        self.reasons: list[str] = []
        """Why calls were denied since the last prompt."""
        self._profile, self._watch = profile, watch
        self._cwd, self._is_guarded = options.cwd, options.guard is not None
        self._is_confined = is_confined
        self._calls: dict[str, ReportedCall] = {}

    def update(self, update: CallUpdate, *, is_new: bool) -> list[LlmAgentEvent]:
        """Return the events of a new call or of an update."""
        known = self._calls.get(update.tool_call_id)
        if is_new and known is not None and known.stage == "ended":
            del self._calls[update.tool_call_id]  # another call has its id
        reported = self._reported(update)
        events: list[LlmAgentEvent] = []
        runs = update.status == "in_progress" and self._profile.arguments == "input"
        if reported.input is not None or runs or update.has_ended:
            events += self._emit(reported)
        if update.has_ended:
            has_failed = update.status == "failed"
            self._look_back(reported, has_failed=has_failed)
            if reported.stage == "open":
                events.append(_result(reported, is_error=has_failed))
        return events

    def ask(
        self, update: CallUpdate, request: object, options: Sequence[schema.PermissionOption]
    ) -> list[LlmAgentEvent]:
        """Have a call judged before it runs, and return its events."""
        reported = self._reported(update)
        call = reported.call(self._profile)
        is_single = [option.kind for option in options].count("allow_once") == 1
        question = Question(
            call=call,
            call_id=reported.id,
            request=request,
            options=options,
            refusal=refusal(call, self._profile) or ("" if is_single else _CHOICE),
        )
        self.questions.append(question)
        return self._emit(reported)

    def answer(self, verdict: Verdict) -> list[LlmAgentEvent]:
        """Note the verdict on the first of the questions."""
        question = self.questions.popleft()
        if question.request is None:
            if not verdict.is_allowed:
                tool = question.call.tool
                self._watch.fail(f"{tool} was used without its verdict: {verdict.reason}")
            return []
        reported = self._calls[question.call_id]
        if not reported.is_denied:
            reported.verdict = verdict
        if not verdict.is_allowed:
            self.reasons.append(f"{verdict.part}: {verdict.reason}")
        denied = self._watch.see(Used(verdict, question.call_id))
        return [*denied] if self._is_guarded else []

    def close(self) -> list[LlmAgentEvent]:
        """Return results for the calls that have none at the end of a turn."""
        unfinished = [call for call in self._calls.values() if call.stage == "open"]
        for reported in unfinished:
            # It may have run in part, even if it failed.
            self._look_back(reported, has_failed=True)
        return [_result(reported, is_error=True) for reported in unfinished]

    def _reported(self, update: CallUpdate) -> ReportedCall:
        new = ReportedCall(update.tool_call_id, cwd=self._cwd)
        reported = self._calls.setdefault(update.tool_call_id, new)
        reported.add(update, self._profile)
        return reported

    def _emit(self, reported: ReportedCall) -> list[LlmAgentEvent]:
        """Return the event of a call, once."""
        if reported.stage != "reported":
            return []
        reported.stage = "open"
        call = reported.call(self._profile)
        given = shown(call.input if call.input is not None else {})
        return [ToolCall(name=call.tool, input=given, id=reported.id)]

    def _look_back(self, reported: ReportedCall, *, has_failed: bool) -> None:
        """Have a call judged that ran without being asked about, or not as it was asked about."""
        call, verdict = reported.call(self._profile), reported.verdict
        if verdict is not None and verdict.is_allowed:
            reported.verdict = None  # it allows a single call
        if not self._is_guarded or (has_failed and call.tool != "Bash"):
            return
        unrun = self._profile.unrun
        if has_failed and unrun and reported.output.startswith(unrun):
            return
        if call.tool == "AskUserQuestion":
            return  # without an answer, some of these complete all the same
        if verdict is not None and not verdict.is_allowed:
            if not has_failed:
                self._watch.ran(call.tool, verdict)
        elif not self._is_confined and (verdict is None or key_of(call) not in verdict.keys):
            self.questions.append(Question(call=call, call_id=reported.id))


def _result(reported: ReportedCall, *, is_error: bool) -> ToolResult:
    reported.stage = "ended"
    output, verdict = reported.output, reported.verdict
    if verdict is not None and not verdict.is_allowed:
        output, is_error = verdict.reason, True
    return ToolResult(name=reported.id, output=output, is_error=is_error)
