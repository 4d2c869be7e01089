"""Many loops in one process, and memory on a long stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial

from cuggino import Config, Runtime
from cuggino.edges import run as run_stream
from cuggino.operators.merge_now import merge_now
from tests.benchmarks.measuring import Figure, Took, in_turns, took
from tests.benchmarks.project import Project, calling, iterations, prints, prints_file, project
from tests.benchmarks.sessions import TURN, long_lines, session, write_large, write_session


def loops(
    *, counts: Sequence[int] = (1, 10, 50), turns: int = 30, rounds: int = 3
) -> Iterator[Figure]:
    """Measure whole loops that run at the same time in one process."""
    acts = (partial(_cpu_of_each, count, turns) for count in counts)
    each = in_turns(rounds, *acts)
    for count, value in zip(counts, each, strict=True):
        is_first = count == counts[0]
        yield Figure(
            key=f"loops.{count}",
            name=f"{count} loops of 3 agents, {turns * TURN:,} lines each, in one process: "
            "CPU of a loop",
            value=value * 1e3,
            unit="ms",
            floor=None if is_first else each[0] * 1e3,
            floor_name="" if is_first else f"a loop of {counts[0]}",
        )


def _cpu_of_each(count: int, turns: int) -> float:
    # Fewer than ten are too short to be measured once.
    repeats = max(10 // count, 1)
    return sum(_together(count, turns).cpu for _ in range(repeats)) / (count * repeats)


def _together(count: int, turns: int) -> Took:
    """Measure `count` loops that run side by side, each in its own project."""
    with ExitStack() as stack:
        streams = []
        for _ in range(count):
            here = stack.enter_context(project())
            plan, _, review = iterations(1)
            file = here.folder.parent / "work.jsonl"
            write_session(file, session(turns, ending="<DONE>Did it.</DONE>"))
            here.plays(plan, f"echo $n >>notes.txt\n{prints_file(file)}", review)
            config = Config(guard="off", sandbox="off", agent_path=str(here.agent))
            streams.append(Runtime.live(cwd=here.folder, config=config).run(focus="x"))
        return took(lambda: run_stream(merge_now(*streams)))


def memory(*, size: int = 2**30, line: int = 20 * 2**20) -> Iterator[Figure]:
    """Compare the peak memory of `cuggino run` on a gibibyte with that on a short stream."""
    with project(maxTokens=10**12) as here:
        imported = _peak(here, "import cuggino_cli.commands.run, cuggino.agents.claude")
        small = _peak_of_run(here, session(5))
        for key, name, lines in (
            ("memory.stream", f"peak on a stream of {size // 2**20:,} MiB", None),
            (
                "memory.lines",
                f"peak on 3 lines of {line // 2**20} MiB",
                long_lines(line, size=3 * line),
            ),
        ):
            large = _peak_of_run(here, lines, size=size)
            yield Figure(
                key=key,
                name=name,
                value=large - imported,
                unit="MiB",
                floor=small - imported,
                floor_name="300 lines; both over what is imported",
            )


def _peak_of_run(here: Project, lines: Iterable[bytes] | None, *, size: int = 0) -> float:
    file = here.folder.parent / "session.jsonl"
    if lines is None:
        write_large(file, size=size)
    else:
        write_session(file, lines)
    here.plays(prints_file(file), prints(session()))
    return _peak(here, calling("run", "--focus", "x", code=10))


def _peak(here: Project, act: str) -> float:
    here.restore()
    return here.run_python(act).peak
