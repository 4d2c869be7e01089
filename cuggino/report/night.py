"""The night report: the outcome of each item of a watch, and decisions for a person."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce

from cuggino.domain import added_cost, added_usage, item_name
from cuggino.events import Usage
from cuggino.report.cutting import cut
from cuggino.report.model import Decision, ReportCommit, RunReport, SlotsReport, Tone, changed_lines
from cuggino.report.morning import (
    Compared,
    Proof,
    Unusual,
    compared,
    landing_proof,
    proof_of,
    unusual,
)
from cuggino.report.outcomes import OUTCOMES
from cuggino.runs.state import ItemState, Landing, WatchedItem

_LONGEST = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NightItem:
    """A backlog item with the runs that worked on it."""

    item: WatchedItem
    title: str
    runs: tuple[RunReport, ...] = ()
    """By their start. Empty if their journals are gone."""

    @property
    def seconds(self) -> float:
        """Return the time that processes worked on it."""
        if not self.runs:
            return self.item.seconds
        return sum(run.worked for run in self.runs)

    @property
    def cost_usd(self) -> float | None:
        """Return the cost of its runs in US dollars."""
        if not self.runs:
            return self.item.cost_usd
        return reduce(added_cost, (run.totals.cost_usd for run in self.runs), None)

    @property
    def cost_estimated(self) -> bool:
        if not self.runs:
            return self.item.cost_estimated
        return any(run.totals.cost_estimated for run in self.runs)

    @property
    def usage(self) -> Usage | None:
        if not self.runs:
            return self.item.usage
        return reduce(added_usage, (run.totals.usage for run in self.runs), None)

    @property
    def commits(self) -> tuple[ReportCommit, ...]:
        known = {commit.commit_hash: commit for run in self.runs for commit in run.commits}
        return tuple(known.values())

    @property
    def outcome(self) -> tuple[str, Tone]:
        return OUTCOMES[self.item.state]

    @property
    def is_done(self) -> bool:
        """Return whether it was approved and archived, or is about to be."""
        return self.item.state in ("approved", "unchecked", "landed")

    @property
    def is_given_up(self) -> bool:
        """Return whether the watch does not work on it any more, although it is not done."""
        return self.item.state in ("parked", "stalled", "max_iterations", "skipped")

    @property
    def why(self) -> str:
        """Return the last objection of a reviewer or check to its work."""
        found = (one for run in reversed(self.runs) for one in reversed(run.findings))
        return next((one.text.strip() for one in found if one.tone in ("warning", "bad")), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class NightReport:
    """A watch with all its items."""

    watch: RunReport
    items: tuple[NightItem, ...] = ()
    decisions: tuple[Decision, ...] = ()

    @property
    def done(self) -> list[NightItem]:
        return [item for item in self.items if item.is_done]

    @property
    def waiting(self) -> list[Decision]:
        """Return the questions and findings that wait for a person."""
        return [one for one in self.decisions if one.kind != "parked"]

    @property
    def given_up(self) -> list[Decision]:
        """Return the parked items, and those that were given up without being parked."""
        parked = [one for one in self.decisions if one.kind == "parked"]
        known = {one.item for one in parked}
        others = (one for one in self.items if one.is_given_up and one.item.name not in known)
        return parked + [
            Decision(
                kind="parked",
                title=one.title,
                text=cut(one.item.reason, _LONGEST),
                item=one.item.name,
            )
            for one in others
        ]

    @property
    def unfinished(self) -> list[NightItem]:
        """Return the items that are neither done, given up nor lost, and wait for no answer."""
        asking = {one.item for one in self.waiting}
        return [
            item
            for item in self.items
            if not (item.is_done or item.is_given_up or item.item.name in asking)
            if item.item.state != "lost"
        ]

    @property
    def compared(self) -> Compared | None:
        """Return its cost and duration beside the forecast."""
        begun = sum(item.item.attempts > 0 for item in self.items)
        forecast, cost = self.watch.forecast, self.cost_usd
        return compared(forecast, cost_usd=cost, seconds=self.seconds, items=begun)

    @property
    def unusual(self) -> Sequence[Unusual]:
        """Return the warnings and errors of the watch and of all runs."""
        of_runs = ((item.title, run) for item in self.items for run in item.runs)
        all_of_them = [("", self.watch), *of_runs]
        return unusual((title, one) for title, run in all_of_them for one in run.notices)

    def find(self, name: str) -> tuple[int, NightItem] | None:
        known = enumerate(self.items, start=1)
        return next((one for one in known if name and one[1].item.name == name), None)

    def proof(self, item: NightItem) -> Proof | None:
        """Return the check of what landed of an item, or of its last run."""
        of_run = proof_of(item.runs[-1]) if item.runs else None
        return landing_proof(self.watch, item.item.name) or of_run

    @property
    def slots(self) -> SlotsReport | None:
        """Return the slots of the watch; None if it works in the project itself."""
        return self.watch.slots

    def landings(self, item: str) -> list[Landing]:
        """Return the landings of an item that sent it back."""
        known = self.slots.landings if self.slots else ()
        return [one for one in known if one.item == item and one.returns]

    @property
    def start(self) -> datetime:
        """Return the start of the watch, or of a run that it resumed."""
        return min(run.start for run in self.reports)

    @property
    def end(self) -> datetime:
        """Return the end of the watch, or of a run that a later one resumed."""
        return max(run.end for run in self.reports)

    @property
    def reports(self) -> tuple[RunReport, ...]:
        return (self.watch, *(run for item in self.items for run in item.runs))

    @property
    def audit_cost(self) -> float | None:
        """Return the cost of the audits, which have no journals of their own."""
        return reduce(added_cost, (stage.cost_usd for stage in self.watch.stages), None)

    @property
    def audit_estimated(self) -> bool:
        """Return whether a part of the audits' cost is an estimate."""
        return any(stage.cost_estimated for stage in self.watch.stages)

    @property
    def cost_usd(self) -> float | None:
        """Return the cost of all items and audits."""
        return reduce(
            added_cost, ([*(item.cost_usd for item in self.items), self.audit_cost]), None
        )

    @property
    def cost_estimated(self) -> bool:
        return self.audit_estimated or any(item.cost_estimated for item in self.items)

    @property
    def usage(self) -> Usage | None:
        """Return the tokens of all items and audits."""
        of_items = (item.usage for item in self.items)
        return reduce(added_usage, (*of_items, *(one.usage for one in self.watch.stages)), None)

    @property
    def seconds(self) -> float:
        """Return the seconds of work on items."""
        return sum(item.seconds for item in self.items)

    @property
    def agents(self) -> int:
        """Return the number of agent sessions."""
        audits = sum(stage.kind == "audit" for stage in self.watch.stages)
        return sum(run.totals.agents for item in self.items for run in item.runs) + audits

    @property
    def commits(self) -> tuple[ReportCommit, ...]:
        known = {commit.commit_hash: commit for item in self.items for commit in item.commits}
        return tuple(known.values())

    @property
    def lines(self) -> tuple[int, int] | None:
        """Return the lines that all commits added and deleted, as far as known."""
        return changed_lines(self.commits)

    @property
    def counts(self) -> tuple[tuple[str, int, Tone], ...]:
        """Return the number of items by outcome, the good ones first."""
        states = [item.item.state for item in self.items]
        return tuple(
            (word, states.count(state), tone)
            for state, (word, tone) in OUTCOMES.items()
            if state in states
        )


def build_night(
    watch: RunReport, runs: Iterable[RunReport], decisions: Sequence[Decision] = ()
) -> NightReport:
    """Return the report on a watch and the runs of its items. Pure.

    Args:
        watch: the report on its own journal.
        runs: the reports on the journals of its items, by their start.
        decisions: the decisions for a person, the most urgent first.
    """
    of_items: dict[str, list[RunReport]] = {}
    for run in runs:
        of_items.setdefault(item_name(run.item), []).append(run)
    known = {item.name: item for item in watch.watched}
    for name, found in of_items.items():
        if name not in known:  # killed before the watch recorded it
            state: ItemState = "working" if found[-1].state == "running" else "interrupted"
            known[name] = WatchedItem(name=name, start=found[0].start, attempts=1, state=state)
    items = tuple(
        NightItem(
            item=item,
            title=item.title or _title(of_items.get(name, ())) or name.removesuffix(".md"),
            runs=tuple(of_items.get(name, ())),
        )
        for name, item in known.items()
    )
    return NightReport(watch=watch, items=items, decisions=tuple(decisions))


def _title(runs: Sequence[RunReport]) -> str:
    return next((run.title for run in reversed(runs) if run.title), "")
