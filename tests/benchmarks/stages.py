"""Small runs, and the stages of the coding loop, with agents that take no time."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial

from cuggino.edges import run as run_stream
from cuggino.events import Note
from cuggino.operators import Flow, emit, flow, forward
from tests.benchmarks.measuring import (
    Figure,
    Took,
    in_turns,
    run,
    seconds,
    took_in_turns,
    wall_and_cpu,
)
from tests.benchmarks.project import HERE, Tool, Tree, iterations, project

STATUS = ("git", "status", "--porcelain=v2")


def small_run(
    *, rounds: int = 9, peers: Sequence[str] = (), trees: Sequence[Tree] = (HERE,)
) -> Iterator[Figure]:
    """Measure a run of three instant agents: plan, work, review."""
    ours = {tree.key("small"): Tool.cuggino(tree=tree) for tree in trees}
    others = [Tool.peer(peer) for peer in peers]
    with project() as here:
        here.plays(*iterations(1))

        def alone() -> Took:
            here.restore()
            return here.run_agent().plus(here.run_agent()).plus(here.run_agent())

        least, *rest = took_in_turns(
            rounds, alone, *(partial(here.run, tool) for tool in (*ours.values(), *others))
        )
        for (key, tool), taken in zip(ours.items(), rest, strict=False):
            name = f"{tool.name}: three instant agents"
            yield from wall_and_cpu(key, name, taken, least, "three agents alone")
        for tool, taken in zip(others, rest[len(ours) :], strict=True):
            here.run(tool)
            name = f"{tool.name}: {here.calls} instant agents"
            yield from wall_and_cpu("small.peer", name, taken, least, "three agents alone")


def stages(*, many: int = 25, rounds: int = 9, trees: Sequence[Tree] = (HERE,)) -> Iterator[Figure]:
    """Compare a stage of `cuggino run` with one `git status` and one process.

    The cost of a stage is the difference between a run of `many` iterations, of three stages each,
    and a run of one. What snapshots and verification add is measured apart, beside
    one `git status`. A whole stage is measured in all `trees`.
    """
    with project(maxIterations=many) as here:

        def of(tool: Tool, count: int) -> Took:
            here.plays(*iterations(count))
            return here.run(tool)

        def status() -> Took:
            return run(STATUS, cwd=here.folder, env=here.env)

        tools = [Tool.bare_cuggino(), *(Tool.cuggino(tree=tree) for tree in trees)]
        acts = [partial(of, tool, count) for tool in tools for count in (1, many)]
        least, agent, *taken = took_in_turns(rounds, status, here.run_agent, *acts)
    stage, *whole = (
        full.minus(few).each(3 * (many - 1))
        for few, full in zip(taken[::2], taken[1::2], strict=True)
    )
    runs = f"{3 * many} against 3"
    for key, name, value, floor, floor_name in (
        (
            "stage",
            f"a stage of cuggino run, {runs}",
            stage,
            least.plus(agent),
            "git status and the agent",
        ),
        (
            "stage.added",
            "its snapshot and verification",
            whole[0].minus(stage),
            least,
            "git status",
        ),
        *(
            (
                tree.key("stage.whole"),
                tree.named("a stage with both"),
                each,
                least.plus(agent),
                "git status and the agent",
            )
            for tree, each in zip(trees, whole, strict=True)
        ),
    ):
        yield from wall_and_cpu(key, name, value, floor, f"{floor_name} alone", unit="ms")


def empty_stages(*, many: int = 10_000) -> Iterator[Figure]:
    """Measure stages without a process."""

    def empty() -> Flow[None]:
        for _ in range(many):
            yield from forward(flow(lambda: emit(Note(content=""))))

    (taken,) = in_turns(3, lambda: seconds(lambda: run_stream(flow(empty))), best=True)
    yield Figure(
        key="stage.empty", name=f"{many:,} stages without a process", value=taken, unit="s"
    )


def check_output(*, size: int = 10**8, rounds: int = 5) -> Iterator[Figure]:
    """Compare a check that prints lines of two bytes with a program that keeps them in a file."""
    shouts = f"yes | head -c {size}"
    keeps = "import shutil, sys; shutil.copyfileobj(sys.stdin.buffer, open('kept', 'wb'))"
    bare = ("/bin/sh", "-c", f'{shouts} | {sys.executable} -c "{keeps}"')
    tool = Tool.cuggino()
    with project(checkCommand=shouts) as loud, project(checkCommand="true") as quiet:
        for here in (loud, quiet):
            here.plays(*iterations(1))
        least, without, whole = took_in_turns(
            rounds,
            lambda: run(bare, cwd=loud.folder, env=loud.env),
            partial(quiet.run, tool),
            partial(loud.run, tool),
        )
    name = f"a check that prints {size // 10**6:,} MB in lines"
    taken = whole.minus(without).each(2)
    yield from wall_and_cpu("check", name, taken, least, "the same into a file")
