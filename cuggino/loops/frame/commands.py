"""Commands of a person: which run at work, or which item of a watch, each of them is meant for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

from reactivex import Observable, abc

from cuggino.events import ControlEvent, ControlIgnored, Event, SkipAsked, SteerAsked
from cuggino.loops.frame.control import Control
from cuggino.loops.frame.interruption import heard


class Commands:
    """The commands to a run, or to a watch and its items at work.

    `is_known` returns whether there is such an item; its messages are kept until it is at work.
    `put_aside` skips an item whose work waits, and returns what to announce: None for any other
    item, `ControlIgnored` if it could not.
    """

    def __init__(
        self,
        control: Control,
        *,
        is_known: Callable[[str], bool] = lambda _item: False,
        put_aside: Callable[[str], Event | None] = lambda _item: None,
    ) -> None:
        self._control = control
        self._is_known = is_known
        self._put_aside = put_aside
        self._at_work: dict[str, Control] = {}
        """The items at work."""
        self._kept: dict[str, list[SteerAsked]] = {}
        """Messages for an item that no agent has received, while the item is not at work."""

    @contextmanager
    def heard(self, commands: Observable[ControlEvent], lane: abc.SchedulerBase) -> Iterator[None]:
        """Listen for the commands within the block, which must be entered on the lane.

        They may come on any thread. Their error ends the listening, not the run.
        """

        def fail(error: Exception) -> None:
            reason = f"stopped listening for commands: {error}"
            self.hear(ControlIgnored(source="control", reason=reason))

        with heard(commands, lane, self.hear, fail):
            yield

    @contextmanager
    def at_work(self, item: str) -> Iterator[Control]:
        """Work on one item at a time within the block, with the control of the watch."""
        self._at_work[item] = self._control
        try:
            yield self._control
        finally:
            del self._at_work[item]

    @contextmanager
    def beside(self, item: str) -> Iterator[Control]:
        """Work on an item beside others within the block; yields its control.

        It has the messages that wait for it: the first one also those for any item. What no agent
        has received in the end is kept.
        """
        waiting = self._kept.pop(item, [])
        if not self._at_work:
            waiting = [*self._control.inbox.emptied(), *waiting]
        control = self._at_work[item] = self._control.beside(item, waiting)
        try:
            yield control
        finally:
            del self._at_work[item]
            if unread := control.inbox.emptied():
                self._kept[item] = unread

    def tell(self, items: Sequence[str], message: SteerAsked) -> None:
        """Pass a message that was announced on to these items; it is kept for those that begin."""
        for item in items:
            if item in self._at_work:
                self._at_work[item].inbox.take(message)
            else:
                self._kept.setdefault(item, []).append(message)

    def forget(self, item: str) -> None:
        """Drop the undelivered messages of an item that is no longer worked on."""
        for message in self._kept.pop(item, []):
            self._control.settle(message)
            reason = f"message not delivered, {item} has ended: {message.text[:80]}"
            self._control.announce(ControlIgnored(source="steer", reason=reason, item=item))

    def hear(self, command: ControlEvent) -> None:
        """Pass the command to its receiver, or announce why it is ignored."""
        control = self._control
        match command:
            case SkipAsked(item=item):
                control.settle(command)
                aside = self._put_aside(item) if item else None
                if aside is None:
                    if (to := self._meant(command)) is not None:
                        to.skip(command)
                    return
                if not isinstance(aside, ControlIgnored):
                    control.announce(command)
                control.announce(aside)
            case SteerAsked(item=None) if not self._at_work and not control.is_idle:
                control.take(command)
            case SteerAsked(item=str(item)) if item not in self._at_work and self._is_known(item):
                control.announce(command)
                self._kept.setdefault(item, []).append(command)
            case SteerAsked():
                if (to := self._meant(command)) is not None:
                    to.take(command)
                else:
                    control.settle(command)
            case _:
                control.hear(command)

    def _meant(self, command: SkipAsked | SteerAsked) -> Control | None:
        """Return the control of the item at work that is meant; announce it if there is none."""
        found = meant(command, self._at_work)
        if isinstance(found, ControlIgnored):
            self._control.announce(found)
            return None
        return self._at_work[found]


def meant(command: SkipAsked | SteerAsked, at_work: Collection[str]) -> str | ControlIgnored:
    """Return the item at work that the command is meant for, or why it is ignored."""
    item = command.item
    if item is not None and item in at_work:
        return item
    if item is None and len(at_work) == 1:
        return next(iter(at_work))
    if not at_work:
        reason = "no item is at work"
    elif item is None:
        reason = f"name one of the items at work: {', '.join(at_work)}"
    else:
        reason = f"{item} is not at work"
    source = "skip" if isinstance(command, SkipAsked) else "steer"
    return ControlIgnored(source=source, reason=reason)
