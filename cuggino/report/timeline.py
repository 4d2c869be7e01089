"""The charts of a report, as figures for plotly.js: stages, cost and tokens on one time axis.

A figure is plain data. Its texts are escaped, because plotly.js parses them as HTML; a color is the
name of a CSS variable, so that the page sets it, for light and dark.
"""

from __future__ import annotations

import html
import textwrap
from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias, get_args

from cuggino.report.markup import visible
from cuggino.report.model import Notice, RunReport, Spent, StageKind, StageTry
from cuggino.report.times import Times
from cuggino.report.wording import all_tokens, duration, money, number, outcome

Figure: TypeAlias = dict[str, Any]

LANES: Final[tuple[StageKind, ...]] = get_args(StageKind)
"""From the top down; a lane without a stage is left out."""

_LANE_HEIGHT, _LINES_HEIGHT, _GAP, _MARGIN = 30, 130, 46, 46
_MOST_POINTS = 2000
_LABELLED_GAP = 0.12
"""The share of the time axis from which a gap gets a label."""

_TOKENS = (
    ("output", "output_tokens", "var(--reviewing)"),
    ("input", "input_tokens", "var(--planning)"),
    ("cache written", "cache_creation_tokens", "var(--check)"),
    ("cache read", "cache_read_tokens", "var(--other)"),
)


def timeline(report: RunReport, times: Times) -> Figure | None:
    """Return a bar per attempt at a stage above the lines of cost and tokens, or None.

    Bars of attempts that were cut off are hatched; times without a process are shaded.
    """
    if not report.stages:
        return None
    lanes = _lanes(report)
    lines = _lines(report, times)
    heights = [len(lanes) * _LANE_HEIGHT, *(_LINES_HEIGHT for _ in lines)]
    inner = sum(heights) + _GAP * len(lines)
    figure: Figure = {"data": [], "layout": _layout(inner)}
    layout = figure["layout"]
    layout["xaxis"] |= {"range": _range(report, times), "anchor": _axis("y", len(heights))}
    top = inner
    for place, height in enumerate(heights, start=1):
        layout[_axis("yaxis", place)] = _y_axis((top - height) / inner, top / inner)
        top -= height + _GAP
    layout["yaxis"] |= {"categoryarray": lanes[::-1], "type": "category", "showgrid": False}
    layout["yaxis"] |= {"range": [-0.5, len(lanes) - 0.5], "automargin": True, "fixedrange": True}
    layout["yaxis"] |= {"dtick": 1, "nticks": 0}
    figure["data"] += [*stage_bars(report, times), *notice_marks(report, times)]
    for place, (title, prefix, traces) in enumerate(lines, start=2):
        axis = layout[_axis("yaxis", place)]
        axis |= {"tickprefix": prefix, "rangemode": "tozero", "fixedrange": True}
        figure["data"] += [{**trace, "yaxis": _axis("y", place)} for trace in traces]
        layout["annotations"].append(_title(title, axis["domain"][1]))
    _shade_gaps(report, times, layout)
    return figure


def _axis(name: str, place: int) -> str:
    return name if place == 1 else f"{name}{place}"


def _lanes(report: RunReport) -> list[str]:
    there = {stage.kind for stage in report.stages}
    lanes: list[str] = [kind for kind in LANES if kind in there]
    return [*lanes, NOTICES] if report.notices else lanes


def _layout(inner: int) -> dict[str, Any]:
    return {
        "height": inner + 2 * _MARGIN,
        "margin": {"l": 60, "r": 12, "t": 20, "b": 2 * _MARGIN - 20},
        "barmode": "overlay",
        "bargap": 0.3,
        "hovermode": "closest",
        "hoverlabel": {"align": "left", "namelength": 0},
        "dragmode": "zoom",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": "var(--text)", "size": 12, "family": "var(--font)"},
        "xaxis": {"type": "date", "gridcolor": "var(--grid)", "linecolor": "var(--line)"},
        "legend": {"orientation": "h", "x": 0, "y": -38 / inner, "yanchor": "top"},
        "shapes": [],
        "annotations": [],
    }


def _y_axis(bottom: float, top: float) -> dict[str, Any]:
    return {
        "domain": [max(0.0, bottom), top],
        "gridcolor": "var(--grid)",
        "zeroline": False,
        "nticks": 5,
    }


def _title(text: str, top: float) -> dict[str, Any]:
    return {
        "text": text,
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": top,
        "xanchor": "left",
        "yanchor": "bottom",
        "yshift": 4,
        "showarrow": False,
        "font": {"color": "var(--muted)", "size": 12},
    }


