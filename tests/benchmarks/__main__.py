"""`python -m tests.benchmarks`: run all benchmarks and print a table or JSON.

Each figure is interleaved with its floor. The exit code is 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import functools
import json
import platform
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from tests.benchmarks import cold_start, stages, throughput
from tests.benchmarks.measuring import Figure

GROUPS: dict[str, Callable[[], Iterator[Figure]]] = {
    "cold-start": cold_start.command_line,
    "first-spawn": cold_start.first_spawn,
    "guard": cold_start.guard_hook,
    "stages": stages.overhead,
    "processes": stages.processes,
    "journal": stages.journal,
    "markers": throughput.markers,
    "lines": throughput.lines,
    "memory": throughput.memory,
    "backlog": stages.backlog,
}
"""The groups of benchmarks, quick ones first."""

QUICK: dict[str, Callable[[], Iterator[Figure]]] = {
    "markers": functools.partial(throughput.markers, sizes=(1, 8)),
    "lines": functools.partial(throughput.lines, rounds=500),
    "memory": functools.partial(throughput.memory, size=2**25),
    "backlog": functools.partial(stages.backlog, items=500, worked=10),
}
"""The same benchmarks on smaller inputs, to check that they work."""


def shown(figure: Figure) -> str:
    """Return the row of the table."""
    value = f"{figure.value:,.4g} {figure.unit}"
    floor = "" if figure.floor is None else f"{figure.floor:,.4g} {figure.unit}"
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    if figure.most is None:
        aim = ""
    else:
        aim = f"{figure.most:g}" if figure.ratio is not None else f"{figure.most:g} {figure.unit}"
        aim += " ok" if figure.holds else " MISSED"
    return f"| {figure.name} | {value} | {floor} | {figure.floor_name} | {ratio} | {aim} |"


def main() -> int:
    """Run the requested benchmarks."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("group", nargs="*", help=f"any of {', '.join(GROUPS)}; all without one")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    parser.add_argument("--quick", action="store_true", help="on less, to see that it works")
    asked = parser.parse_args()
    for name in asked.group:
        if name not in GROUPS:
            parser.error(f"there is no group {name!r}: choose from {', '.join(GROUPS)}")
    print("| what | took | floor | that is | ratio | aim |\n|---|---|---|---|---|---|")
    figures: list[tuple[str, Figure]] = []
    for name in asked.group or GROUPS:
        measure = QUICK.get(name, GROUPS[name]) if asked.quick else GROUPS[name]
        for figure in measure():
            figures.append((name, figure))
            print(shown(figure), flush=True)
    if asked.json:
        found = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
            "figures": [{"group": name, **figure.as_json()} for name, figure in figures],
        }
        Path(asked.json).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    missed = [figure.name for _, figure in figures if figure.holds is False]
    if missed:
        print(f"missed: {'; '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
