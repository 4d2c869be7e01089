"""`agent_stage`: one agent session, which ends with the agent's terminal marker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from reactivex import Observable, just, operators as ops

from cuggino.agents.base import LlmAgent, SpawnOptions
from cuggino.domain import Spending, most_cautious
from cuggino.errors import BudgetExceeded, LlmSessionError, LoopError, QuotaExceeded
from cuggino.events import (
    AgentMessage,
    AgentReplaced,
    ApprovalQuestioned,
    Approved,
    CostUnknown,
    Event,
    LlmAgentEvent,
    LlmMarkerEvent,
    LlmTerminalMarkerEvent,
    MessageDelta,
    PingEvent,
    RequestChanges,
    SessionEnded,
    StageCost,
    StageInferred,
    Steered,
    SupervisionEvent,
    UsageUpdate,
    Waiting,
    is_llm_terminal_marker_event,
)
from cuggino.gate import LastWord, objections, question, requested_changes
from cuggino.operators import Flow, emit, extract_markers, flow, forward, until_terminal
from cuggino.operators.markers import MarkerTags, join_split_messages
from cuggino.stages.endings import Statement, contradictions, endings_of, reminder, terminal_tags
from cuggino.stages.sessions import Resumes, Sessions
from cuggino.stages.supervision import Supervision

_LONGEST_UNNAMED = 10_000
"""Characters of messages without an id that are searched for a marker that did not count."""

LINGER = 30.0
"""Seconds after the terminal marker in which an agent may deliver its result."""


def no_facts() -> Flow[LlmTerminalMarkerEvent | None]:
    """Return None: only the agent decides how the stage ends."""
    yield from ()
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence in the files of a stage, besides what its agent reports."""

    record: Callable[[LastWord], LastWord] = lambda word: word
    """Adds the evidence in the files to an approval."""
    facts: Callable[[], Flow[LlmTerminalMarkerEvent | None]] = no_facts
    """Returns the marker that the files imply if no agent gave one, or None."""
    left: Callable[[], Observable[str]] = lambda: just("")
    """Emits the work that an agent has left, for the one that replaces it."""
    review: str = ""
    """The name of the review file, for the reviewer."""


_NO_EVIDENCE = Evidence()


def agent_stage(
    agent: LlmAgent,
    options: SpawnOptions,
    *,
    phase: str,
    tags: MarkerTags,
    on_marker: Callable[[LlmMarkerEvent], None],
    linger: float = LINGER,
    supervision: Supervision | None = None,
    evidence: Evidence = _NO_EVIDENCE,
) -> Observable[LlmAgentEvent | LlmMarkerEvent | SupervisionEvent]:
    """Spawn the agent, read its markers, and end with its terminal marker as the last event.

    Each marker is passed to `on_marker` as it is emitted: as soon as it is complete, a terminal one
    with its message. A terminal marker counts only at the start of a line of text (`at_line_start`
    of `extract_markers`), never inside what quotes it or after an error result. After it the agent
    has `linger` seconds to exit (its cost comes with its result), then its processes are
    terminated. A message from a person in that time (`Steered`) voids the terminal markers, and the
    session continues. If terminal markers differ, the most cautious one counts, and
    `ContradictoryMarkers` is emitted. If the cost is known, `StageCost` is emitted before the
    terminal marker or the error.

    An agent that ends without a terminal marker is asked once more for one, if it can resume its
    session (`AgentNudged`), then replaced by another one that gets what it found (`AgentReplaced`).
    Then the `evidence` decides (`StageInferred`).

    `Approved` counts only as the last word of the session (`cuggino.gate`). If something
    contradicts it, `ApprovalQuestioned` is emitted instead, and the agent is asked once in the same
    session. Without a clean answer it is `RequestChanges`.

    `supervision` adds retries, quota waits, timeouts and budgets.

    Errors: `LoopError` of the phase, with the `LlmSessionError` as its cause, or if there
    was no terminal marker.
    """
    return flow(
        lambda: agent_story(
            agent,
            options,
            phase=phase,
            tags=tags,
            on_marker=on_marker,
            linger=linger,
            supervision=supervision,
            evidence=evidence,
        )
    )


def agent_story(
    agent: LlmAgent,
    options: SpawnOptions,
    *,
    phase: str,
    tags: MarkerTags,
    on_marker: Callable[[LlmMarkerEvent], None],
    before_marker: Callable[[LlmMarkerEvent], Iterable[Event]] = lambda _marker: (),
    linger: float = LINGER,
    supervision: Supervision | None = None,
    evidence: Evidence = _NO_EVIDENCE,
    resumes: Resumes | None = None,
) -> Flow[LlmTerminalMarkerEvent]:
    """Run `agent_stage` within a flow; return its terminal marker.

    The events from `before_marker` are emitted before each marker. `resumes` is a session that has
    waited (`Waiting`).
    """
    stage = _AgentStage(
        agent,
        options,
        phase,
        tags,
        on_marker,
        before_marker,
        linger,
        supervision or Supervision(),
        evidence,
        resumes,
    )
    return stage.run()


