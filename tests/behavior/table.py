"""The results as lines for a terminal, and as a page in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.behavior.engine import Outcome
from tests.behavior.scenarios import Scenario
from tests.behavior.tools import Tool


@dataclass(frozen=True, kw_only=True)
class Results:
    """All cells, by the names of scenario and tool."""

    scenarios: Sequence[Scenario]
    tools: Sequence[Tool]
    versions: Mapping[str, str]
    """Of the tools that were found, by name."""
    seed: int
    cells: dict[tuple[str, str], Outcome] = field(default_factory=dict)


def verdict(outcome: Outcome) -> str:
    """Return what came out, in one or two words."""
    if outcome.is_fooled:
        return "FALSE DONE"
    if outcome.says_done:
        return "done"
    return "refused" if outcome.exit_code is not None else "did not end"


def line(scenario: Scenario, tool: Tool, outcome: Outcome) -> str:
    """Return a cell as a line for a terminal."""
    start = f"{scenario.name:18}{tool.name:25}"
    if outcome.unplayed:
        return f"{start}not played: {outcome.unplayed}"
    lost = f"LOST {' '.join(outcome.lost)}  " if outcome.lost else ""
    left = f"{outcome.left} LEFT  " if outcome.left else ""
    words = outcome.words.replace("\n", " / ")
    more = "" if scenario.is_honest and outcome.says_done else f"  {words[-90:]}"
    trouble = f"  ({outcome.trouble})" if outcome.trouble else ""
    return (
        f"{start}{'ok ' if outcome.is_right(scenario) else '-- '}{verdict(outcome):12}"
        f"{_code(outcome):9}{outcome.sessions:3} sessions {outcome.usd:5.2f} $  {lost}{left}"
        f"{_told(scenario, outcome):9}{outcome.seconds:6.1f} s{trouble}{more}"
    )


def _code(outcome: Outcome) -> str:
    return "" if outcome.exit_code is None else f"exit {outcome.exit_code}"


def _told(scenario: Scenario, outcome: Outcome) -> str:
    if not scenario.reason or (outcome.says_done and scenario.trouble != "second"):
        return ""
    return "told" if outcome.is_told else "not told"


def markdown(results: Results) -> Iterator[str]:
    """Yield the lines of a page: the sums of each tool, each scenario, and where ours is worse."""
    found = [tool for tool in results.tools if tool.name in results.versions]
    yield "# What loops do to agents that fail"
    yield ""
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    yield f"Seed {results.seed}; {versions}. `python -m tests.behavior --seed {results.seed}`"
    yield ""
    yield (
        "A success is exit code 0 (for cuggino, an approval). It is false if a fresh clone of HEAD "
        "lacks the work. A tool is right if it reports a true success, or refuses and tells why, "
        "and neither loses work nor leaves a process."
    )
    yield ""
    heads = ("tool", "right", "false done", "lost work", "processes left", "sessions", "dollars")
    yield from _table(heads, [_sum(results, tool) for tool in results.tools])
    yield ""
    rows = []
    for scenario in results.scenarios:
        cells = [_cell(scenario, _outcome(results, scenario, tool)) for tool in results.tools]
        rows.append([f"**{scenario.name}**: {scenario.tells}", *cells])
    yield from _table(("scenario", *(tool.name for tool in results.tools)), rows)
    yield ""
    yield "## Where cuggino is worse"
    yield ""
    yield from [f"- {each}" for each in worse(results, found)] or ["- Nowhere in this table."]


def worse(results: Results, found: Sequence[Tool]) -> Iterator[str]:
    """Yield where a setting of ours is wrong, and where another tool was right with less."""
    ours = [tool for tool in found if tool.is_ours]
    for scenario in results.scenarios:
        cells = {tool.name: _outcome(results, scenario, tool) for tool in found}
        for tool in ours:
            own = cells[tool.name]
            if own is not None and not own.unplayed and not own.is_right(scenario):
                yield f"{scenario.name}: {tool.name}: {_cell(scenario, own)}"
        best = cells[ours[0].name] if ours else None
        cheaper = [
            f"{tool.name} needs {_sessions(outcome)}"
            for tool in found
            if not tool.is_ours and best is not None
            if (outcome := cells[tool.name]) is not None and outcome.is_right(scenario)
            if outcome.sessions < best.sessions or not best.is_right(scenario)
        ]
        if best is not None and cheaper:
            yield f"{scenario.name}: {', '.join(cheaper)}; {ours[0].name} {_sessions(best)}"


def _outcome(results: Results, scenario: Scenario, tool: Tool) -> Outcome | None:
    return results.cells.get((scenario.name, tool.name))


def _sum(results: Results, tool: Tool) -> list[str]:
    played = [
        (scenario, outcome)
        for scenario in results.scenarios
        if (outcome := _outcome(results, scenario, tool)) and not outcome.unplayed
    ]
    if tool.name not in results.versions:
        return [tool.name, f"not installed: {tool.installs}", *[""] * 5]
    outcomes = [outcome for _, outcome in played]
    return [
        tool.name,
        f"{sum(outcome.is_right(scenario) for scenario, outcome in played)} of {len(played)}",
        str(sum(outcome.is_fooled for outcome in outcomes)),
        str(sum(bool(outcome.lost) for outcome in outcomes)),
        str(sum(outcome.left for outcome in outcomes)),
        str(sum(outcome.sessions for outcome in outcomes)),
        f"{sum(outcome.usd for outcome in outcomes):.2f}",
    ]


def _cell(scenario: Scenario, outcome: Outcome | None) -> str:
    if outcome is None:
        return "not installed"
    if outcome.unplayed:
        return f"not played: {outcome.unplayed}"
    parts = [
        f"**{verdict(outcome)}**" if outcome.is_fooled else verdict(outcome),
        _code(outcome),
        _sessions(outcome),
        f"**lost {' '.join(outcome.lost)}**" if outcome.lost else "",
        f"**{outcome.left} left**" if outcome.left else "",
        _told(scenario, outcome),
    ]
    return ", ".join(filter(None, parts))


def _sessions(outcome: Outcome) -> str:
    many = "s" * (outcome.sessions != 1)
    return f"{outcome.sessions} session{many} (${outcome.usd:.2f})"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"
