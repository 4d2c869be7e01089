"""The upper chart of a timeline: bars of stages, marks of notices, and what hovering shows."""

from __future__ import annotations

import html
import textwrap
from collections import defaultdict
from typing import Any

from cuggino.report.markup import visible
from cuggino.report.model import Notice, Role, RunReport, StageTry
from cuggino.report.times import Times
from cuggino.report.wording import all_tokens, duration, money, number, outcome

NOTICES = "notices"
"""The lane of the notices."""

_WIDEST = 72
_LONGEST_HOVER = 400


def stage_bars(report: RunReport, times: Times) -> list[dict[str, Any]]:
    """A trace for each role and way of ending, as a pattern is a trace's."""
    groups: defaultdict[tuple[Role, bool], list[StageTry]] = defaultdict(list)
    for stage in report.stages:
        groups[stage.role, stage.ending in ("repeated", "unfinished")].append(stage)
    traces = []
    for (role, cut_off), stages in sorted(groups.items(), key=lambda group: group[0][1]):
        color = f"var(--{role})"
        marker: dict[str, Any] = {"color": color, "line": {"color": color, "width": 1}}
        if cut_off:
            marker["pattern"] = {
                "shape": "/",
                "size": 5,
                "fgcolor": color,
                "bgcolor": "var(--page)",
            }
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": role,
                "y": [role] * len(stages),
                "base": [times.chart(stage.start) for stage in stages],
                "x": [stage.seconds * 1000 for stage in stages],
                "customdata": [_hover_of_stage(stage, times) for stage in stages],
                "hovertemplate": "%{customdata}",
                "marker": marker,
                "showlegend": False,
            }
        )
    return traces


_ENDINGS = {
    "finished": "",
    "repeated": "cut off, done again later",
    "unfinished": "cut off",
    "running": "running",
}


def _hover_of_stage(stage: StageTry, times: Times) -> str:
    head = f"<b>{_label(stage.title)}</b>"
    if stage.attempt > 1:
        head += f", try {stage.attempt}"
    lasted = f"{times.short(stage.start)} to {times.short(stage.end)}, {duration(stage.seconds)}"
    lines = [head, lasted]
    if _ENDINGS[stage.ending]:
        lines.append(_ENDINGS[stage.ending])
    if stage.cost_usd is not None or stage.usage is not None:
        tokens = f", {number(all_tokens(stage.usage))} tokens" if stage.usage else ""
        lines.append(f"{money(stage.cost_usd)}{tokens}")
    said = outcome(stage.outcome)
    return "<br>".join([*lines, _label(said)] if said else lines)


def notice_marks(report: RunReport, times: Times) -> list[dict[str, Any]]:
    """Those that took time as bars, all as marks where they begin."""
    if not report.notices:
        return []
    waits = [notice for notice in report.notices if notice.until is not None]
    traces: list[dict[str, Any]] = []
    if waits:
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "y": [NOTICES] * len(waits),
                "base": [times.chart(wait.at) for wait in waits],
                "x": [_length(wait) * 1000 for wait in waits],
                "customdata": [_hover_of_notice(wait, times) for wait in waits],
                "hovertemplate": "%{customdata}",
                "marker": {"color": "var(--wait)"},
                "showlegend": False,
            }
        )
    marks = report.notices
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "y": [NOTICES] * len(marks),
            "x": [times.chart(mark.at) for mark in marks],
            "customdata": [_hover_of_notice(mark, times) for mark in marks],
            "hovertemplate": "%{customdata}",
            "marker": {
                "symbol": "diamond",
                "size": 9,
                "color": [f"var(--{mark.tone})" for mark in marks],
                "line": {"color": "var(--page)", "width": 1},
            },
            "showlegend": False,
        }
    )
    return traces


def _length(wait: Notice) -> float:
    return (wait.until - wait.at).total_seconds() if wait.until else 0.0


def _hover_of_notice(notice: Notice, times: Times) -> str:
    return f"<b>{_label(notice.kind)}</b>, {times.short(notice.at)}<br>{_label(notice.text)}"


def _label(text: str) -> str:
    """Foreign text for a hover label: a few lines in which nothing is markup."""
    shown = visible(text)
    if len(shown) > _LONGEST_HOVER:
        shown = f"{shown[:_LONGEST_HOVER]}…"
    return "<br>".join(html.escape(line) for line in textwrap.wrap(shown, _WIDEST))
