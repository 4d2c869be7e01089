"""A night of a watch, in an hour: everything that goes wrong, at once.

    python -m tests.soak --minutes 60

`watch --slots 3 --serve` works through 40 items with the real Claude Code and Codex CLIs on a
scripted model: conflicts, pairs that break the check, checks that fail at first, a check that fails
one of eleven times for no reason, questions that are answered at the page, landings that wait for
an approval, agents that wait for a file, usage limits with a fallback, agents that are killed, five
`kill -9` of the watch with restarts, and a full disk for a minute. Then a run with two hands is
killed and resumed. A browser shows the page and `cuggino follow` follows all the time. In the end
every item is accounted for, the check passes on every commit of the branch, no process, file or ref
is left, memory and descriptors are flat, and the report's total is that of the journals. The exit
code is 1 if anything is wrong.

The full disk needs bubblewrap: the project is then on its own file system, which is gone at the
end. `--keep` leaves the project, without a full disk.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.soak.morning import problems_of, table
from tests.soak.night import Plan, spend
from tests.web.chromium import program

_DISK = 3 << 30


def main() -> int:
    """Let the night pass, and say how it was."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="about how long it takes")
    parser.add_argument("--items", type=int, default=40, help="how long the backlog is")
    parser.add_argument("--slots", type=int, default=3, help="how many items are at work at once")
    parser.add_argument("--kills", type=int, default=5, help="how often the watch is killed")
    parser.add_argument("--crashes", type=int, default=3, help="how many agents are killed")
    parser.add_argument("--disk", type=float, default=1.0, help="minutes of the full disk")
    parser.add_argument("--seed", type=int, default=1, help="the same seed, the same moments")
    parser.add_argument("--keep", action="store_true", help="leave the project")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if program() is None:
        parser.error("Chromium is required")
    bubblewrap = shutil.which("bwrap")
    if asked.inside is None and bubblewrap and not asked.keep:
        place = tempfile.mkdtemp(prefix="soak-")
        words = ["--dev-bind", "/", "/", "--size", str(_DISK), "--tmpfs", place, "--"]
        again = [sys.executable, "-m", "tests.soak", *sys.argv[1:], "--inside", place]
        code = os.spawnv(os.P_WAIT, bubblewrap, [bubblewrap, *words, *again])
        Path(place).rmdir()
        return code
    disk = asked.inside
    root = Path(asked.inside or tempfile.mkdtemp(prefix="soak-")).resolve() / "night"
    plan = Plan(
        minutes=asked.minutes,
        items=asked.items,
        slots=asked.slots,
        kills=asked.kills,
        crashes=asked.crashes,
        disk_minutes=asked.disk,
        seed=asked.seed,
    )
    outputs = Path(tempfile.mkdtemp(prefix="soak-outputs-"))
    night = spend(plan, root, outputs, disk=disk)
    problems = list(problems_of(night))
    print(table(night))
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems or asked.keep:
        print(f"kept: {outputs}", *([root] if asked.keep else []))
    else:
        shutil.rmtree(outputs)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
