"""A loop of your own: a generator for `flow`, in which plain Python decides what comes next."""

from pathlib import Path

from reactivex import operators as ops

import cuggino
from cuggino import emit, extract_markers, flow, forward, marker_tags
from cuggino.agents.scripted import ScriptedAgent
from cuggino.events import Done, Note, Progress, is_llm_marker_event
from cuggino.operators import Flow

agent = ScriptedAgent(Path(__file__).with_name("own_loop.toml"))
TAGS = marker_tags(Progress, Done)


def session(prompt: str) -> cuggino.SpawnOptions:
    """Return the options of a session; this loop has one role."""
    return cuggino.SpawnOptions(prompt=prompt, cwd=Path.cwd(), role="implementing")


def refine() -> Flow[None]:
    """Ask for a shorter sentence until the agent declares it done, at most five times."""
    prompt = "Write a sentence about loops."
    for turn in range(1, 6):
        yield from emit(Note(content=f"turn {turn}: {prompt}"))
        marker = yield from forward(
            agent.spawn(session(prompt)).pipe(
                extract_markers(TAGS),
                ops.filter(is_llm_marker_event),
            )
        )
        if isinstance(marker, Done):
            return
        prompt = "Make it shorter."


for event in cuggino.iterate(flow(refine)):
    print(f"{event.tag}: {event.content}")

# prints:
# Note: turn 1: Write a sentence about loops.
# Progress: A loop is a story that asks itself how it should end.
# Note: turn 2: Make it shorter.
# Done: A loop is a story that ends itself.
