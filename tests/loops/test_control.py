"""Commands of a person to a run while it works, in virtual time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable

from cuggino import events as ev
from cuggino.errors import Interrupted
from cuggino.loops import LoopRunOptions, LoopService
from cuggino.loops.frame.commands import meant
from cuggino.loops.frame.control import Standing, commands_for
from cuggino.testing import AgentRun, Marbles, Seen
from tests.loops.coding_loop import CodingLoop, drawn, marbles
from tests.loops.supervised_loop import limited
from tests.loops.watching import Watching, line


@pytest.fixture
def t() -> Marbles:
    return commanded()


STEER = ev.SteerAsked(text="use flask")


def commanded() -> Marbles:
    """Return marbles in which digits are commands."""
    return marbles(
        **{
            "1": ev.PauseAsked(),
            "2": ev.ContinueAsked(),
            "3": ev.StopAsked(),
            "4": ev.StopAsked(now=True),
            "5": STEER,
            "6": ev.SkipAsked(),
            "7": ev.ControlIgnored(source="x.json", reason="it is not signed"),
            "8": ev.SkipAsked(item="002.md"),
            "9": ev.Steered(text="use flask", to="session"),
        }
    )


def coding(folder: Path, t: Marbles, commands: str, **services: Any) -> tuple[CodingLoop, Any]:
    """Return a loop of three agents of five seconds each, and the stream of its run."""
    loop = drawn(folder, t, "----c|", "----d|", "----y|")
    control = t.hot(commands)
    service = LoopService(replace(loop.service.services, control=control, **services))
    return loop, service.run(LoopRunOptions(focus="the page", cwd=folder))


def told(seen: list[Seen]) -> list[tuple[float, str]]:
    """Return the story as times and tags, with the class of an error."""
    return [
        (when, value.tag if kind == "next" else type(value).__name__ if value else kind)
        for when, kind, value in seen
    ]


def starts(seen: list[Seen]) -> list[tuple[float, str]]:
    names = ("Start", "Asked", "Paused", "PauseEnded", "Steered", "Ignored", "Interrupted")
    return [(when, tag) for when, tag in told(seen) if tag.endswith(names)]


class TestPause:
    def test_it_stands_still_before_the_next_agent(self, tmp_path: Path, t: Marbles) -> None:
        """The running agent ends its work; the next one starts when the run may continue."""
        _, run = coding(tmp_path, t, "-1-------------------2---")
        seen = t.record(run)
        assert (
            "0 IterationStart, 0 PlanningStart, 1 PauseAsked, 5 ImplementingStart, "
            "5 RunPaused, 21 ContinueAsked, 21 PauseEnded, 26 ReviewingStart"
        ) == line(starts(seen))
        assert [16.0] == [v.seconds for _, k, v in seen if k == "next" and v.tag == "PauseEnded"]
        assert (31, "LoopApproved") in told(seen)

    def test_one_taken_back_in_time_has_no_effect(self, tmp_path: Path, t: Marbles) -> None:
        """A run that may continue before its stage ends does not stand still."""
        _, run = coding(tmp_path, t, "-12-")
        assert ["PauseAsked", "ContinueAsked"] == [
            tag for _, tag in starts(t.record(run)) if "Start" not in tag
        ]

    def test_two_are_one(self, tmp_path: Path, t: Marbles) -> None:
        """A second pause changes nothing, and one command ends both."""
        _, run = coding(tmp_path, t, "-11----2---")
        assert "1 PauseAsked, 5 RunPaused, 7 ContinueAsked, 7 PauseEnded" == line(
            [entry for entry in starts(t.record(run)) if "Start" not in entry[1]]
        )

    def test_nothing_to_continue(self, tmp_path: Path, t: Marbles) -> None:
        """Continuing a run that is not paused is reported as ignored."""
        _, run = coding(tmp_path, t, "-2-")
        assert (1, "ControlIgnored") in told(t.record(run))

    def test_a_paused_run_can_be_stopped(self, tmp_path: Path, t: Marbles) -> None:
        """A stop ends a run that stands still at once."""
        loop, run = coding(tmp_path, t, "-1----3---")
        assert (6, "Interrupted") == told(t.record(run))[-1]
        assert 1 == len(loop.agent.spawned)


class TestStop:
    def test_after_the_stage(self, tmp_path: Path, t: Marbles) -> None:
        """The running agent ends its work, and the run can be resumed."""
        loop, run = coding(tmp_path, t, "-3-")
        seen = t.record(run)
        assert (5, "PlanComplete") in told(seen)
        assert (5, "Interrupted") == told(seen)[-1]
        assert isinstance(seen[-1][2], Interrupted)
        assert 130 == seen[-1][2].code
        assert 1 == len(loop.agent.spawned)

    def test_now(self, tmp_path: Path, t: Marbles) -> None:
        """`now` is like Ctrl-C: the running agent is terminated."""
        _, run = coding(tmp_path, t, "-4-")
        assert [(1, "StopAsked"), (1, "Interrupted")] == told(t.record(run))[-2:]

    def test_while_it_waits(self, tmp_path: Path, t: Marbles) -> None:
        """A wait for a usage limit is not a stage: the run ends at once."""
        t.error = limited(60)
        loop = CodingLoop(tmp_path, planning=[t.cold("-#"), t.cold("----c|")])
        services = replace(loop.service.services, control=t.hot("---3-"))
        options = LoopRunOptions(focus="x", cwd=tmp_path, wait_for_quota=True)
        assert (3, "Interrupted") == told(t.record(LoopService(services).run(options)))[-1]


class TestSteer:
    def test_the_next_prompt_contains_it(self, tmp_path: Path, t: Marbles) -> None:
        """A message that no running agent has taken is in the prompt of the next agent alone."""
        loop, run = coding(tmp_path, t, "-5-")
        seen = t.record(run)
        assert [(1, "SteerAsked"), (5, "Steered")] == [
            entry for entry in starts(seen) if "Steer" in entry[1]
        ]
        assert [False, True, False] == ["use flask" in o.prompt for o in loop.agent.spawned]

    def test_the_running_agent_takes_it(self, tmp_path: Path, t: Marbles) -> None:
        """A message that an agent has acknowledged is not repeated."""
        heard: list[str] = []

        def talking() -> Observable[Any]:
            return t.cold("--9-c|")

        loop = drawn(tmp_path, t, [AgentRun(talking(), plan="# Plan\n")], "d|", "y|")
        services = replace(loop.service.services, control=t.hot("-5-"))
        run = LoopService(services).run(LoopRunOptions(focus="x", cwd=tmp_path))

        def listen(*_: object) -> None:
            messages = loop.agent.spawned[0].messages
            assert messages is not None
            messages.subscribe(heard.append)

        t.scheduler.schedule_absolute(0.5, listen)
        t.record(run)
        assert ["use flask"] == heard
        assert [False, False, False] == ["use flask" in o.prompt for o in loop.agent.spawned]


class TestIgnored:
    def test_a_malformed_file(self, tmp_path: Path, t: Marbles) -> None:
        """A file that is not a command is reported, and changes nothing."""
        _, run = coding(tmp_path, t, "-7-")
        seen = t.record(run)
        assert (1, "ControlIgnored") in told(seen)
        assert (15, "LoopApproved") == told(seen)[-2]

    def test_a_run_has_no_items(self, tmp_path: Path, t: Marbles) -> None:
        """Only a watch has items to skip."""
        _, run = coding(tmp_path, t, "-6-")
        reasons = [v.reason for _, _, v in t.record(run) if isinstance(v, ev.ControlIgnored)]
        assert ["no item is at work"] == reasons

    def test_an_error_of_the_commands(self, tmp_path: Path, t: Marbles) -> None:
        """A run goes on when no more commands can be heard."""
        t.error = OSError("gone")
        _, run = coding(tmp_path, t, "-#")
        seen = t.record(run)
        assert (1, "ControlIgnored") in told(seen)
        assert (15, "LoopApproved") == told(seen)[-2]


class TestWatch:
    def watch(self, folder: Path, commands: str) -> Watching:
        watching = Watching(folder, loops=[(5, "approved"), (5, "approved")])
        watching.write(0, "001.md")
        watching.write(0, "002.md")
        watching.t.events.update(commanded().events)
        watching.obey(watching.t.hot(commands))
        return watching

    def test_an_item_is_skipped(self, tmp_path: Path) -> None:
        """The item's run ends at once, the item is parked, and the next one follows."""
        watching = self.watch(tmp_path, "--6--")
        assert (
            "0 ProcessingItem 001.md, 2 SkipAsked, 2 ItemParked 001.md, 2 ProcessingItem 002.md"
        ) == line(watching.story(4))
        assert "skipped by a person" in (watching.workspace.parked / "001.md.reason.txt").read_text(
            "utf-8"
        )

    def test_another_item_is_not_at_work(self, tmp_path: Path) -> None:
        """A command about an item that is not at work is ignored."""
        watching = self.watch(tmp_path, "--8--")
        tags = [entry[1] for entry in watching.story(4)]
        assert ["WatchProcessingItem", "ControlIgnored"] == tags

    def test_a_pause_holds_the_next_item(self, tmp_path: Path) -> None:
        """Between two items a watch stands still, too."""
        watching = self.watch(tmp_path, "--1----------2--")
        story = watching.story(14)
        assert (5, "RunPaused") in story
        assert (13, "WatchProcessingItem", "002.md") in story

    def test_a_stop_ends_an_idle_watch_at_once(self, tmp_path: Path) -> None:
        """No item is at work, so nothing is waited for."""
        watching = self.watch(tmp_path, "------------3--")
        assert (12, "Interrupted") == watching.story(20)[-1]

    def test_a_pause_of_an_idle_watch(self, tmp_path: Path) -> None:
        """It stands still at once, and waits for items again when it goes on."""
        watching = self.watch(tmp_path, "------------1----2--")
        assert (
            "12 PauseAsked, 12 RunPaused, 17 ContinueAsked, 17 PauseEnded, 17 BacklogWaiting"
        ) == line(watching.story(20)[-5:])

    def test_a_message_to_an_idle_watch(self, tmp_path: Path) -> None:
        """It is refused, as the next item may be about something else."""
        watching = self.watch(tmp_path, "------------5--")
        assert (12, "ControlIgnored") == watching.story(20)[-1]

    def test_a_stop_after_the_item(self, tmp_path: Path) -> None:
        """A stop between two items ends the watch."""
        watching = self.watch(tmp_path, "--3-")
        assert (5, "Interrupted") == watching.story(20)[-1]


