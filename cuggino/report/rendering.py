"""Parts of a report as HTML, from templates shared with the live page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timezone
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from jinja2 import DictLoader, Environment, StrictUndefined, Template

from cuggino.domain import cost_of, money, window_text
from cuggino.inert import inert
from cuggino.report import charts, prose, wording
from cuggino.report.cutting import cut
from cuggino.report.model import RunReport, Transcript
from cuggino.report.morning import Unusual, compared, last_word, proof_of, unusual
from cuggino.report.outcomes import LANDINGS, OUTCOMES, TONES
from cuggino.report.times import Times
from cuggino.report.transcript import fit_rows
from cuggino.runs.state import AGENT_KINDS, StageTry
from cuggino.runs.words import SESSION_ENDS, counted, often

PARTS: Final = (
    *("head", "done", "waits", "given_up", "spending", "notices"),
    *("deliverables", "jobs", "reviews", "commits", "plan", "slots", "landings", "timeline"),
    *("sessions", "stages", "checks", "tools", "more"),
)
"""The parts of a run's page, in order: done, waiting, given up, cost, unusual, then the details."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A report, and the limits of its display."""

    report: RunReport
    times: Times
    prefix: str = ""
    """The prefix of all ids in the parts, needed by a page with several runs."""
    payload: int = 4_000
    """Maximum characters of a tool's input or result, or of a command's output."""
    rows: int = 300
    """Maximum rows of a stage's transcript."""
    listed: int = 400
    """Maximum lines of any other list."""
    patch: int = 20_000
    """Maximum characters of a commit's diff."""
    live: bool = False
    """Rows have ids, so that a script can replace them, and stages are loaded when unfolded."""

    @property
    def words(self) -> int:
        """Return the character limit of an agent's message, which is above that of tool output."""
        return 2 * self.payload + 300

    @property
    def stages(self) -> list[tuple[int, StageTry]]:
        """Return the transcript's stages with their index, without minor steps of the loop."""
        return [
            (place, stage)
            for place, stage in enumerate(self.report.stages)
            if stage.kind != "other" or self.transcript(place)
        ]

    def transcript(self, place: int) -> Transcript:
        """Return the shown part of the transcript of a stage."""
        if place >= len(self.report.transcripts):
            return Transcript()
        return fit_rows(self.report.transcripts[place], self.rows)

    def commit_place(self, commit: str) -> int | None:
        """Return the place of a commit in the list, if it is shown."""
        hashes = [known.commit_hash for known in self.shown(self.report.commits)]
        return hashes.index(commit) if commit in hashes else None

    def shown(self, items: Sequence[Any]) -> Sequence[Any]:
        """Return the first entries of a list."""
        return items[: self.listed]

    def hidden(self, items: Sequence[Any]) -> int:
        """Return the number of entries not shown."""
        return max(len(items) - self.listed, 0)


def view(report: RunReport, *, zone: timezone, prefix: str = "", **limits: Any) -> View:
    """Return a view of the report with all times in one zone."""
    times = Times(zone, report.start, report.end)
    return View(report=report, times=times, prefix=prefix, **limits)


def render_part(
    name: str, report: RunReport, *, zone: timezone, prefix: str = "", **limits: Any
) -> str:
    """Render one part of a run's page, a name of `PARTS`; "" if there is nothing to show.

    `limits` are fields of `View`.
    """
    return part(name, view(report, zone=zone, prefix=prefix, **limits))


def part(name: str, shown: View) -> str:
    """Render one part of a view."""
    if name not in PARTS:
        raise ValueError(f"there is no part {name!r}")
    return str(getattr(macros(), name)(shown)).strip()


@cache
def stylesheet() -> str:
    """Return the style sheet of reports and the live page."""
    return (files("cuggino.report") / "templates" / "style.css").read_text(encoding="utf-8")


def environment(*folders: Path) -> Environment:
    """Return the environment of the templates, with escaping and the filters of reports.

    Templates in `folders` take precedence.
    """
    own = Path(str(files("cuggino.report") / "templates"))
    templates = {
        path.name: path.read_text(encoding="utf-8")
        for folder in (own, *reversed(folders))
        for path in folder.glob("*.html")
    }
    made = Environment(
        loader=DictLoader(templates),  # read before the package can be replaced
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_shown,
    )
    made.filters |= {
        "markdown": prose.markdown,
        "coded": prose.coded,
        "cut": cut,
        "diff": prose.diff,
        "left_out": prose.left_out,
        "duration": wording.duration,
        "cost": lambda paid: cost_of(paid) or wording.UNKNOWN,
        "money": money,
        "number": wording.number,
        "counted": counted,
        "often": often,
        "tokens": wording.all_tokens,
        "first_line": wording.first_line,
        "outcome": wording.outcome,
        "standing": wording.standing,
        "web_address": wording.web_address,
        "window": window_text,
    }
    made.globals |= {
        "timeline_of": charts.timeline,
        "slots_of": charts.slots,
        "cost_chart": charts.cost_chart,
        "token_chart": charts.token_chart,
        "look_of": charts.stage_look,
        "state_of": wording.state_of,
        "about": about,
        "compared": compared,
        "last_word": last_word,
        "proof_of": proof_of,
        "unusual_of": _unusual_of,
        "endings": charts.ENDINGS,
        "json": wording.to_json,
        "statuses": _STATUSES,
        "outcomes": OUTCOMES,
        "agents": AGENT_KINDS,
        "landed": LANDINGS,
        "session_ends": {end: (word, TONES[tone]) for end, (tone, word) in SESSION_ENDS.items()},
    }
    return made


def _unusual_of(report: RunReport) -> Sequence[Unusual]:
    return unusual((notice.item or notice.stage or "", notice) for notice in report.notices)


def _shown(value: object) -> object:
    """Make untrusted text visible; markup is already safe."""
    return inert(value) if type(value) is str else value


@cache
def _environment() -> Environment:
    return environment()


def macros() -> Any:
    """Return the macros of `macros.html`."""
    return macros_of("macros.html")


@cache
def macros_of(name: str) -> Any:
    """Return the macros of a template of the package."""
    return template(name).module


def template(name: str) -> Template:
    """Return a template of the package."""
    return _environment().get_template(name)


_STATUSES: Final = {"passed": "good", "blocked": "bad", "pending": "neutral"}


def about(report: RunReport, stage: StageTry) -> str:
    """Summarize a stage on one line: its task, its command, its outcome."""
    if report.plans:
        tasks = (task for plan in report.plans for task in plan.tasks)
        task = next((one for one in tasks if one.stage == stage.stage), None)
        if task is not None:
            return task.title
    if stage.kind in ("check", "setup"):
        found = (one for one in report.commands if one.stage == stage.stage)
        return next((one.command for one in found), "")
    return wording.said(stage.outcome).lstrip("# ")


def render_all(shown: View, names: Iterable[str] = PARTS) -> str:
    """Render these parts of a view, one after the other."""
    return "\n".join(filter(None, (part(name, shown) for name in names)))


def smaller(shown: View, **limits: Any) -> View:
    """Return a view that shows less."""
    return replace(shown, **limits)
