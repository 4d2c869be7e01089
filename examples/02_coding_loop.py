"""The coding loop in a new project: plan, implement and review until the work is approved."""

from pathlib import Path

import cuggino
from cuggino.agents.scripted import ScriptedAgent
from cuggino.events import is_llm_marker_event, is_loop_phase_event, is_loop_terminal_event

project = Path("greeter")
(project / ".specs").mkdir(parents=True)
(project / ".specs" / "greeting.md").write_text("greeting.txt greets the world.\n")

runtime = cuggino.Runtime.live(
    cwd=project,
    config=cuggino.Config(check_command="cat greeting.txt", max_iterations=3),
    agent=ScriptedAgent(Path(__file__).with_name("coding_loop.toml")),
)


def show(event: cuggino.LoopEvent) -> None:
    """Print phases by name and markers with their content."""
    if is_llm_marker_event(event):
        print(f"  {event.tag}: {event.content}")
    elif is_loop_phase_event(event):
        print(event.tag)


last = cuggino.run(runtime.run(focus="the greeting"), show)
print("approved" if is_loop_terminal_event(last) else "not approved")

# prints:
# CheckCommandStarted
# CheckCommandOutput
# Baseline
# IterationStart
# PlanningStart
# PlanWritten
#   PlanComplete: One task.
# ImplementingStart
#   Done: Greet the world
# ReviewingStart
# CheckCommandStarted
# CheckCommandOutput
#   Approved: As specified.
# LoopApproved
# approved
