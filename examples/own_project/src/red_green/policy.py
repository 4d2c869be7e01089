"""A policy is an operator on the stream of a session."""

from collections.abc import Callable
from typing import NamedTuple

from cuggino.events import Event, ToolCall
from reactivex import Observable, operators as ops

from red_green.events import Cut


class _Counted(NamedTuple):
    event: Event
    commands: int


def at_most(*, commands: int) -> Callable[[Observable[Event]], Observable[Event]]:
    """Let a session run a number of commands; the next one ends it, and `Cut` is its last event.

    ::

        session:              -c-m-c-c-m-|      c is a command, m anything else
        at_most(commands=2):  -c-m-c-(X|)       X is Cut; the session was ended before it

    Nothing of the session is left running: unsubscribing from it terminates its process tree.
    """
    cut = Cut(content=f"more than {commands} commands in one session")

    def count(before: _Counted, event: Event) -> _Counted:
        is_command = isinstance(event, ToolCall) and event.name == "Bash"
        return _Counted(event, before.commands + is_command)

    def judge(now: _Counted) -> Event:
        return now.event if now.commands <= commands else cut

    return lambda session: session.pipe(
        ops.scan(count, _Counted(cut, 0)),  # counts per subscription
        ops.map(judge),
        ops.take_while(lambda event: event is not cut, inclusive=True),
    )