def _ends_stage(event: object) -> bool:
    return is_llm_terminal_marker_event(event) or isinstance(event, ApprovalQuestioned)


class _Seen(NamedTuple):
    """What the sessions of a stage have emitted, as far as its end depends on it."""

    last: Event | None = None
    unnamed: str = ""
    """The end of the text of messages without an id."""
    spent: Spending = Spending()
    duration: float = 0.0
    is_replaced: bool = False
    """True once an agent was replaced because it gave no marker."""

    def add(self, event: Event) -> _Seen:
        """Return the value after an event of a session."""
        spent = self.spent.add(event)
        match event:
            case AgentReplaced(no_marker=True):
                return self._replace(spent=spent, is_replaced=True)
            case UsageUpdate() | SupervisionEvent():
                return self._replace(spent=spent)
            case SessionEnded():
                return self._replace(spent=spent, duration=self.duration + (event.duration or 0.0))
            case AgentMessage(message_id=None, parent_tool_use_id=None):
                unnamed = (self.unnamed + event.text)[-_LONGEST_UNNAMED:]
                return self._replace(spent=spent, last=event, unnamed=unnamed)
            case _:
                return self._replace(spent=spent, last=event)

    def without_marker(self, phase: str, tags: MarkerTags) -> str:
        """Return the message about a stage that has ended without a terminal marker."""
        match self.last:
            case None:
                return "Agent stream ended without emitting any marker"
            case LlmMarkerEvent():
                return f"Non-terminal marker received from {phase} agent (got: {self.last.tag})"
            case _:
                what = "Agent stream ended without emitting a marker"
                what = f"{what} (last event: {self.last.tag})"
                split = next((tag for tag in tags if f"</{tag}>" in self.unnamed), None)
                if split is None:
                    return what
                return (
                    f"{what}; its text has <{split}> where it does not count: the tag must begin "
                    "a line, and all parts of a message need the same message_id"
                )


