"""Write measured figures into the table of the help page `speed`.

    python -m tests.benchmarks --json figures.json commands stage
    python -m tests.benchmarks.published figures.json

Rows whose figure was not measured stay as they are. The text around the numbers is written by hand.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import cuggino_cli
from tests.benchmarks.targets import Target

PAGE = Path(cuggino_cli.__file__).with_name("help") / "speed.md"

ROWS: Mapping[str, str] = MappingProxyType(
    {
        "200,000 agent lines, `cuggino run`": "stream.default",
        "the same with `--json`": "stream.json",
        "the same with `--verbose`": "stream.verbose",
        "the same, one `write` per line": "stream.one-by-one",
        "parts of text, 100,000 lines": "shape.text",
        "no partial messages, 100,000 lines": "shape.whole",
        "one line alone, 1 ms apart, of all kinds": "alone.mixed",
        "one line alone, parts of text": "alone.text",
        "one line alone, no partial messages": "alone.whole",
        "an event of a range in `cuggino.iterate`": "iterate.range",
        "an event of a process in `cuggino.iterate`": "iterate.process",
        "an event of a range in `cuggino.aiterate`": "aiterate.range",
        "`cuggino run` to its first agent": "start.run",
        "`cuggino runs`": "start.runs",
        "`cuggino status`": "start.status",
        "`cuggino backlog list`": "start.backlog",
        "`cuggino --version`": "start.version",
        "`cuggino --help`": "start.help",
        "run of three instant agents, wall time": "small.wall",
        "one stage of `cuggino run`, bare": "stage.cpu",
        "the same, wall time": "stage.wall",
        "what snapshots and verification add to it, without a sandbox": "stage.added.cpu",
        "one stage with them": "stage.whole.cpu",
        "guard on a Bash call": "guard.bash",
        "guard on a Write call": "guard.write",
        "journal entry": "journal.entry",
        "journal entry with fsync": "journal.synced",
        "fingerprint of 1,000 files": "fingerprint.1000",
        "of 30,000 files": "fingerprint.30000",
        "of 100,000 files": "fingerprint.100000",
        "snapshot of 30,000 files, after a change": "snapshot.changed.30000",
        "snapshot of 30,000 files, without one": "snapshot.30000",
        "commit in 1,000 files": "commit.1000",
        "in 30,000 files": "commit.30000",
        "in 100,000 files": "commit.100000",
        "`watch`, one item above its three agents, wall time": "watch.item.wall",
        "`cuggino runs`, 200 journals with 1,000,000 events": "runs.list",
        "60 MiB in lines of 1 KiB": "length.1",
        "in lines of 64 KiB": "length.64",
        "in lines of 1 MiB": "length.1024",
        "in lines of 20 MiB": "length.20480",
        "memory above the imports, 1 GiB of agent output": "memory.stream",
        "memory above the imports, three lines of 20 MiB": "memory.lines",
        "end of a child among 1,100 processes, wall time above the baseline": "end.crowd",
        "subscription to first line, wall time": "process.start",
        "disposal to reaped process tree, wall time": "process.dispose",
        "a process in the implementer's view, wall time": "view.implementing",
        "a process in the reviewer's view, wall time": "view.reviewing",
        "snapshot and verification of a role that writes, 30,000 files": "protected.30000",
        "verification of a read-only role without a sandbox, 30,000 files": "protected.looks.30000",
        "`cuggino serve` with 20 open pages of the demo's run, in one browser": "serve.pages",
        "an event to `cuggino follow`, 95 of 100 times at most": "follow.latency",
        "an event to the stream of its live page, 95 of 100 times at most": "serve.latency",
        "`watch` to the first of 100,000 items": "backlog.first",
        "`cuggino backlog list`, 100,000 items": "backlog.list",
        "the same on first use, without digests": "runs.undigested",
        "`run --resume` after 1,000,000 events, memory above a short run": "long.resume.memory",
        "`report` of it, memory above a short run": "long.report.memory",
        "1 loop of three agents, 1,900 lines each, in a process": "loops.1",
        "10 at once, each": "loops.10",
        "50 at once, each": "loops.50",
        "`extract_markers`, a MiB of 1 MiB": "markers.1",
        "a MiB of 100 MiB": "markers.100",
        "10,000 stages without a process, wall time": "stage.empty",
        "A check that prints 100 MB in lines, wall time": "check.wall",
    }
)
"""The keys of figures by the first cell of their row."""

_NUMBER = re.compile(r"(?:[\d.,]+|\?) (?:s|ms|us|MiB)\b")


def with_figures(page: str, figures: Sequence[Mapping[str, Any]]) -> str:
    """Return the page with the values, baselines, ratios and verdicts of these figures."""
    by_key = {figure["key"]: figure for figure in figures}
    lines = page.splitlines(keepends=True)
    return "".join(_row(line, by_key) for line in lines)


def _row(line: str, figures: Mapping[str, Mapping[str, Any]]) -> str:
    cells = [cell.strip() for cell in line.split("|")[1:-1]]
    figure = figures.get(ROWS.get(cells[0], "")) if len(cells) == 5 else None
    if figure is None:
        return line
    name, _, floor, ratio, target = cells
    if figure["floor"] is not None:
        floor = _NUMBER.sub(_amount(figure["floor"], figure["unit"]), floor, count=1)
    if ratio:
        ratio = f"{figure['ratio']:.2f}"
    if figure["holds"] is not None:
        most = shown_target(Target(**figure["target"]))
        target = most if figure["holds"] else f"**{most}, missed**"
    value = _amount(figure["value"], figure["unit"])
    return f"| {' | '.join((name, value, floor, ratio, target))} |\n"


def shown_target(target: Target) -> str:
    """Return the target as a cell of the table."""
    return f"{target.most:g}" if target.unit == "x" else f"{target.most:g} {target.unit}"


def _amount(value: float, unit: str) -> str:
    if unit == "s" and value < 0.05:
        value, unit = value * 1e3, "ms"
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def main() -> None:
    """Update the page from the JSON of a measurement."""
    found = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if found["quick"]:
        sys.exit("a quick measurement judges nothing: measure without --quick")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_figures(page, found["figures"]), encoding="utf-8")
    left = set(ROWS.values()) - {figure["key"] for figure in found["figures"]}
    print(f"not measured, left as they are: {', '.join(sorted(left)) or 'none'}")


if __name__ == "__main__":
    main()
