"""Companions: streams that see the events of a run, and add events of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from reactivex import Observable, defer, operators as ops
from reactivex.subject import Subject

from cuggino.events import (
    AgentMessage,
    Event,
    GuardDenied,
    MessageDelta,
    PingEvent,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolResult,
    UsageUpdate,
    UserMessage,
)
from cuggino.operators import Flow, flow, pause
from cuggino.operators.alongside import alongside

Companion: TypeAlias = Callable[[Observable[Event]], Observable[Event]]
"""Turns the events of a run, those of other companions included, into events to add to them.

Texts and tool calls of agents are left out. A companion begins and ends with the run; its
completion changes nothing, its error ends the run.
"""

_LEFT_OUT = (
    *(ToolCall, ToolResult, AgentMessage, MessageDelta, UsageUpdate, PingEvent),
    *(Thinking, SystemMessage, UserMessage, GuardDenied),
)


def accompanied(
    companions: Sequence[Companion], announce: Callable[[Event], None]
) -> Callable[[Observable[Any]], Observable[Any]]:
    """Show the companions all events of the source, and `announce` theirs.

    The source must emit the announced events, so that all companions see them.
    """

    def operator(source: Observable[Any]) -> Observable[Any]:
        def begun() -> Observable[Any]:
            seen: Subject[Event] = Subject()
            early: list[Event] | None = []  # until the source, which has them, is listened to

            def show(event: Event) -> None:
                if not isinstance(event, _LEFT_OUT):
                    seen.on_next(event)

            def add(event: Event) -> None:
                if early is None:
                    announce(event)
                else:
                    early.append(event)

            def opened() -> Flow[None]:
                nonlocal early
                yield from pause(0)
                events, early = early or [], None
                for event in events:
                    announce(event)

            def along(companion: Companion) -> Observable[Any]:
                return companion(seen).pipe(ops.do_action(add), ops.ignore_elements())

            others = (flow(opened), *map(along, companions))
            return source.pipe(ops.do_action(show), alongside(*others))

        return defer(lambda _: begun()) if companions else source

    return operator
