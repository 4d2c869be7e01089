"""What loop tools do to agents that fail, as a table.

    python -m tests.behavior [--only liar,flake] [--tool gnhf=FOLDER] [--markdown FILE]

Each scenario is a throw-away project with a check, an agent that fails in one way, and perhaps
trouble with the machine. The reviewer of cuggino approves whatever it sees, which is the worst
case. Each tool plays it at its defaults and with its documented way to name a check: cuggino by its
scripted agent, others by a `claude` of ours on PATH. No model is needed, and nothing is random but
the moments of kills and power cuts, which the seed decides.

"FALSE DONE" is a success that is reported for work that a fresh clone of HEAD lacks. "ok" is a
success for work that is there, or a refusal whose reason is told; nothing is lost or left then.
Processes that are left are seen on Linux.
The exit code is 1 if cuggino, set up by `cuggino setup`, was not right, or spent more sessions than
it may.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from tests.behavior.engine import Outcome, play
from tests.behavior.scenarios import SCENARIOS, Scenario
from tests.behavior.table import Results, line, markdown
from tests.behavior.tools import TOOLS, Tool

_Named = TypeVar("_Named", Scenario, Tool)


def main(words: Sequence[str] | None = None) -> int:
    """Play the scenarios, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.behavior",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--only", default="", metavar="NAMES", help="names of scenarios, or how they begin")
    add("--tools", default="", metavar="NAMES", help="the tools to play; default: all")
    add("--tool", action="append", default=[], metavar="NAME=FOLDER", help="where a tool is")
    add("--seed", type=int, default=1, help="decides the moments of kills and power cuts")
    add("--jobs", type=int, default=2 * (os.cpu_count() or 1), help="cells played at once")
    add("--json", action="store_true", help="one line of JSON for each cell")
    add("--markdown", type=Path, metavar="FILE", help="also write a page with the table")
    asked = parser.parse_args(words)
    try:
        scenarios = chosen(SCENARIOS, asked.only)
        wanted = chosen(TOOLS, asked.tools)
        folders = _folders(asked.tool)
    except ValueError as wrong:
        parser.error(str(wrong))
    tools = [tool.found(folders) for tool in wanted]
    found = [tool for tool in tools if tool.path is not None]
    versions = {tool.name: tool.measured_version() for tool in found}
    results = Results(scenarios=scenarios, tools=tools, versions=versions, seed=asked.seed)
    if not asked.json:
        print(f"seed {asked.seed}")
        for tool in tools:
            print(f"{tool.name}: {versions.get(tool.name) or f'not installed: {tool.installs}'}")
    for scenario, tool, outcome in play_all(scenarios, found, seed=asked.seed, jobs=asked.jobs):
        results.cells[scenario.name, tool.name] = outcome
        fields = {"scenario": scenario.name, "tool": tool.name, **asdict(outcome)}
        print(json.dumps(fields) if asked.json else line(scenario, tool, outcome), flush=True)
    if asked.markdown:
        asked.markdown.write_text("\n".join(markdown(results)) + "\n")
    problems = [
        problem
        for scenario in scenarios
        if (cell := results.cells.get((scenario.name, TOOLS[0].name))) is not None
        for problem in problems_of(scenario, cell)
    ]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def play_all(
    scenarios: Sequence[Scenario], tools: Sequence[Tool], *, seed: int, jobs: int
) -> Iterator[tuple[Scenario, Tool, Outcome]]:
    """Play all scenarios on all tools, some at once, and yield what came out in their order."""
    cells = [(scenario, tool) for scenario in scenarios for tool in tools]
    with ThreadPoolExecutor(jobs) as pool:

        def played(cell: tuple[Scenario, Tool]) -> Outcome:
            with tempfile.TemporaryDirectory(prefix="behavior-") as folder:
                return play(cell[1], cell[0], Path(folder).resolve(), seed=seed)

        for (scenario, tool), outcome in zip(cells, pool.map(played, cells), strict=True):
            yield scenario, tool, outcome


def problems_of(scenario: Scenario, outcome: Outcome) -> Iterator[str]:
    """Yield what a tool that is never fooled would not have done."""
    if outcome.unplayed:
        return
    if not outcome.is_right(scenario):
        yield f"{scenario.name}: {line(scenario, TOOLS[0], outcome)}"
    if scenario.most_sessions is not None and outcome.sessions > scenario.most_sessions:
        yield f"{scenario.name}: {outcome.sessions} sessions, more than {scenario.most_sessions}"


def chosen(known: Sequence[_Named], names: str) -> list[_Named]:
    """Return those that are named, or whose names begin with a word that is no name; or all.

    Raises:
        ValueError: a word fits none.
    """
    taken: set[str] = set()
    for word in filter(None, map(str.strip, names.split(","))):
        fitting = {each.name for each in known if each.name.startswith(word)}
        if not fitting:
            every = ", ".join(each.name for each in known)
            raise ValueError(f"nothing is called {word!r}; there are: {every}")
        taken |= {word} if word in fitting else fitting
    return [each for each in known if not taken or each.name in taken]


def _folders(given: Sequence[str]) -> Mapping[str, Path]:
    folders = {}
    for each in given:
        name, _, folder = each.partition("=")
        if name not in {tool.name for tool in TOOLS if not tool.is_ours} or not folder:
            raise ValueError(f"--tool {each}: expected NAME=FOLDER with the name of another tool")
        if not Path(folder).is_dir():
            raise ValueError(f"--tool {each}: {folder} is not a folder")
        folders[name] = Path(folder).resolve()
    return folders


if __name__ == "__main__":
    sys.exit(main())
