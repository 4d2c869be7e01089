"""The watch with slots whose items land through pull requests, in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import concat, never, operators as ops, timer

from cuggino import events as ev
from cuggino.errors import ForgeRefused, ProcessError
from cuggino.storage import list_journals
from tests.loops.slot_watching import SlotWatching, leave_killed
from tests.loops.test_slots import SHORT, events, short, watching
from tests.loops.test_slots_recorded import left

PROPOSED = ["proposed"]
SHORT["WatchProposed"] = "proposed"


def proposing(folder: Path, *names: str, **more: Any) -> SlotWatching:
    """Return a watch in which each landing ends with a pull request."""
    landings = {name: ["proposed"] * 9 for name in names}
    return watching(folder, *names, **{"landings": landings, **more})


def test_others_work_while_a_pull_request_waits(tmp_path: Path) -> None:
    """It keeps no slot and no place in the queue; merged, its item is put away."""
    slots = proposing(
        tmp_path,
        *("1.md", "2.md", "3.md"),
        slots=1,
        proposals={
            "1.md": [(25.0, "merged")],
            "2.md": [(60.0, "merged")],
            "3.md": [(50.0, "merged")],
        },
    )
    assert [
        "0: work 1",
        "10: candidate 1, landing 1, work 2",
        "11: proposed 1",
        "20: candidate 2, landing 2, work 3",
        "21: proposed 2",
        "25: landed 1, done 1",
        "30: candidate 3, landing 3",
        "31: proposed 3, idle",
        "50: landed 3, done 3, idle",
        "60: landed 2, done 2, idle",
    ] == short(slots.story(200))


def test_the_wait_counts_what_is_proposed(tmp_path: Path) -> None:
    slots = proposing(tmp_path, "1.md", "2.md", proposals={"1.md": [(50.0, "merged")]})
    waits = events(slots.play(200), ev.WatchBacklogWaiting)
    assert [2, 1, 0] == [wait.proposals for wait in waits]


@pytest.mark.parametrize("reason", ["ci", "review", "conflict"])
def test_one_that_is_sent_back_is_worked_on_and_proposed_again(tmp_path: Path, reason: str) -> None:
    """Its candidate and the reason go to the next attempt; also out of an idle watch."""
    slots = proposing(tmp_path, "1.md", proposals={"1.md": [(50.0, reason), (100.0, "merged")]})
    assert [
        "0: work 1",
        "10: candidate 1, landing 1",
        "11: proposed 1, idle",
        "50: back 1, work 1",
        "60: candidate 1, landing 1",
        "61: proposed 1, idle",
        "100: landed 1, done 1, idle",
    ] == short(slots.story(200))
    returned = slots.tried[-1][3]
    assert returned is not None
    assert ("1.md-1", reason, 1) == (
        returned.candidate.commit,
        returned.sent_back.reason,
        returned.sent_back.returns,
    )


def test_what_somebody_else_has_pushed_goes_on(tmp_path: Path) -> None:
    """The next attempt begins at the commits of the person."""
    slots = proposing(tmp_path, "1.md", proposals={"1.md": [(50.0, "adopted"), (100.0, "merged")]})
    slots.play(200)
    returned = slots.tried[-1][3]
    assert returned is not None
    assert ("theirs", "review") == (returned.candidate.commit, returned.sent_back.reason)


def test_one_that_comes_back_while_others_work_goes_first(tmp_path: Path) -> None:
    slots = proposing(
        tmp_path,
        *("1.md", "2.md", "3.md"),
        slots=1,
        proposals={"1.md": [(15.0, "ci"), (90.0, "merged")]},
    )
    story = short(slots.story(45))
    assert "20: candidate 2, landing 2, work 1" in story
    assert "30: candidate 1, landing 1, work 3" in story


def test_returns_are_counted_over_local_landings_and_pull_requests(tmp_path: Path) -> None:
    """An item that was sent back too often is parked, with its work named."""
    slots = proposing(
        tmp_path,
        "1.md",
        max_attempts=3,
        landings={"1.md": ["check", "proposed", "proposed"]},
        proposals={"1.md": [(50.0, "ci"), (100.0, "review"), (150.0, "merged")]},
    )
    seen = slots.play(300)
    assert [1, 2, 3] == [back.returns for back in events(seen, ev.WatchSentBack)]
    (parked,) = events(seen, ev.WatchItemParked)
    assert (
        "sent back 3 times; a review of its pull request asks for changes; "
        "its work is in refs/cuggino/candidates/1.md"
    ) == parked.reason
    assert [] == slots.trunk.landed
    assert ["1.md"] == [path.name for path in slots.workspace.parked.glob("*.md")]


def test_one_that_will_not_land_is_parked(tmp_path: Path) -> None:
    """A pull request that a person closed parks its item; others continue."""
    slots = proposing(
        tmp_path,
        *("1.md", "2.md"),
        proposals={"1.md": [(50.0, ForgeRefused("it was closed"))], "2.md": [(60.0, "merged")]},
    )
    seen = slots.play(200)
    (parked,) = events(seen, ev.WatchItemParked)
    assert ("1.md", "it was closed; its work is in refs/cuggino/candidates/1.md") == (
        parked.filename,
        parked.reason,
    )
    assert ["2.md"] == slots.trunk.landed


def test_a_passing_failure_is_waited_out(tmp_path: Path) -> None:
    slots = proposing(
        tmp_path,
        "1.md",
        retry_seconds=20.0,
        proposals={"1.md": [(50.0, ProcessError("git", "no space")), (70.0, "merged")]},
    )
    story = short(slots.story(200))
    assert ["50: retry 1", "70: landed 1, done 1, idle"] == [
        moment for moment in story if moment[0] in "57"
    ]
    assert 1 == len(slots.tried)


def test_a_refused_push_parks_and_a_failed_one_is_tried_again(tmp_path: Path) -> None:
    slots = watching(
        tmp_path,
        *("1.md", "2.md"),
        retry_seconds=20.0,
        landings={
            "1.md": [ForgeRefused("the branch is protected")],
            "2.md": [ProcessError("git", "no route"), "proposed"],
        },
    )
    story = short(slots.story(300), "work", "candidate", "landing")
    assert [
        "11: parked 1",
        "12: retry 2",
        "33: proposed 2, idle",
        "100: landed 2, done 2, idle",
    ] == (story)


class TestAfter:
    def test_a_dependent_begins_when_the_pull_request_is_merged(self, tmp_path: Path) -> None:
        slots = watching(
            tmp_path,
            "1.md",
            landings={"1.md": ["proposed"]},
            proposals={"1.md": [(50.0, "merged")]},
        )
        slots.write("2.md", "---\nafter: 1\n---\ntask")
        assert [
            "0: work 1",
            "10: candidate 1, landing 1",
            "11: proposed 1, idle",
            "50: landed 1, done 1, work 2",
        ] == short(slots.story(55))
        assert ("1.md",) == slots.trunk.after[-1]

    def test_one_of_a_parked_item_does_not_begin(self, tmp_path: Path) -> None:
        slots = watching(
            tmp_path,
            "1.md",
            landings={"1.md": ["proposed"]},
            proposals={"1.md": [(50.0, ForgeRefused("it was closed"))]},
        )
        slots.write("2.md", "---\nafter: 1\n---\ntask")
        story = short(slots.story(100))
        assert "50: parked 1, held, idle" == story[-1]


class TestPersons:
    def test_one_is_skipped(self, tmp_path: Path) -> None:
        """Also while nothing is at work; what its pull request becomes is not looked at."""
        command = timer(50).pipe(ops.map(lambda _: ev.SkipAsked(item="1.md")))
        slots = proposing(
            tmp_path, *("1.md", "2.md"), commands=concat(command, never()), journal=True
        )
        story = short(slots.story(200), "work", "candidate", "landing")
        assert [
            "11: proposed 1",
            "12: proposed 2, idle",
            "50: parked 1, idle",
            "100: landed 2, done 2, idle",
        ] == story
        assert ["2.md"] == slots.trunk.landed
        assert 2 == len(slots.tried)

    def test_one_is_skipped_while_others_work(self, tmp_path: Path) -> None:
        command = timer(15).pipe(ops.map(lambda _: ev.SkipAsked(item="1.md")))
        slots = proposing(tmp_path, *("1.md", "2.md"), slots=1, commands=concat(command, never()))
        story = short(slots.story(200))
        assert "15: parked 1" in story
        assert ["2.md"] == slots.trunk.landed
        assert 2 == len(slots.tried)

    @pytest.mark.parametrize("slots", [1, 2])
    def test_one_whose_file_is_removed_is_abandoned(self, tmp_path: Path, slots: int) -> None:
        """At work or idle; its work is kept."""
        made = proposing(
            tmp_path, *("1.md", "2.md"), slots=slots, proposals={"2.md": [(40.0, "merged")]}
        )
        backlog = made.workspace.backlog
        made.at(15, (backlog / "1.md").unlink, backlog)
        seen = made.play(200)
        (kept,) = events(seen, ev.WatchWorkKept)
        assert ("1.md", "refs/cuggino/candidates/1.md") == (kept.filename, kept.ref)
        assert ["2.md"] == made.trunk.landed

    def test_one_that_was_edited_is_worked_on_again_once_it_is_merged(self, tmp_path: Path) -> None:
        """It is kept, like an item that is edited during its landing."""
        slots = proposing(tmp_path, "1.md", proposals={"1.md": [(50.0, "merged")] * 2})
        slots.write("1.md", "another task", when=20)
        seen = slots.play(59)
        assert 1 == len(events(seen, ev.WatchItemRetained))
        assert [("1.md", 1, 1, None), ("1.md", 1, 1, None)] == slots.tried

    def test_a_pause_begins_nothing(self, tmp_path: Path) -> None:
        """A pull request that comes back meanwhile is worked on when the watch goes on."""
        commands = concat(
            timer(30).pipe(ops.map(lambda _: ev.PauseAsked())),
            timer(60).pipe(ops.map(lambda _: ev.ContinueAsked())),
            never(),
        )
        slots = proposing(
            tmp_path,
            "1.md",
            commands=commands,
            proposals={"1.md": [(50.0, "ci"), (200.0, "merged")]},
        )
        story = short(slots.story(300), "idle")
        assert ["50: back 1", "90: work 1", "100: candidate 1, landing 1"] == story[3:6]


WORK = ev.WatchProcessingItem(filename="1.md", slot=2)
END = ev.LoopApproved(iteration=1, item="1.md")
MADE = ev.WatchCandidate(filename="1.md", slot=2, commit="c", base="b", attempt=1)
LANDING = ev.WatchLanding(filename="1.md", commit="c", trunk="t")
OPENED = ev.WatchProposed(
    filename="1.md", number=7, url="u", branch="cuggino/1", commit="h", candidate="c"
)
BACK = ev.WatchSentBack(filename="1.md", reason="ci", output="", returns=1)
LANDED = ev.WatchLanded(filename="1.md", commit="m", trunk_was="t", branch="cuggino/1", url="u")


class TestJournal:
    def test_a_proposed_item_neither_waits_to_land_nor_begins(self, tmp_path: Path) -> None:
        found = left(tmp_path, WORK, END, MADE, LANDING, OPENED)
        work = found.works["1.md"]
        assert (OPENED, None, MADE) == (work.proposed, work.sent_back, work.candidate)
        assert not work.waits_to_land
        assert ((), None) == (found.queue.waiting, found.queue.landing)

    def test_one_that_was_sent_back_is_not_proposed(self, tmp_path: Path) -> None:
        found = left(tmp_path, WORK, END, MADE, LANDING, OPENED, BACK)
        work = found.works["1.md"]
        assert (None, BACK) == (work.proposed, work.sent_back)
        assert {"1.md": 1} == dict(found.queue.returns)

    def test_one_that_was_merged_is_only_put_away(self, tmp_path: Path) -> None:
        assert left(tmp_path, WORK, END, MADE, LANDING, OPENED, LANDED).works["1.md"].has_landed

    def test_another_landing_goes_on_when_a_pull_request_ends(self, tmp_path: Path) -> None:
        """An item that is sent back meanwhile does not end the landing of another."""
        other = ev.WatchSentBack(filename="2.md", reason="ci", returns=1)
        found = left(tmp_path, WORK, END, MADE, LANDING, other)
        assert ("1.md",) == found.queue.waiting

    def test_one_lands_here_when_nothing_is_proposed_any_more(self, tmp_path: Path) -> None:
        """The setting `landOn` was changed between two watches."""
        slots = watching(tmp_path, "1.md", journal=True, is_proposing=False)
        leave_killed(slots, WORK, END, MADE, LANDING, OPENED)
        assert ["0: landing 1", "1: landed 1, done 1, idle"] == short(slots.story(80))

    @pytest.mark.parametrize("ended", [[], [BACK], [LANDED]])
    def test_the_next_watch_goes_on(self, tmp_path: Path, ended: list[Any]) -> None:
        """It waits, works on, or puts away, wherever the one before was killed."""
        slots = proposing(tmp_path, "1.md", journal=True, proposals={"1.md": [(50.0, "merged")]})
        leave_killed(slots, WORK, END, MADE, LANDING, OPENED, *ended)
        story = short(slots.story(80))
        expected = {
            0: ["0: idle", "50: landed 1, done 1, idle"],
            1: [
                "0: work 1",
                "10: candidate 1, landing 1",
                "11: proposed 1, idle",
                "50: landed 1, done 1, idle",
            ],
        }
        assert (["0: done, idle"] if ended == [LANDED] else expected[len(ended)]) == story
        assert 2 == len(list_journals(slots.workspace.journal))


def test_many_at_once(tmp_path: Path) -> None:
    """Twelve pull requests wait, come back and are merged, with two slots."""
    names = [f"{n:03}.md" for n in range(12)]
    proposals = {name: [(50.0 + n, "ci"), (600.0 + n, "merged")] for n, name in enumerate(names)}
    slots = proposing(tmp_path, *names, proposals=proposals)
    slots.play(2000)
    assert sorted(names) == sorted(slots.trunk.landed)
    assert 24 == len(slots.tried)
    assert 2 == slots.most_at_work
