"""What `iterate` and `aiterate` add to each event that they hand to a loop."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from functools import partial

from tests.benchmarks.measuring import Figure, in_turns
from tests.benchmarks.project import HERE, Tree

_CODE = """
import asyncio, sys, time
import reactivex as rx
from cuggino import aiterate, iterate, run
from cuggino.sources import process_lines

edge, source, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
seen = []

async def loop(events):
    async for event in events:
        seen.append(event)

def consume(stream):
    if edge == "aiterate":
        asyncio.run(loop(aiterate(stream)))
    elif edge == "iterate":
        for event in iterate(stream):
            seen.append(event)
    else:
        run(stream, seen.append)

consume(rx.of(1))
seen.clear()
began = time.process_time()
if source == "process":
    consume(process_lines(["seq", str(count)]))
else:
    consume(rx.from_iterable(range(count)))
print((time.process_time() - began) / count * 1e6)
assert count == len(seen)
"""

SOURCES = {"range": "a range", "process": "lines of a process"}


def edges(
    *, count: int = 20_000, rounds: int = 5, trees: Sequence[Tree] = (HERE,)
) -> Iterator[Figure]:
    """Compare the CPU of an event in a loop with that of `cuggino.run` on the same burst."""

    def cpu(tree: Tree, edge: str, source: str) -> float:
        # With -P, or the cuggino in the current folder would be measured instead of the tree's.
        argv = [tree.python, "-P", "-c", _CODE, edge, source, str(count)]
        return float(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)

    for source, name in SOURCES.items():
        cases = [(tree, edge) for tree in trees for edge in ("iterate", "aiterate")]
        acts = [partial(cpu, tree, edge, source) for tree, edge in cases]
        least, *taken = in_turns(rounds, partial(cpu, HERE, "run", source), *acts, warm=0)
        for (tree, edge), each in zip(cases, taken, strict=True):
            yield Figure(
                key=tree.key(f"{edge}.{source}"),
                name=f"{tree.named(edge)}: an event of {name}, CPU",
                value=each,
                unit="us",
                floor=least,
                floor_name="cuggino.run",
            )
