"""The watch over a guarded session: what the hook decided, and what ran all the same.

The hook proves at the start of a session that it is live (its canary), and gives one verdict for
each call. A tool that was used without its verdict, or despite it, ends the session.

A provider adds where its verdicts come from, which of its messages report that something ran, and
the keys by which a call is found among the verdicts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, assert_never

from cuggino.agents.base.calls import LIVE
from cuggino.agents.base.guard import not_live
from cuggino.agents.base.wire import Json, parse_json_line, text_or_none
from cuggino.errors import GuardNotLive
from cuggino.events import GuardDenied


class VerdictLog:
    """The private file of one session to which the hook appends its verdicts, as lines of JSON.

    A line without the session's token does not count.
    """

    def __init__(self, path: Path, token: str) -> None:
        self.path = path
        self._token = token
        self._at = 0

    def read(self) -> list[Json]:
        """Return the verdicts since the last call; an unfinished one is returned when complete.

        Raises:
            OSError: the file is gone.
        """
        with self.path.open("rb") as file:
            file.seek(self._at)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._at += len(whole)
        lines = [parse_json_line(line) or {} for line in whole.splitlines()]
        return [own for own in lines if own.get("token") == self._token]


class Verdict(NamedTuple):
    """The verdict on one call."""

    tool: str
    is_allowed: bool
    call: str | None = None
    """The id under which a denial is reported; None until the call is known."""
    keys: tuple[Hashable, ...] = ()
    """What identifies the call, such as its id or its input."""
    part: str = ""
    reason: str = ""

    @classmethod
    def read(cls, own: Json, *keys: Hashable, call: str | None) -> Verdict:
        """Return the verdict that the hook printed or logged; anything unclear is a denial."""
        tool = text_or_none(own.get("tool")) or "unknown"
        part = text_or_none(own.get("part")) or tool
        reason = text_or_none(own.get("reason")) or ""
        return cls(tool, own.get("decision") == "allow", call, keys, part, reason)

    def denials(self, call: str) -> list[GuardDenied]:
        event = GuardDenied(tool=self.tool, tool_use_id=call, part=self.part, reason=self.reason)
        return [] if self.is_allowed else [event]


class Canary(NamedTuple):
    """The answer of the hook to the trial at the start: `live`, or a sentence about a problem."""

    answer: str


class Used(NamedTuple):
    """A verdict that no other call may use, and the id of its call."""

    verdict: Verdict
    call: str


class Failed(NamedTuple):
    """A reason for which the guard cannot be relied on."""

    why: str


Seen: TypeAlias = Verdict | Canary | Used | Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What is known about a session."""

    is_live: bool = False
    verdicts: tuple[Verdict, ...] = ()
    """The verdicts that are not used up."""
    reported: frozenset[str] = frozenset()
    """Ids of the calls whose denial was reported."""
    breach: str = ""
    """The first reason for which the session must end, or ""."""


def step(state: Watched, seen: Seen) -> tuple[Watched, list[GuardDenied]]:
    """Return the next state, and the denials to report: each call has one."""
    match seen:
        case Verdict(call=call):
            known = (*state.verdicts, seen) if seen.keys else state.verdicts
            state = replace(state, verdicts=known)
            if seen.is_allowed or call is None or call in state.reported:
                return state, []
            # A call without an id may be any call.
            reported = state.reported | {call} if call else state.reported
            return replace(state, reported=reported), seen.denials(call)
        case Used(verdict=verdict, call=call):
            at = state.verdicts.index(verdict) if verdict in state.verdicts else None
            rest = tuple(v for number, v in enumerate(state.verdicts) if number != at)
            return replace(state, verdicts=rest), verdict.denials(call)
        case Canary(answer=answer) if answer == LIVE:
            return replace(state, is_live=True), []
        case Canary(answer=why) | Failed(why=why):
            return replace(state, breach=state.breach or why), []
        case _:
            assert_never(seen)


class Watch:
    """The current state of a guarded session, with the log of its verdicts if it has one."""

    def __init__(self, log: VerdictLog | None = None) -> None:
        self._log = log
        self._state = Watched()
        self._breach: GuardNotLive | None = None

    @property
    def breach(self) -> GuardNotLive | None:
        """The error for which the session must end, or None."""
        if self._breach is None and self._state.breach:
            self._breach = not_live(self._state.breach)
        return self._breach

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts that are not used up."""
        return self._state.verdicts

    def see(self, seen: Seen) -> list[GuardDenied]:
        """Take a step, and return the denials to report."""
        self._state, denied = step(self._state, seen)
        return denied

    def poll(self) -> list[Json]:
        """Return the new lines of the log."""
        try:
            return self._log.read() if self._log else []
        except OSError:
            self.fail("the file of its verdicts is gone")
            return []

    def hear(self, own: Json, *keys: Hashable, call: str | None) -> list[GuardDenied]:
        """Note an answer of the hook, the canary or a verdict; return the denial to report."""
        if "canary" in own:
            return self.see(Canary(str(own["canary"])))
        return self.see(Verdict.read(own, *keys, call=call))

    def begin(self) -> None:
        """Check that the hook was live before the session began to work."""
        if not self._state.is_live:
            self.fail("the agent's program did not run its hook at the start")

    def find(self, *keys: Hashable) -> Verdict | None:
        """Return the verdict on the call with one of these keys; one that denied it comes first."""
        return first_denied(v for v in self._state.verdicts if not set(keys).isdisjoint(v.keys))

    def ran(self, tool: str, verdict: Verdict | None) -> None:
        """Check the verdict on a call that ran."""
        if verdict is None or not verdict.is_allowed:
            how = "without" if verdict is None else "despite"
            self.fail(f"{tool} was used {how} its verdict")

    def fail(self, why: str) -> None:
        """End the session because the guard cannot be relied on."""
        self.see(Failed(why))


def first_denied(verdicts: Iterable[Verdict]) -> Verdict | None:
    """Return the first verdict that denies, otherwise the first one, or None."""
    return min(verdicts, key=lambda verdict: verdict.is_allowed, default=None)


def same_text(value: Any) -> str:
    """Return equal, short texts for equal values."""
    try:
        text = json.dumps(value, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        text = repr(type(value))
    return hashlib.sha256(text.encode()).hexdigest()
