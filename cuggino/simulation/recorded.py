"""The odds of a project's own agents and check, estimated from its recorded runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cuggino.events import (
    AgentNudged,
    AgentReplaced,
    Approved,
    CheckCommandOutput,
    CheckFlaky,
    Done,
    Event,
    LlmTerminalMarkerEvent,
    NoMoreWork,
    Progress,
    RequestChanges,
)
from cuggino.runs import RecordedRun
from cuggino.runs.words import counted
from cuggino.simulation.odds import Odds

_TAGS = tuple(
    one.__name__
    for one in (
        *(AgentNudged, AgentReplaced, Approved, CheckCommandOutput, CheckFlaky),
        *(Done, NoMoreWork, Progress, RequestChanges),
    )
)
"""The events that the estimates are made of."""

_WEIGHT = 5
"""The observations that the default counts as: one run says neither never nor always."""

_UNKNOWN = {
    "approves_wrong": "nothing records that approved work was wrong",
    "covers": "nothing records what the check does not find",
}
"""The odds that no journal shows, with the reason."""


class Share(NamedTuple):
    """A rate: how often something happened, out of how many times."""

    hits: int = 0
    of: int = 0

    def __str__(self) -> str:
        return f"{self.hits} of {self.of}"


class _Check(NamedTuple):
    is_green: bool
    is_flaky: bool = False


class _Turn(NamedTuple):
    """A session of an implementer."""

    is_more: bool
    """It reported that work is left."""
    has_forgotten: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One of the odds, as recorded runs show it."""

    name: str
    """The field of `Odds`."""
    value: float
    basis: str
    """What it was counted from; for a default, why it is one."""
    is_known: bool
    """False for a default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedOdds:
    """The odds, each with its basis."""

    runs: int
    """The runs of the coding loop that were read."""
    odds: Odds
    estimates: tuple[Estimate, ...]


def shares_of(events: Iterable[Event]) -> dict[str, Share]:
    """Return what the events of one run of the coding loop show, by field of `Odds`.

    - `right`: the check passed after the first implementer, or after one that began with a red one
    - `breaks`: the check failed after an implementer that began with a green one
    - `admits`: an implementer after whom the check failed reported that work is left
    - `forgets`: an implementer had to be reminded of its report, or was replaced for it
    - `rejects_right`: a reviewer rejected work with a green check; it may have been right
    - `flakes`: a check before a review failed, and passed when it was repeated
    """
    hits, of = Counter[str](), Counter[str]()

    def count(name: str, *, hit: bool) -> None:
        of[name] += 1
        hits[name] += hit

    check: _Check | None = None
    turn: _Turn | None = None
    began: _Check | None = None
    """The check before the latest implementer; None before the first."""
    turns = 0
    for step in _steps(events):
        match step:
            case _Check(is_green=is_green):
                if turn is not None:
                    if turns == 1 or (began is not None and not began.is_green):
                        count("right", hit=is_green)
                    elif began is not None:
                        count("breaks", hit=not is_green)
                    if not is_green:
                        count("admits", hit=turn.is_more)
                check, turn = step, None
            case _Turn(has_forgotten=has_forgotten):
                count("forgets", hit=has_forgotten)
                turn, began, turns = step, check, turns + 1
            case Approved() | RequestChanges():
                if check is not None and check.is_green:
                    count("flakes", hit=check.is_flaky)
                    count("rejects_right", hit=isinstance(step, RequestChanges))
    return {name: Share(hits[name], of[name]) for name in of}


def _steps(events: Iterable[Event]) -> Iterator[_Check | _Turn | Approved | RequestChanges]:
    """Yield checks, implementers and reviews; a check is known when it was not repeated."""
    check: _Check | None = None
    has_forgotten = False
    for event in events:
        match event:
            case CheckCommandOutput(on="work", exit_code=code):
                if check is not None:
                    yield check
                check = _Check(code == 0)
            case CheckFlaky():
                check = _Check(is_green=True, is_flaky=True)
            case AgentNudged(no_marker=True) | AgentReplaced(no_marker=True):
                has_forgotten = True
            case LlmTerminalMarkerEvent():
                if check is not None:
                    yield check
                check = None
                match event:
                    case Progress() | Done() | NoMoreWork():
                        yield _Turn(isinstance(event, Progress), has_forgotten)
                    case Approved() | RequestChanges():
                        yield event
                    case _:
                        pass
                has_forgotten = False
            case _:
                pass


def recorded_odds(runs: Iterable[RecordedRun], default: Odds | None = None) -> RecordedOdds:
    """Return the odds of the recorded runs of the coding loop; `default` where nothing is known.

    Raises:
        StorageError: a journal cannot be read.
    """
    default = default or Odds()
    shares: dict[str, Share] = {}
    costs: dict[str, list[tuple[float, int]]] = {}
    read = 0
    for run in runs:
        if run.started.kind != "run":
            continue
        read += 1
        entries = run.journal.entries.only(_TAGS)
        for name, found in shares_of(entry.event for entry in entries).items():
            known = shares.get(name, Share())
            shares[name] = Share(known.hits + found.hits, known.of + found.of)
        for part in run.digest.parts:
            if part.cost_usd is not None and part.sessions:
                costs.setdefault(part.role, []).append((part.cost_usd, part.sessions))
    estimates = tuple(
        _estimate(name, shares.get(name, Share()), costs.get(name, []), value)
        for name, value in default
    )
    odds = Odds(**{one.name: one.value for one in estimates})
    return RecordedOdds(runs=read, odds=odds, estimates=estimates)


def _estimate(name: str, share: Share, costs: list[tuple[float, int]], default: float) -> Estimate:
    sessions = sum(count for _, count in costs)
    if share.of:
        at_most = ", at most" if name == "rejects_right" else ""
        value = (share.hits + _WEIGHT * default) / (share.of + _WEIGHT)
        return Estimate(name=name, value=value, basis=f"{share}{at_most}", is_known=True)
    if sessions:
        value = sum(cost for cost, _ in costs) / sessions
        return Estimate(name=name, value=value, basis=counted(sessions, "session"), is_known=True)
    why = _UNKNOWN.get(name, "not recorded")
    return Estimate(name=name, value=default, basis=f"default: {why}", is_known=False)
