"""Several projects at once: merged streams, two running at any time."""

from collections.abc import Callable
from pathlib import Path

from reactivex import Observable, from_iterable, operators as ops

import cuggino
from cuggino.agents.scripted import ScriptedAgent
from cuggino.events import LoopEvent

HERE = Path(__file__).parent


def ending(name: str) -> Callable[[LoopEvent], str]:
    """Return a function that formats the last event."""
    return lambda last: f"{name}: {last.tag}"


def project(name: str) -> Observable[str]:
    """Return the run of a project as lines. It is cold: `merge` starts it."""
    folder = Path(name)
    (folder / ".specs").mkdir(parents=True)
    (folder / ".specs" / "greeting.md").write_text("greeting.txt greets the world.\n")
    runtime = cuggino.Runtime.live(cwd=folder, agent=ScriptedAgent(HERE / "coding_loop.toml"))
    return runtime.run(focus="the greeting").pipe(ops.last(), ops.map(ending(name)))


names = ["alpha", "beta", "gamma", "delta"]
runs = from_iterable(names).pipe(ops.map(project), ops.merge(max_concurrent=2))

# Sorted, because the runs end in any order.
for line in sorted(cuggino.iterate(runs)):
    print(line)

# prints:
# alpha: LoopApproved
# beta: LoopApproved
# delta: LoopApproved
# gamma: LoopApproved
