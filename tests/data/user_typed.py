"""Code of a user of cuggino: a loop, a policy, readers of events, an edge and a test.

`tests/packaging/test_contents.py` checks it with the strictest rules of mypy and of pyright, where
cuggino is installed. It is not run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import assert_never

import reactivex as rx
from reactivex import Observable, operators as ops

import cuggino
from cuggino import (
    AgentFailed,
    Config,
    ConfigError,
    CugginoError,
    Event,
    LlmAgentEvent,
    LoopEvent,
    Runtime,
    SpawnOptions,
    ask,
    emit,
    extract_markers,
    flow,
    forward,
    marker_tags,
)
from cuggino.agents import Capabilities
from cuggino.events import (
    AgentMessage,
    Done,
    LlmMarkerEvent,
    LoopApproved,
    LoopPhaseEvent,
    LoopSpecIssue,
    Note,
    Progress,
    SessionEnded,
    StageCost,
    SupervisionEvent,
    ToolCall,
    is_llm_marker_event,
    is_loop_terminal_event,
)
from cuggino.operators import Flow
from cuggino.testing import InMemoryAgent, Marbles, ScriptedAgent, no_leaks

TAGS = marker_tags(Progress, Done)


class Echo(cuggino.LlmAgent):
    """A custom agent."""

    name = "echo"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(note="says what it is told")

    def check(self) -> str:
        return "1.0"

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        events: list[LlmAgentEvent] = [
            AgentMessage(text=options.prompt),
            SessionEnded(outcome="completed"),
        ]
        return rx.from_iterable(events)


def commands_only(session: Observable[LlmAgentEvent]) -> Observable[ToolCall]:
    """A policy, of operators."""

    def command(event: LlmAgentEvent) -> Observable[ToolCall]:
        return rx.just(event) if isinstance(event, ToolCall) else rx.empty()

    return session.pipe(ops.flat_map(command))


def at_most(
    limit: int,
) -> Callable[[Observable[LlmAgentEvent]], Observable[LlmAgentEvent]]:
    """A policy that takes an option."""

    def operator(session: Observable[LlmAgentEvent]) -> Observable[LlmAgentEvent]:
        return session.pipe(ops.take(limit))

    return operator


def session(prompt: str) -> SpawnOptions:
    return SpawnOptions(prompt=prompt, cwd=Path.cwd(), role="implementing")


def refine(agent: cuggino.LlmAgent) -> Flow[str]:
    """A loop of one's own."""
    yield from emit(Note(content="begins"))
    for turn in range(5):
        marker = yield from forward(
            agent.spawn(session(f"turn {turn}")).pipe(
                at_most(100),
                extract_markers(TAGS),
                ops.filter(is_llm_marker_event),
            )
        )
        if isinstance(marker, Done):
            return marker.content
    words: str | None = yield from ask(rx.just("not done"))
    return words or "nothing"


def told(event: LoopEvent) -> str:
    """Return the text of a loop's event, by category; a type checker reports a missing case."""
    match event:
        case LoopSpecIssue():
            return event.content
        case LoopPhaseEvent():
            return event.tag
        case LlmAgentEvent() | LlmMarkerEvent():
            return "the agent"
        case SupervisionEvent():
            return "a policy"
        case _:
            assert_never(event)


def spent(event: LoopEvent) -> float:
    return (event.total_cost or 0.0) if isinstance(event, StageCost) else 0.0


def lines(folder: Path) -> Iterator[str]:
    """A run, read as an iterator."""
    config = Config(max_iterations=3, check_command="true")
    runtime = Runtime.live(cwd=folder, agent="claude", config=config)
    stream = runtime.run(focus="a login page")
    for event in cuggino.iterate(stream):
        if is_loop_terminal_event(event):
            yield f"ended in round {event.iteration}"
        yield told(event)
    total: Observable[float] = stream.pipe(ops.map(spent))
    cuggino.run(total, lambda dollars: print(f"{dollars:.2f}"))


async def watching(runtime: Runtime) -> AsyncIterator[str]:
    """A watch, read as an asynchronous iterator."""
    async for event in cuggino.aiterate(runtime.watch()):
        yield event.tag


def kept(event: Event) -> str:
    line: str = cuggino.dump_event(event)
    again: Event = cuggino.parse_event(line)
    return cuggino.dump_event(again)


def own_loop() -> None:
    agent: cuggino.LlmAgent = Echo()
    try:
        for event in cuggino.iterate(flow(lambda: refine(agent))):
            print(event)
    except AgentFailed as error:
        print(error.reason, error.hint)
    except ConfigError as error:
        print(error.message)
    except CugginoError as error:
        print(error.exit_code)


def test_policy() -> None:
    """A test of one's own, in virtual time."""
    t = Marbles(a=AgentMessage(text="One."), b=AgentMessage(text="Two."))
    agent = t.cold("a 25m b|")
    t.check(agent.pipe(at_most(1)), "(a|)")
    t.check_subscriptions(agent, "^!")
    with no_leaks():
        double: cuggino.LlmAgent = InMemoryAgent({"implementing": [agent]})
        cuggino.run(double.spawn(session("Go.")))
    played: cuggino.LlmAgent = ScriptedAgent(Path("scenario.toml"))
    assert played.check()


if __name__ == "__main__":
    print(LoopApproved(iteration=1).tag, kept(Note(content="")))
    own_loop()
    asyncio.run(asyncio.sleep(0))
