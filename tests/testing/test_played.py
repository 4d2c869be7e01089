"""In-memory agents in a virtual runtime, and custom streams played in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import never, operators as ops, timer

from cuggino import Config, SpawnOptions, events as ev
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
)
from cuggino.testing.doubles import Commands
from tests.testing.one_task import DONE, ENDED, HOUR, runs

pytestmark = pytest.mark.usefixtures("nothing_is_left")


class TestAgents:
    def test_acts_of_a_session(self, tmp_path: Path) -> None:
        """Each act emits the events of a real agent, at its time."""
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
            (0, ev.AgentMessage(text="Look.")),
            (0, ev.Thinking(text="Hm.")),
            (0, ev.ToolCall(name="Bash", input={"command": "ls"}, id="call-1")),
            (0, ev.ToolResult(name="call-1", output="")),
            (0, ev.ToolCall(name="Read", input={"file_path": "a"}, id="call-2")),
            (0, ev.ToolResult(name="call-2", output="text")),
            (
                2,
                ev.ToolCall(
                    name="Write",
                    input={"file_path": "$CUGGINO_PLAN_FILE", "content": "# Plan"},
                    id="call-3",
                ),
            ),
            (2, ev.ToolResult(name="call-3", output=f"{plan} was written")),
            (2, ENDED),
        ] == story.timeline
        assert ("# Plan", [options]) == (cousin.read("plan.md"), seen)
        assert (tmp_path / "later").exists()

    def test_ended_session_does_nothing_more(self, tmp_path: Path) -> None:
        """Acts after the end of a session are not played, even at the same instant."""
        cousin = VirtualRuntime(tmp_path, {"planning": [[Say("one"), Write("late", ""), ENDED]]})
        session = cousin.agent.spawn(SpawnOptions(prompt="Do it.", cwd=tmp_path, role="planning"))
        assert [ev.AgentMessage(text="one")] == cousin.play(session.pipe(ops.take(1))).events
        cousin.clock.advance_to(cousin.clock.at("1h"))
        assert ([], 0) == (cousin.paths("late"), cousin.clock.pending)

    def test_too_many_sessions(self, tmp_path: Path) -> None:
        """A session beyond the scripted ones of its role is an error that explains it."""
        story = VirtualRuntime(tmp_path, runs()).run(focus="it")
        words = "the agent in memory has no session 1 of the role implementing: all are played"
        assert words in str(story.error)

    def test_invalid_act(self, tmp_path: Path) -> None:
        """A plain text in a session is rejected because it is ambiguous."""
        sessions: Any = {"planning": [["<SPEC_ISSUE>"]]}
        story = VirtualRuntime(tmp_path, sessions).run(focus="it")
        assert "'<SPEC_ISSUE>' is nothing that a session in memory could do" in str(story.error)

    def test_drawn_agents(self, tmp_path: Path) -> None:
        """Marbles of the runtime draw its agents, cold and hot, and record their subscriptions."""
        cousin = VirtualRuntime(tmp_path, agent := InMemoryAgent({}))
        t = cousin.marbles(
            p=ev.AgentMessage(text="<PLAN_COMPLETE>x</PLAN_COMPLETE>"),
            d=ev.AgentMessage(text="<DONE>x</DONE>"),
            y=ev.AgentMessage(text="<APPROVED>x</APPROVED>"),
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
    def test_custom_stream(self, tmp_path: Path) -> None:
        """Any stream can be played; foreign events are listed by their class."""
        cousin = VirtualRuntime(tmp_path, {})
        story = cousin.play(timer(HOUR))
        assert ([(HOUR, 0)], ["int"], 0) == (story.timeline, story.tags(), story.last)
        assert "            1h  0\n            1h  completed" == str(story)
        assert f"<Story of 1 events>\n{story}" == repr(story)

    def test_stream_is_unsubscribed(self, tmp_path: Path) -> None:
        """At `until` the stream is unsubscribed, or earlier when it has ended."""
        cousin = VirtualRuntime(tmp_path, {})
        t = cousin.marbles(a=1)
        agent = t.cold("-a")
        assert [1] == cousin.play(agent, until="1m").events
        t.check_subscriptions(agent, "^ 59s !")
        assert [] == cousin.play(never(), until="2m").events
        assert "nothing was seen" == str(cousin.play(never(), until="2m"))

    def test_story_reports_missing_events(self, tmp_path: Path) -> None:
        """Asking for exactly one event reports the actual number and all events."""
        story = VirtualRuntime(tmp_path, runs(DONE)).run(focus="it")
        with pytest.raises(AssertionError, match=r"(?s)there are 0 of BudgetWarning.*LoopApproved"):
            story.one(ev.BudgetWarning)
        with pytest.raises(AssertionError, match="there is no event"):
            _ = VirtualRuntime(tmp_path / "other", {}).play(never(), until=1).last

    def test_hanging_command_fails_the_test(self, tmp_path: Path) -> None:
        """A hanging command fails the test, is named and leaves nothing behind."""
        cousin = VirtualRuntime(
            tmp_path,
            runs(DONE),
            config=Config(check_command="sleep 1000"),
            clock=VirtualClock(patience=0.3),
        )
        with pytest.raises(StandsStill, match="cuggino-sh has not ended"):
            cousin.run(focus="it")

    def test_commands_need_results(self) -> None:
        """A command with an empty list of results is rejected."""
        with pytest.raises(ValueError, match="'make' has no result"):
            Commands({"make": []})
