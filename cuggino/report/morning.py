"""What a person asks in the morning: is it proven, what did it cost, what was unusual."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from cuggino.domain import money
from cuggino.events import Forecast
from cuggino.report.model import Notice, ReportCommand, ReportFinding, RunReport, Tone
from cuggino.report.wording import duration, first_line
from cuggino.runs.words import counted


class Proof(NamedTuple):
    """The check behind an approval."""

    text: str
    tone: Tone
    at: datetime | None = None


def proof_of(run: RunReport) -> Proof | None:
    """Return the check that proves a run; None if it was not approved, or nothing is known."""
    if run.state != "approved":
        return None
    is_run = run.kind == "run"  # also one with several attempts, whose landing is checked
    checks = [one for one in run.commands if one.kind == "check" and (is_run or not one.item)]
    if not is_run and not checks:
        return None
    return _proof(checks[-1] if checks else None, decides=run.checked is not False)


def landing_proof(watch: RunReport, item: str) -> Proof | None:
    """Return the check of what landed of an item; None without one."""
    checks = [one for one in watch.commands if one.kind == "check" and one.item == item]
    return _proof(checks[-1], decides=True) if checks else None


def _proof(check: ReportCommand | None, *, decides: bool) -> Proof:
    if check is None:
        return Proof("No check: only the reviewer approved it", "warning")
    command, _, place = first_line(check.command, 100).partition(" (on ")
    name = f"`{command}`" if command else "The check"
    where = f" on {place.rstrip(')')}" if place else ""
    if check.exit_code != 0:
        return Proof(f"{name} failed{where}: only the reviewer approved it", "bad", check.at)
    if not decides:
        text = f"{name} passed{where}, but approvals do not depend on it"
        return Proof(text, "warning", check.at)
    return Proof(f"{name} passed{where}", "good", check.at)


def last_word(run: RunReport) -> ReportFinding | None:
    """Return the finding that decided a run: an approval's comment, or the last objection."""
    if run.state not in ("approved", "max_iterations", "stalled") or not run.findings:
        return None
    return run.findings[-1] if run.findings[-1].text.strip() else None


class Compared(NamedTuple):
    """The cost and duration beside the forecast."""

    text: str
    tone: Tone


def compared(
    forecast: Forecast | None, *, cost_usd: float | None, seconds: float, items: int = 1
) -> Compared | None:
    """Compare a run, or `items` of a watch, with the forecast at the start; None without one."""
    if forecast is None or not items:
        return None
    subject = counted(items, "item") if forecast.loop == "item" else "a run"
    verb = "take" if items > 1 else "takes"
    usual = f"{duration(forecast.duration * items)}"
    if forecast.cost_usd is None or cost_usd is None:
        is_high = seconds > forecast.worst_duration * items
        text = f"Forecast: {subject} usually {verb} {usual}; it took {duration(seconds)}"
        return Compared(text, "warning" if is_high else "neutral")
    total, worst = forecast.cost_usd * items, (forecast.worst_cost_usd or 0.0) * items
    usual = f"{money(total, estimated=forecast.cost_estimated)} and {usual}"
    text = f"Forecast: {subject} usually {verb} {usual}; {_times(cost_usd, total)}"
    return Compared(text, "warning" if cost_usd > worst else "neutral")


def _times(cost: float, usual: float) -> str:
    ratio = cost / usual if usual else 0.0
    if not ratio or 0.9 <= ratio <= 1.1:
        return "the cost is as usual"
    return f"the cost is {ratio:.1f} times the usual"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusual:
    """A notice that is a warning or an error, and how often it came."""

    notice: Notice
    about: str = ""
    """The title of the item, if all of them are about one."""
    count: int = 1


def unusual(notices: Iterable[tuple[str, Notice]]) -> Sequence[Unusual]:
    """Return the warnings and errors among notices, each with the title of its item.

    Equal ones are one, with their number.
    """
    found: dict[str, Unusual] = {}
    for about, notice in notices:
        if notice.tone not in ("warning", "bad"):
            continue
        known = found.get(notice.text)
        if known is None:
            found[notice.text] = Unusual(notice=notice, about=about)
        else:
            found[notice.text] = Unusual(
                notice=known.notice,
                about=known.about if known.about == about else "",
                count=known.count + 1,
            )
    return list(found.values())
