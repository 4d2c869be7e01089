"""A loop of your own from the stages of the coding loop: two reviewers, the stricter one wins."""

from pathlib import Path

from reactivex import merge, operators as ops

import cuggino
from cuggino import flow, forward
from cuggino.agents.scripted import ScriptedAgent
from cuggino.events import Approved, Event, is_llm_marker_event, is_llm_terminal_marker_event
from cuggino.operators import Flow
from cuggino.stages import implementing_stage, planning_stage, reviewing_stage

Path(".specs").mkdir()
Path(".specs/greeting.md").write_text("greeting.txt greets the world.\n")
agent = ScriptedAgent(Path(__file__).with_name("two_reviewers.toml"))
place = cuggino.Runtime.live(cwd=".", agent=agent).workplace(focus="the greeting")


def stricter(one: Event, other: Event) -> Event:
    """Return the verdict that is not an approval, if there is one."""
    return other if isinstance(one, Approved) else one


def story() -> Flow[None]:
    """Plan and implement, until both reviewers have approved."""
    verdict: Event | None = None
    with place.held():
        while not isinstance(verdict, Approved):
            yield from forward(planning_stage(place, review=getattr(verdict, "content", None)))
            yield from forward(implementing_stage(place))
            reviews = [reviewing_stage(reviewer) for reviewer in place.reviewers(2)]
            verdicts = merge(*reviews).pipe(ops.filter(is_llm_terminal_marker_event))
            verdict = yield from forward(verdicts.pipe(ops.reduce(stricter)))


for marker in cuggino.iterate(flow(story).pipe(ops.filter(is_llm_marker_event))):
    print(f"{marker.tag}: {marker.content}")

# prints:
# PlanComplete: One task.
# Done: Greet the world
# RequestChanges: The greeting must end with a newline.
# PlanComplete: Add the newline.
# Done: Add a newline
# Approved: As specified.