def test_details_for_screens(tmp_path: Path, t: Marbles) -> None:
    """With `shows_plans`, a run emits its plan, and a watch the title and place of each item."""
    _, run = coding(tmp_path, t, "-", shows_plans=True)
    [plan] = [value for _, _, value in t.record(run) if isinstance(value, ev.PlanWritten)]
    assert "# Plan\n\n## Task 1" == plan.text


def test_who_is_meant() -> None:
    """Without a name the only item at work is; of none and of several, nobody is."""
    for item, at_work, expected in (
        (None, ("a",), "a"),
        ("a", ("a",), "a"),
        ("b", ("a", "b"), "b"),
        (None, (), "no item is at work"),
        ("a", (), "no item is at work"),
        ("b", ("a",), "b is not at work"),
        (None, ("a", "b"), "name one of the items at work: a, b"),
    ):
        for command, source in (
            (ev.SkipAsked(item=item), "skip"),
            (ev.SteerAsked(text="x", item=item), "steer"),
        ):
            found = meant(command, at_work)
            if isinstance(found, ev.ControlIgnored):
                assert (source, expected) == (found.source, found.reason)
            else:
                assert expected == found


def test_commands_that_lead_from_one_state_to_another() -> None:
    begun, paused, stopped = Standing(), Standing(is_paused=True), Standing(stops=True)
    assert [ev.PauseAsked(), ev.StopAsked()] == [
        *commands_for((begun, replace(paused, stops=True)))
    ]
    assert [ev.ContinueAsked()] == [*commands_for((paused, begun))]
    assert [ev.StopAsked()] == [*commands_for((begun, stopped))]
    assert [] == [*commands_for((paused, paused))]
    closed = Standing(closed_until=datetime(2026, 1, 1, tzinfo=UTC))
    assert [ev.PauseAsked()] == [*commands_for((begun, closed))]
    assert [] == [*commands_for((closed, replace(closed, is_paused=True)))]
