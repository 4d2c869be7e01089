"""Run benchmarks and print a table.

Each figure is interleaved with its floor. The exit code is 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks import (
    backlog,
    cluster,
    growth,
    guard,
    handover,
    journals,
    markers,
    pages,
    processes,
    repositories,
    slots,
    stages,
    start,
    stream,
    virtual,
)
from tests.benchmarks.measuring import Figure, Skipped
from tests.benchmarks.project import HERE, Tree

Measure = Callable[..., Iterator[Figure]]


class Group(NamedTuple):
    """A group of benchmarks: as a whole, and on less, to see that it works."""

    whole: Measure
    quick: Measure


GROUPS: dict[str, Group] = {
    "start": Group(start.program, partial(start.program, rounds=1)),
    "commands": Group(start.commands, partial(start.commands, rounds=1)),
    "guard": Group(guard.hook, partial(guard.hook, rounds=1)),
    "small": Group(stages.small_run, partial(stages.small_run, rounds=1)),
    "stage": Group(stages.stages, partial(stages.stages, many=2, rounds=1)),
    "empty": Group(stages.empty_stages, partial(stages.empty_stages, many=500)),
    "check": Group(stages.check_output, partial(stages.check_output, size=10**5, rounds=1)),
    "process": Group(processes.start_and_end, partial(processes.start_and_end, rounds=1)),
    "view": Group(processes.in_views, partial(processes.in_views, rounds=1)),
    "ends": Group(processes.among_others, partial(processes.among_others, others=10, rounds=1)),
    "together": Group(
        processes.ending_together, partial(processes.ending_together, agents=2, rounds=1)
    ),
    "stream": Group(stream.lines, partial(stream.lines, turns=10, rounds=1)),
    "shapes": Group(stream.shapes, partial(stream.shapes, count=600, rounds=1)),
    "alone": Group(stream.alone, partial(stream.alone, count=210, rounds=1)),
    "iterate": Group(handover.edges, partial(handover.edges, count=100, rounds=1)),
    "lengths": Group(stream.lengths, partial(stream.lengths, of=(1, 64), size=2**18, rounds=1)),
    "markers": Group(markers.markers, partial(markers.markers, sizes=(1, 2))),
    "memory": Group(growth.memory, partial(growth.memory, size=2**22, line=2**20)),
    "loops": Group(growth.loops, partial(growth.loops, counts=(1, 3), turns=2, rounds=1)),
    "journal": Group(journals.entries, partial(journals.entries, count=200)),
    "runs": Group(journals.runs, partial(journals.runs, journals=5, events=500, rounds=1)),
    "long": Group(journals.long_run, partial(journals.long_run, events=500)),
    "watch": Group(backlog.items, partial(backlog.items, count=3)),
    "slots": Group(virtual.watches, partial(virtual.watches, items=50, slots=4, workers=10)),
    "parallel": Group(slots.at_once, partial(slots.at_once, items=3, slots=2, wait=0.1)),
    "many": Group(slots.memory, partial(slots.memory, slots=3, wait=0.1)),
    "cluster": Group(cluster.link, partial(cluster.link, batches=5, rounds=1)),
    "serve": Group(pages.open_pages, partial(pages.open_pages, pages=2, rounds=1)),
    "live": Group(pages.event_latency, partial(pages.event_latency, events=10)),
    "backlog": Group(backlog.full, partial(backlog.full, count=200, worked=3)),
    "repository": Group(
        repositories.repositories, partial(repositories.repositories, sizes=(100,), rounds=1)
    ),
}
"""The groups of benchmarks, in the order in which they run."""

COMPARED = ("small", "stream")
"""Groups that measure other command lines, too."""

BEFORE = ("start", "commands", "small", "stage", "stream", "shapes", "alone", "iterate")
"""Groups that measure another checkout, too."""


def shown(figure: Figure, *, judged: bool = True) -> str:
    """Return the row of the table, with a verdict if it is `judged`."""
    value = f"{figure.value:,.4g} {figure.unit}"
    floor = "" if figure.floor is None else f"{figure.floor:,.4g} {figure.unit}"
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    target = ""
    if figure.target is not None and judged:
        unit = "" if figure.target.unit == "x" else f" {figure.target.unit}"
        target = f"{figure.target.most:g}{unit} {'ok' if figure.holds else 'MISSED'}"
    name = figure.name.replace("|", "\\|")
    return f"| {name} | {value} | {floor} | {figure.floor_name} | {ratio} | {target} |"


def main() -> int:
    """Run the requested benchmarks."""
    asked = _arguments()
    names = asked.group or (COMPARED if asked.against else BEFORE if asked.before else GROUPS)
    print("| what | took | floor | that is | ratio | target |\n|---|---|---|---|---|---|")
    figures: list[tuple[str, Figure]] = []
    skipped: dict[str, str] = {}
    for name in names:
        measure = GROUPS[name].quick if asked.quick else GROUPS[name].whole
        if name in COMPARED:
            measure = partial(measure, peers=asked.against)
        if name in BEFORE and asked.before:
            measure = partial(measure, trees=(HERE, asked.before))
        try:
            for figure in measure():
                figures.append((name, figure))
                print(shown(figure, judged=not asked.quick), flush=True)
        except Skipped as reason:
            skipped[name] = str(reason)
            told = str(reason).replace("|", "\\|")
            print(f"| {name} | skipped: {told} | | | | |", flush=True)
    if asked.json:
        found = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
            "quick": asked.quick,
            "skipped": skipped,
            "figures": [{"group": name, **figure.as_json()} for name, figure in figures],
        }
        Path(asked.json).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    if asked.quick:
        return 0
    missed = [figure.name for _, figure in figures if figure.holds is False]
    if missed:
        print(f"missed: {'; '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("group", nargs="*", help=f"any of {', '.join(GROUPS)}; all without one")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    parser.add_argument(
        "--quick", action="store_true", help="on less, to see that it works; judges no target"
    )
    parser.add_argument(
        "--against",
        metavar="COMMAND",
        action="append",
        default=[],
        help="measure this command line, too, in the groups small and stream, and by default only "
        "these; a shell runs it in a temporary git project with .specs/, where a fake `claude` is "
        "the first on the PATH, and it has to end by itself; can be repeated",
    )
    parser.add_argument(
        "--before",
        metavar="CHECKOUT",
        help=f"measure another cuggino, too, in the groups {', '.join(BEFORE)}, and by default "
        "only these: a checkout with a `.venv`, or an interpreter that has it installed",
    )
    asked = parser.parse_args()
    if asked.before:
        try:
            asked.before = Tree.before(asked.before)
        except ValueError as error:
            parser.error(str(error))
    for name in asked.group:
        if name not in GROUPS:
            parser.error(f"there is no group {name!r}: choose from {', '.join(GROUPS)}")
    return asked


if __name__ == "__main__":
    sys.exit(main())
