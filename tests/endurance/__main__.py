"""Kill commands at random moments; takes some minutes.

    python -m tests.endurance --count 40 --seed 1
    python -m tests.endurance claude --count 10
    python -m tests.endurance slots --count 50
    python -m tests.endurance hands --count 30

Runs `run`, `watch`, `deliver`, `loop`, a watch with `slots` and a run with `hands`, with a scripted
agent in throw-away projects, kills them at random moments (while they start, in a stage, around a
commit), resumes them until they end, and compares history, files and backlog with those of an
undisturbed command. `claude` is `run` with the real Claude Code CLI (npm installs it) on a scripted
model. It looks for lost or doubled work, processes, locks and temporary files. For memory and
descriptors over a long backlog see `python -m tests.soak`.
Nothing depends on time. The exit code is 1 if anything is wrong; the projects are then kept.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.endurance.kills import MOMENTS, finish, kill_in_series
from tests.endurance.real import NAME as CLAUDE, claude_trial
from tests.endurance.trials import TRIALS, Trial

_NAMES = (*TRIALS, CLAUDE)


def kills(trials: Sequence[Trial], root: Path, *, count: int, seed: int) -> list[str]:
    """Kill the commands in turn, at least `count` times or until a problem; return the problems."""
    expected, total, problems = {}, Counter[str](), []
    for trial in trials:
        place = trial.make(root / trial.name)
        found = [*finish(trial, place), *place.problems()]
        problems += [f"{place.root}, undisturbed: {each}" for each in found]
        expected[trial.name] = trial.outcome(place)
    print("| command | seed | kills | at start | in a stage | at a commit | seconds | result |")
    print("|---|---|---|---|---|---|---|---|")
    while total.total() < count and not problems:
        for trial in trials:
            name = trial.name
            began, folder = time.monotonic(), root / f"{name}-{seed}"
            series = kill_in_series(trial, folder, seed=seed, most=5, expected=expected[name])
            total += series.kills
            problems += [f"{folder}: {each}" for each in series.problems]
            cells = [name, seed, series.kills.total(), *(series.kills[each] for each in MOMENTS)]
            cells += [f"{time.monotonic() - began:.0f}", "WRONG" if series.problems else "ok"]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
        seed += 1
    print(f"{total.total()} kills: {', '.join(f'{n} ({m})' for m, n in sorted(total.items()))}")
    return problems


def main() -> int:
    """Run the requested trials."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.endurance",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="COMMAND",
        help=f"any of {', '.join(_NAMES)}; default: all but the last",
    )
    parser.add_argument("--count", type=int, default=40, help="at least so many kills")
    parser.add_argument("--seed", type=int, default=1, help="the same seed, the same moments")
    asked = parser.parse_args()
    for name in asked.names:
        if name not in _NAMES:
            parser.error(f"there is no trial {name!r}: choose from {', '.join(_NAMES)}")
    root = Path(tempfile.mkdtemp(prefix="endurance-")).resolve()
    with ExitStack() as stack:
        trials = [
            stack.enter_context(claude_trial()) if name == CLAUDE else TRIALS[name]
            for name in asked.names or TRIALS
        ]
        problems = kills(trials, root, count=asked.count, seed=asked.seed)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        print(f"kept: {root}", file=sys.stderr)
        return 1
    shutil.rmtree(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
