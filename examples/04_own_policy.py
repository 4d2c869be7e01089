"""A policy of your own: an operator on the agent's stream."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from reactivex import Observable, operators as ops

import cuggino
from cuggino.agents.scripted import ScriptedAgent
from cuggino.events import AgentMessage, LlmAgentEvent, LoopPhaseEvent, LoopSpecIssue, ToolCall


class Counted(NamedTuple):
    """An event, and the number of commands so far."""

    event: LlmAgentEvent
    commands: int


def end_after_commands(
    limit: int,
) -> Callable[[Observable[LlmAgentEvent]], Observable[LlmAgentEvent]]:
    """Let a session run `limit` commands; the next one ends it with a marker."""
    too_many = AgentMessage(text=f"<SPEC_ISSUE>More than {limit} commands.</SPEC_ISSUE>")

    def count(before: Counted, event: LlmAgentEvent) -> Counted:
        is_command = isinstance(event, ToolCall) and event.name == "Bash"
        return Counted(event, before.commands + is_command)

    def judge(now: Counted) -> LlmAgentEvent:
        return now.event if now.commands <= limit else too_many

    return lambda session: session.pipe(
        ops.scan(count, Counted(too_many, 0)),  # counts per session
        ops.map(judge),
        ops.take_while(lambda event: event is not too_many, inclusive=True),
    )


class CarefulAgent(ScriptedAgent):
    """An agent with that policy; it works for any other agent the same way."""

    def spawn(self, options: cuggino.SpawnOptions) -> Observable[LlmAgentEvent]:
        """Run a session; if the policy ends it, its processes are terminated."""
        return super().spawn(options).pipe(end_after_commands(2))


Path(".specs").mkdir()
Path(".specs/count.md").write_text("count.txt holds a number.\n")
agent = CarefulAgent(Path(__file__).with_name("own_policy.toml"))
runtime = cuggino.Runtime.live(cwd=".", agent=agent)

for event in cuggino.iterate(runtime.run(focus="count.txt")):
    match event:
        case ToolCall(name="Bash"):
            print("runs:", event.input)
        case LoopSpecIssue():
            print(f"{event.tag}: {event.content}")
        case LoopPhaseEvent():
            print(event.tag)
        case _:  # messages, the cost of a stage, ...
            pass

# prints:
# IterationStart
# PlanningStart
# PlanWritten
# ImplementingStart
# runs: {'command': 'echo 1 > count.txt'}
# runs: {'command': 'echo 2 > count.txt'}
# LoopSpecIssue: More than 2 commands.