def _range(report: RunReport, times: Times) -> list[str]:
    whole = max(report.end - report.start, timedelta(milliseconds=10))
    return [
        times.chart(report.start - whole * 0.01),
        times.chart(report.start + whole * 1.01),
    ]


def _lines(report: RunReport, times: Times) -> list[tuple[str, str, list[dict[str, Any]]]]:
    """Return the charts below the bars: title, prefix of the numbers, traces."""
    points = _thinned(report.spent)
    moments = [report.start, *(point.at for point in points), report.end]
    charts: list[tuple[str, str, list[dict[str, Any]]]] = []
    if report.totals.cost_usd is not None:
        costs = [point.cost_usd or 0.0 for point in points]
        line = _line(moments, [0.0, *costs, costs[-1]], times, "cost", "var(--implementing)")
        line |= {"showlegend": False, "hovertemplate": "$%{y:.4f}, %{x|%H:%M:%S}"}
        line |= {"fill": "tozeroy", "fillcolor": "var(--fill)"}
        charts.append(("Cost in US dollars", "$", [line]))
    traces = []
    for name, attribute, color in _TOKENS:
        counts = [getattr(point.usage, attribute) for point in points]
        if any(counts):
            line = _line(moments, [0, *counts, counts[-1]], times, name, color)
            line["hovertemplate"] = f"{name}: %{{y:,}}, %{{x|%H:%M:%S}}"
            traces.append(line)
    _hide_what_dwarfs(traces)
    if traces:
        charts.append(("Tokens", "", traces))
    return charts


def _hide_what_dwarfs(traces: list[dict[str, Any]]) -> None:
    """Hide cache reads if they flatten the other lines; a click shows them."""
    if len(traces) > 1:
        *others, last = traces
        if last["name"] == "cache read" and last["y"][-1] > 5 * max(t["y"][-1] for t in others):
            last["visible"] = "legendonly"


def _line(
    moments: list[datetime], values: list[Any], times: Times, name: str, color: str
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [times.chart(at) for at in moments],
        "y": values,
        "line": {"shape": "hv", "width": 2, "color": color},
    }


def _thinned(points: tuple[Spent, ...]) -> list[Spent]:
    """Return at most `_MOST_POINTS` points, including the last."""
    step = -(-len(points) // _MOST_POINTS) or 1
    return list(points[::-1][::step][::-1])


def _shade_gaps(report: RunReport, times: Times, layout: dict[str, Any]) -> None:
    whole = (report.end - report.start).total_seconds()
    for before, after in zip(report.processes, report.processes[1:], strict=False):
        idle = (after.start - before.end).total_seconds()
        if idle <= 0:
            continue
        left, right = times.chart(before.end), times.chart(after.start)
        layout["shapes"].append(
            {
                "type": "rect",
                "layer": "below",
                "xref": "x",
                "yref": "paper",
                "x0": left,
                "x1": right,
                "y0": 0,
                "y1": 1,
                "fillcolor": "var(--shade)",
                "line": {"width": 0},
            }
        )
        if idle >= whole * _LABELLED_GAP:
            layout["annotations"].append(
                {
                    "text": f"stopped {duration(idle)}",
                    "xref": "x",
                    "yref": "paper",
                    "x": times.chart(before.end + (after.start - before.end) / 2),
                    "y": 1,
                    "yanchor": "bottom",
                    "showarrow": False,
                    "font": {"color": "var(--muted)", "size": 11},
                }
            )


NOTICES = "notices"
"""The lane of the notices."""

_WIDEST = 72
_LONGEST_HOVER = 400


def stage_bars(report: RunReport, times: Times) -> list[dict[str, Any]]:
    """Return a trace per kind and ending, because a pattern belongs to a trace."""
    groups: defaultdict[tuple[StageKind, bool], list[StageTry]] = defaultdict(list)
    for stage in report.stages:
        groups[stage.kind, stage.ending in ("repeated", "unfinished")].append(stage)
    traces = []
    for (kind, cut_off), stages in sorted(groups.items(), key=lambda group: group[0][1]):
        color = f"var(--{kind})"
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
                "name": kind,
                "y": [kind] * len(stages),
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
    """Return bars for notices with a duration, and a mark at the start of each."""
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
    """Return foreign text for a hover label: a few lines without markup."""
    shown = visible(text)
    if len(shown) > _LONGEST_HOVER:
        shown = f"{shown[:_LONGEST_HOVER]}…"
    return "<br>".join(html.escape(line) for line in textwrap.wrap(shown, _WIDEST))
