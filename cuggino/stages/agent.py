"""One agent session as a stage: it ends with the agent's terminal marker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from reactivex import Observable
from reactivex import operators as ops

from cuggino.agents.protocol import LlmAgent, SpawnOptions
from cuggino.errors import LlmSessionError, LoopError
from cuggino.events import (
    Event,
    LlmAgentEvent,
    LlmMarkerEvent,
    PingEvent,
    SessionEnded,
    is_llm_marker_event,
    is_llm_terminal_marker_event,
)
from cuggino.operators import Flow, MarkerTags, extract_markers, flow, forward, until_terminal

LINGER = 10.0
"""Seconds that an agent gets after its terminal marker to deliver its result."""


def agent_stage(
    agent: LlmAgent,
    options: SpawnOptions,
    *,
    phase: str,
    tags: MarkerTags,
    on_marker: Callable[[LlmMarkerEvent], None],
    linger: float = LINGER,
) -> Observable[LlmAgentEvent | LlmMarkerEvent]:
    """Spawn the agent, read its markers, and end with its terminal marker as the last event.

    Each marker is given to `on_marker` as it is emitted. After the terminal marker the agent has
    `linger` seconds to end by itself (its cost comes with its result), then its processes are
    ended. An agent that ends without a terminal marker is asked once more, in the same session
    if the agent can resume one, for exactly one of its terminal markers.

    Errors: `LoopError` of the phase, with the `LlmSessionError` as its cause, or with the words
    of CUG-034 when there was no terminal marker.
    """
    session = _AgentSession(agent, options, phase, tags, on_marker, linger)
    return flow(session.run)


class _AgentSession:
    def __init__(
        self,
        agent: LlmAgent,
        options: SpawnOptions,
        phase: str,
        tags: MarkerTags,
        on_marker: Callable[[LlmMarkerEvent], None],
        linger: float,
    ) -> None:
        self._agent = agent
        self._options = options
        self._phase = phase
        self._tags = tags
        self._on_marker = on_marker
        self._linger = linger
        self._last: Event | None = None
        self._session_id = options.session_id

    def run(self) -> Flow[None]:
        try:
            last = yield from forward(self._spawn(self._options))
            if not is_llm_terminal_marker_event(last) and self._can_be_asked():
                last = yield from forward(self._spawn(self._reminder()))
        except LlmSessionError as error:
            raise LoopError(self._phase, error.message, cause=error) from error
        if not is_llm_terminal_marker_event(last):
            raise LoopError(self._phase, self._without_marker(), cause=None)

    def _spawn(self, options: SpawnOptions) -> Observable[Event]:
        ending: Callable[[Observable[Event]], Observable[Event]] = until_terminal(
            is_llm_terminal_marker_event,
            linger=self._linger,
            settle=lambda event: isinstance(event, SessionEnded),
        )
        events = cast("Observable[Event]", self._agent.spawn(options))
        return events.pipe(extract_markers(self._tags), ending, ops.do_action(self._seen))

    def _seen(self, event: Event) -> None:
        if is_llm_marker_event(event):
            self._on_marker(event)
        if isinstance(event, SessionEnded):
            self._session_id = event.session_id or self._session_id
        elif not isinstance(event, PingEvent):
            self._last = event

    def _can_be_asked(self) -> bool:
        return self._agent.can_resume and self._session_id is not None

    def _reminder(self) -> SpawnOptions:
        endings = (t for t, make in self._tags.items() if is_llm_terminal_marker_event(make("")))
        tags = ", ".join(f"<{tag}>...</{tag}>" for tag in endings)
        return replace(
            self._options,
            prompt=(
                "You ended without one of the markers of your role, so nobody knows how your work "
                f"stands. Answer now with exactly one of these, outside of any code block: {tags}."
            ),
            session_id=None,
            resume_session_id=self._session_id,
        )

    def _without_marker(self) -> str:
        match self._last:
            case None:
                return "Agent stream ended without emitting any marker"
            case LlmMarkerEvent():
                return (
                    f"Non-terminal marker received from {self._phase} agent (got: {self._last.tag})"
                )
            case _:
                return (
                    f"Agent stream ended without emitting a marker (last event: {self._last.tag})"
                )