class _AgentStage:
    def __init__(
        self,
        agent: LlmAgent,
        options: SpawnOptions,
        phase: str,
        tags: MarkerTags,
        on_marker: Callable[[LlmMarkerEvent], None],
        before_marker: Callable[[LlmMarkerEvent], Iterable[Event]],
        linger: float,
        supervision: Supervision,
        evidence: Evidence,
        resumes: Resumes | None,
    ) -> None:
        self._phase = phase
        self._tags = tags
        self._on_marker = on_marker
        self._before_marker = before_marker
        self._linger = linger
        self._supervision = supervision
        self._evidence = evidence
        self._sessions = Sessions(
            agent,
            options,
            read=self._read,
            budget=supervision.remaining,
            pricing=supervision.pricing,
            quota=supervision.quota,
            choose=self._choose,
            left=evidence.left,
            resumes=resumes,
        )
        self._statement = Statement()
        self._is_questioned = False
        self._seen = _Seen()

    def run(self) -> Flow[LlmTerminalMarkerEvent]:
        try:
            last = yield from forward(self._around(self._sessions.first(), is_first=True))
            if isinstance(last, ApprovalQuestioned):
                return (yield from self._question(last.objections))
        except LlmSessionError as error:
            outcome = self._sessions.outcome
            is_limit = isinstance(error, BudgetExceeded | QuotaExceeded)
            if outcome is None and self._seen.is_replaced and not is_limit:
                inferred = yield from self._inferred()
                if inferred is not None:
                    return inferred
            if isinstance(outcome, ApprovalQuestioned):
                yield from emit(outcome)
                return (yield from self._end(self._changes(outcome.objections)))
            yield from emit(*self._cost())
            yield from emit(*contradictions(self._phase, self._sessions.endings))
            if is_llm_terminal_marker_event(outcome):  # cut off after its terminal marker
                self._on_marker(outcome)
                yield from emit(*self._before_marker(outcome), outcome)
                return outcome
            raise LoopError(self._phase, error.message, cause=error) from error
        if is_llm_terminal_marker_event(last):
            return last
        inferred = yield from self._inferred()
        if inferred is not None:
            return inferred
        yield from emit(*self._cost())
        raise LoopError(self._phase, self._seen.without_marker(self._phase, self._tags), cause=None)

    def _inferred(self) -> Flow[LlmTerminalMarkerEvent | None]:
        """End the stage with the marker that its files imply, if there is one."""
        marker = yield from self._evidence.facts()
        if marker is None:
            return None
        yield from emit(StageInferred(phase=self._phase, counted=marker.tag_name()))
        return (yield from self._end(marker))

    def _question(self, reasons: Sequence[str]) -> Flow[LlmTerminalMarkerEvent]:
        """Ask the agent about its approval in the same session; return the resulting marker."""
        if self._sessions.can_be_resumed and not self._statement.has_failed:
            self._is_questioned = True
            again = self._sessions.resumed(question(reasons, review=self._evidence.review))
            answer: Event | None
            try:
                answer = yield from forward(self._around(again))
            except (BudgetExceeded, QuotaExceeded):
                raise
            except LlmSessionError:
                answer = self._sessions.outcome
            if is_llm_terminal_marker_event(answer):
                return answer
            if isinstance(answer, ApprovalQuestioned):
                reasons = answer.objections
        return (yield from self._end(self._changes(reasons)))

    def _changes(self, reasons: Sequence[str]) -> RequestChanges:
        review = self._evidence.record(LastWord()).review
        return RequestChanges(content=requested_changes(reasons, review=review))

    def _end(self, marker: LlmTerminalMarkerEvent) -> Flow[LlmTerminalMarkerEvent]:
        """End the stage with a marker that its agent did not give."""
        yield from emit(*self._marks(marker), marker)
        return marker

    def _around(self, session: Observable[Event], *, is_first: bool = False) -> Observable[Event]:
        return self._supervision.around(
            self._sessions,
            session,
            looks=[self._look],
            ends=_ends_stage if is_first else None,
            remind=self._reminded,
            may_wait=Waiting.tag_name() in self._tags,
        )

    def _reminded(self) -> Observable[Event] | None:
        if not self._sessions.can_be_resumed:
            return None
        return self._sessions.resumed(reminder(self._tags))

    def _read(self, session: Observable[Event]) -> Observable[Event]:
        ending: Callable[[Observable[Event]], Observable[Event]] = until_terminal(
            is_llm_terminal_marker_event,
            linger=self._linger,
            settle=lambda event: isinstance(event, SessionEnded | CostUnknown),
            choose=lambda _endings: self._choose(self._sessions.endings),
            on_terminal=self._note,
            reopen=self._is_told,
        )
        # A terminal marker counts when its message is complete, as a message may be discarded and
        # written again.
        markers = extract_markers(
            self._tags,
            at_line_start=terminal_tags(self._tags),
            at_end=is_llm_terminal_marker_event,
        )
        self._statement = Statement()
        whole = join_split_messages(self._tags)
        return session.pipe(whole, markers, ops.do_action(self._hear, self._fail), ending)

    def _hear(self, event: Event) -> None:
        self._statement = self._statement.add(event)

    def _fail(self, error: Exception) -> None:
        self._statement = self._statement.failed(error)

    def _choose(self, endings: Sequence[Event]) -> Event:
        """Return the most cautious ending; an approval that something contradicts is questioned."""
        marker = most_cautious(endings)
        if isinstance(marker, Waiting):
            known = {"session_id": self._sessions.session_id, "words": self._sessions.words}
            return marker.model_copy(update=known)
        if not isinstance(marker, Approved):
            return marker
        approvals = (ending for ending in endings if isinstance(ending, Approved))
        word = self._evidence.record(self._statement.last_word(approvals))
        if self._is_questioned:
            word = replace(word, unticked=0)  # the agent has been asked about them
        reasons = objections(word)
        return ApprovalQuestioned(objections=reasons) if reasons else marker

    def _note(self, event: Event) -> None:
        self._sessions.endings += endings_of(event, self._tags)

    def _is_told(self, event: Event) -> bool:
        """Return whether a person has messaged the session; if so, void its terminal markers."""
        is_told = isinstance(event, Steered) and event.to == "session"
        if is_told:
            self._sessions.endings = []
            self._statement = Statement()
        return is_told

    def _look(self, event: Event) -> Iterable[Event]:
        match event:
            case MessageDelta() | PingEvent():
                return ()
            case LlmMarkerEvent():
                return self._marks(event)
            case _:
                self._seen = self._seen.add(event)
                return ()

    def _marks(self, event: LlmMarkerEvent) -> Iterable[Event]:
        """Pass the marker on, and emit the cost before a terminal one."""
        self._on_marker(event)
        self._seen = self._seen._replace(last=event)
        before = self._before_marker(event)
        if not is_llm_terminal_marker_event(event):
            return before
        return (*self._cost(), *contradictions(self._phase, self._sessions.endings), *before)

    def _cost(self) -> Iterable[Event]:
        """Yield the cost of the stage, if known."""
        spent, total = self._seen.spent, self._supervision.ledger.spent
        if spent.cost_usd is None and not spent.total_tokens:
            return
        yield StageCost(
            phase=self._phase,
            cost_usd=spent.cost_usd,
            cost_estimated=spent.cost_estimated,
            usage=spent.usage,
            duration=self._seen.duration or None,
            total_cost=total.cost_usd,
            total_estimated=total.cost_estimated,
            total_usage=total.usage,
        )
