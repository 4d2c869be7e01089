"""The charts of a report, as figures for plotly.js: stages, cost and tokens on one time axis.

A figure is plain data. Its texts are escaped, as plotly.js reads HTML in them; a colour is the
name of a CSS variable, so that the page decides on it, in light and dark.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from cuggino.report.bars import NOTICES, notice_marks, stage_bars
from cuggino.report.model import Role, RunReport, Spent
from cuggino.report.times import Times
from cuggino.report.wording import duration

Figure: TypeAlias = dict[str, Any]

LANES: Final[tuple[Role, ...]] = (
    "planning",
    "implementing",
    "reviewing",
    "audit",
    "setup",
    "check",
    "commit",
    "push",
    "initializer",
    "coding",
    "sync",
    "verify",
    "other",
)
"""From the top down; a lane without a stage is left out."""

_LANE_HEIGHT, _LINES_HEIGHT, _GAP, _MARGIN = 30, 130, 46, 46
_MOST_POINTS = 2000
_LABELLED_GAP = 0.12
"""The part of the time axis that a gap must take for its label to fit in."""

_TOKENS = (
    ("output", "output_tokens", "var(--reviewing)"),
    ("input", "input_tokens", "var(--planning)"),
    ("cache written", "cache_creation_tokens", "var(--check)"),
    ("cache read", "cache_read_tokens", "var(--other)"),
)


def timeline(report: RunReport, times: Times) -> Figure | None:
    """A bar for each try of a stage, above the lines of cost and tokens; None without a stage.

    Bars of tries that were cut off are hatched; times in which no process worked are shaded.
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
    there = {stage.role for stage in report.stages}
    lanes: list[str] = [role for role in LANES if role in there]
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
    """The charts below the bars: title, prefix of the numbers, traces."""
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
    """Reads from the cache can be so many that the other lines lie flat: a click brings them."""
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
    """At most `_MOST_POINTS`, more than a screen can tell apart; the last is among them."""
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
