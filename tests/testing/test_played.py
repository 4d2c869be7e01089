"""Agents in memory within a virtual runtime, and streams of one's own played in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reactivex import never, operators as ops, timer

from cuggino import Config, SpawnOptions
from cuggino.events import (
    AgentMessage,
    BudgetWarning,
    Thinking,
    ToolCall,
    ToolResult,
)
from cuggino.testing import (
    AgentRun,
    Do,
    InMemoryAgent,
    Item,
    Run,
    Say,
    StandsStill,
    Think,
    Use,
    VirtualClock,
    VirtualRuntime,
    Wait,
    Write,
    no_leaks,
)
from cuggino.testing.doubles import Commands
from tests.testing.one_task import DONE, ENDED, HOUR, runs


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No test leaves a process, a thread or a file."""
    with no_leaks():
        yield


class TestAgents:
    def test_what_a_session_does(self, tmp_path: Path) -> None:
        """Each act is told as an agent tells it, and done at its time."""
        seen: list[SpawnOptions] = []
        session: list[Item] = [
            Say("Look."),
            Think("Hm."),
            Run("ls"),
            Use("Read", {"file_path": "a"}, output="text"),
            Wait(2),
            Write("$CUGGINO_PLAN_FILE", "# Plan"),
            Do(seen.append),
            Do(lambda options: (options.cwd / "later").touch()),
            ENDED,
        ]
        cousin = VirtualRuntime(tmp_path, {"planning": [session]})
        plan = tmp_path / "plan.md"
        options = SpawnOptions(
            prompt="Do it.", cwd=tmp_path, role="planning", env={"CUGGINO_PLAN_FILE": str(plan)}
        )
        story = cousin.play(cousin.agent.spawn(options))
        assert [
            (0, AgentMessage(text="Look.")),
            (0, Thinking(text="Hm.")),
            (0, ToolCall(name="Bash", input={"command": "ls"}, id="call-1")),
            (0, ToolResult(name="call-1", output="")),
            (0, ToolCall(name="Read", input={"file_path": "a"}, id="call-2")),
            (0, ToolResult(name="call-2", output="text")),
            (
                2,
                ToolCall(
                    name="Write",
                    input={"file_path": "$CUGGINO_PLAN_FILE", "content": "# Plan"},
                    id="call-3",
                ),
            ),
            (2, ToolResult(name="call-3", output=f"{plan} was written")),
            (2, ENDED),
        ] == story.timeline
        assert ("# Plan", [options]) == (cousin.read("plan.md"), seen)
        assert (tmp_path / "later").exists()

    def test_a_session_that_is_ended(self, tmp_path: Path) -> None:
        """What comes behind the end of a session is not done, though it is of the same instant."""
        cousin = VirtualRuntime(tmp_path, {"planning": [[Say("one"), Write("late", ""), ENDED]]})
        session = cousin.agent.spawn(SpawnOptions(prompt="Do it.", cwd=tmp_path, role="planning"))
        assert [AgentMessage(text="one")] == cousin.play(session.pipe(ops.take(1))).events
        cousin.clock.advance_to(cousin.clock.at("1h"))
        assert ([], 0) == (cousin.paths("late"), cousin.clock.pending)

    def test_one_session_too_many(self, tmp_path: Path) -> None:
        """When all sessions of a role are played, the next one says so."""
        story = VirtualRuntime(tmp_path, runs()).run(focus="it")
        words = "the agent in memory has no session 1 of the role implementing: all are played"
        assert words in str(story.error)

    def test_what_is_no_act(self, tmp_path: Path) -> None:
        """A text in a session is refused, as it might be meant in several ways."""
        sessions: Any = {"planning": [["<SPEC_ISSUE>"]]}
        story = VirtualRuntime(tmp_path, sessions).run(focus="it")
        assert "'<SPEC_ISSUE>' is nothing that a session in memory could do" in str(story.error)

    def test_drawn_agents(self, tmp_path: Path) -> None:
        """Marbles of the runtime draw its agents, cold and hot, and know when they were used."""
        cousin = VirtualRuntime(tmp_path, agent := InMemoryAgent({}))
        t = cousin.marbles(
            p=AgentMessage(text="<PLAN_COMPLETE>x</PLAN_COMPLETE>"),
            d=AgentMessage(text="<DONE>x</DONE>"),
            y=AgentMessage(text="<APPROVED>x</APPROVED>"),
        )
        plan, code, review = t.cold("- 10m p|"), t.hot("- 20m d|"), t.cold("y|")
        agent.runs = {
            "planning": [AgentRun(plan, plan="# Plan")],
            "implementing": [code],
            "reviewing": [review],
        }
        story = cousin.run(focus="it").check()
        t.check_subscriptions(plan, "^ 10m -!")
        t.check_subscriptions(code, "-- 10m ^ 598s -!")
        assert 1203 == story.ended_at
        t.check_released()


class TestPlaying:
    def test_a_stream_of_ones_own(self, tmp_path: Path) -> None:
        """Any stream can be played, and what is no event of cuggino is told by its class."""
        cousin = VirtualRuntime(tmp_path, {})
        story = cousin.play(timer(HOUR))
        assert ([(HOUR, 0)], ["int"], 0) == (story.timeline, story.tags(), story.last)
        assert "            1h  0\n            1h  completed" == str(story)

    def test_it_is_left(self, tmp_path: Path) -> None:
        """At `until` the stream is unsubscribed, also before that time when it has ended."""
        cousin = VirtualRuntime(tmp_path, {})
        t = cousin.marbles(a=1)
        agent = t.cold("-a")
        assert [1] == cousin.play(agent, until="1m").events
        t.check_subscriptions(agent, "^ 59s !")
        assert [] == cousin.play(never(), until="2m").events
        assert "nothing was seen" == str(cousin.play(never(), until="2m"))

    def test_a_story_says_what_is_missing(self, tmp_path: Path) -> None:
        """Asked for one event, it tells how many there are, and all that was seen."""
        story = VirtualRuntime(tmp_path, runs(DONE)).run(focus="it")
        with pytest.raises(AssertionError, match=r"(?s)there are 0 of BudgetWarning.*LoopApproved"):
            story.one(BudgetWarning)
        with pytest.raises(AssertionError, match="there is no event"):
            _ = VirtualRuntime(tmp_path / "other", {}).play(never(), until=1).last

    def test_an_impatient_clock(self, tmp_path: Path) -> None:
        """A command that hangs fails the test with its name, and leaves nothing."""
        cousin = VirtualRuntime(
            tmp_path,
            runs(DONE),
            config=Config(check_command="sleep 1000"),
            clock=VirtualClock(patience=0.3),
        )
        with pytest.raises(StandsStill, match="cuggino-sh has not come to its end"):
            cousin.run(focus="it")

    def test_commands_need_results(self) -> None:
        """A command with an empty list of results is refused."""
        with pytest.raises(ValueError, match="'make' has no result"):
            Commands({"make": []})
