"""Filtering and reacting: one run, two readers, and a condition of your own that ends the run."""

from pathlib import Path

from reactivex import Observable, empty, just, merge, operators as ops

import cuggino
from cuggino.agents.scripted import ScriptedAgent
from cuggino.events import LoopEvent, PlanComplete, Progress, StageCost

Path(".specs").mkdir()
Path(".specs/greeting.md").write_text("greeting.txt greets the world.\n")
agent = ScriptedAgent(Path(__file__).with_name("reacting.toml"))
run = cuggino.Runtime.live(cwd=".", agent=agent).run(focus="the greeting")


def declared(event: LoopEvent) -> Observable[str]:
    """Emit the markers of plan and progress."""
    match event:
        case PlanComplete() | Progress():
            return just(f"{event.tag}: {event.content}")
        case _:
            return empty()


def spent(event: LoopEvent) -> Observable[float]:
    """Emit the cost of the run in US dollars, whenever it changes."""
    return just(event.total_cost or 0.0) if isinstance(event, StageCost) else empty()


def readers(events: Observable[LoopEvent]) -> Observable[str]:
    """Merge two readers of the same events."""
    return merge(
        events.pipe(ops.flat_map(declared)),
        events.pipe(ops.flat_map(spent), ops.map(lambda dollars: f"  ${dollars:.2f} so far")),
    )


def is_affordable(event: LoopEvent) -> bool:
    """Return whether the run has cost less than 5 cents."""
    return not isinstance(event, StageCost) or (event.total_cost or 0.0) < 0.05


# `publish` subscribes to the run once and shares it, however many readers there are. Ending the
# stream ends the run: the next implementing agent, which would sleep for minutes, is terminated.
stream: Observable[str] = run.pipe(
    ops.take_while(is_affordable, inclusive=True),
    ops.publish(readers),
)
for line in cuggino.iterate(stream):
    print(line)

# prints:
#   $0.02 so far
# PlanComplete: One task.
#   $0.07 so far
