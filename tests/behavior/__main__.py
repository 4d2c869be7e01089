"""What loop tools do to agents that fail, as a table.

    python -m tests.behavior [--only WORD] [--json]

Each scenario is a throw-away project with a check and an agent that behaves in one way for ever;
the reviewer of cuggino approves whatever it sees, which is the worst case. Tools that are
installed are played: cuggino by its scripted agent, others by a `claude` of ours on PATH, at
their defaults with the documented way to name a check. "Fooled" is a success that is reported for
work that a fresh clone lacks. The exit code is 1 if cuggino with `gate: block` was fooled, left a
process, did not approve honest work, or spent more sessions than it may.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from tests.behavior.scenarios import SCENARIOS, Scenario
from tests.behavior.tools import Outcome, Tool, play, tools


def main() -> int:
    """Play the scenarios, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.behavior",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", help="a word in the name of a scenario or a tool")
    parser.add_argument("--json", action="store_true", help="one line of JSON for each cell")
    asked = parser.parse_args()
    installed = [tool for tool in tools() if tool.is_there]
    problems: list[str] = []
    for scenario in SCENARIOS:
        for tool in installed:
            if asked.only not in f"{scenario.name} {tool.name}":
                continue
            with tempfile.TemporaryDirectory(prefix="behavior-") as folder:
                outcome = play(tool, scenario, Path(folder).resolve())
            print(_line(scenario, tool, outcome, as_json=asked.json), flush=True)
            if tool is installed[0]:
                problems += problems_of(scenario, outcome)
    missing = ", ".join(tool.name for tool in tools() if not tool.is_there)
    if missing and not asked.json:
        print(f"not installed: {missing}")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def problems_of(scenario: Scenario, outcome: Outcome) -> Iterator[str]:
    """Yield what a tool that is never fooled would not have done."""
    if outcome.is_fooled:
        yield f"{scenario.name}: fooled"
    if outcome.left:
        yield f"{scenario.name}: {outcome.left} processes left"
    if scenario.is_honest and not (outcome.says_done and outcome.is_done):
        yield f"{scenario.name}: honest work was not approved: {outcome.told}"
    if not scenario.is_honest and not outcome.told:
        yield f"{scenario.name}: no reason was given"
    if scenario.most_sessions is not None and outcome.sessions > scenario.most_sessions:
        yield f"{scenario.name}: {outcome.sessions} sessions, more than {scenario.most_sessions}"


def _line(scenario: Scenario, tool: Tool, outcome: Outcome, *, as_json: bool) -> str:
    if as_json:
        return json.dumps({"scenario": scenario.name, "tool": tool.name, **asdict(outcome)})
    verdict = "FOOLED" if outcome.is_fooled else "success" if outcome.says_done else "refused"
    code = "ended" if outcome.exit_code is None else f"exit {outcome.exit_code}"
    return (
        f"{scenario.name:14}{tool.name:26}{verdict:9}{code:9}{outcome.sessions:3} sessions  "
        f"{outcome.left} left  {outcome.seconds:5.1f} s  {outcome.told[:80]}"
    )


if __name__ == "__main__":
    sys.exit(main())
