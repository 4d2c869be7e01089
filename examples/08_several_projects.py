"""Several projects at once: streams are merged, two of them running at any time."""

from collections.abc import Callable
from pathlib import Path

from reactivex import Observable, from_iterable, operators as ops

import cuggino
from cuggino.events import LoopEvent

HERE = Path(__file__).parent


def told(name: str) -> Callable[[LoopEvent], str]:
    """How a run ended, in a line."""
    return lambda last: f"{name}: {last.tag}"


def project(name: str) -> Observable[str]:
    """A project's run as lines. Cold: it is started when there is room for it."""
    folder = Path(name)
    (folder / ".specs").mkdir(parents=True)
    (folder / ".specs" / "greeting.md").write_text("greeting.txt greets the world.\n")
    runtime = cuggino.Runtime.live(
        cwd=folder, agent=cuggino.ScriptedAgent(HERE / "coding_loop.toml")
    )
    return runtime.run(focus="the greeting").pipe(ops.last(), ops.map(told(name)))


names = ["alpha", "beta", "gamma", "delta"]
runs = from_iterable(names).pipe(ops.map(project), ops.merge(max_concurrent=2))

# They end in whatever order they do; sorted, so that the lines below are always the same.
for line in sorted(cuggino.iterate(runs)):
    print(line)

# prints:
# alpha: LoopApproved
# beta: LoopApproved
# delta: LoopApproved
# gamma: LoopApproved
