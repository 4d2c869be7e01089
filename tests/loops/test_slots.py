"""The watch with slots, in virtual time."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from reactivex import never, operators as ops, timer

from cuggino import errors, events as ev
from cuggino.storage import list_journals
from cuggino.storage.focus import BIGGEST
from tests.loops.slot_watching import SlotWatching, leave_killed

SHORT = {
    "WatchProcessingItem": "work",
    "WatchCandidate": "candidate",
    "WatchLanding": "landing",
    "WatchLanded": "landed",
    "WatchSentBack": "back",
    "WatchItemCompleted": "done",
    "WatchItemParked": "parked",
    "WatchItemRetry": "retry",
    "WatchBacklogWaiting": "idle",
    "WatchSpecIssueWaiting": "issue",
    "LoopSpecIssue": "blocked",
    "WatchItemHeld": "held",
}
CRASH = errors.AgentFailed("it crashed", reason="crash")
NAMED = "; its work is in refs/cuggino/candidates/1.md"


def watching(folder: Path, *names: str, **more: Any) -> SlotWatching:
    made = SlotWatching(folder / "p", **more)
    for name in names:
        made.write(name)
    return made


def short(story: list[tuple[Any, ...]], *left_out: str) -> list[str]:
    """Return the story in short, one text for each second."""
    seconds: dict[float, list[str]] = {}
    for when, tag, *item in story:
        word = SHORT.get(tag, tag)
        if tag in SHORT and word not in left_out:
            name = f" {item[0].removesuffix('.md')}" if item and item[0] else ""
            seconds.setdefault(when, []).append(f"{word}{name}")
    return [f"{when:g}: {', '.join(words)}" for when, words in seconds.items()]


def events(seen: list[Any], kind: type) -> list[Any]:
    return [value for _, _, value in seen if isinstance(value, kind)]


def test_three_items_in_two_slots(tmp_path: Path) -> None:
    """A slot is used again at once, and candidates land one after the other."""
    slots = watching(tmp_path, "1.md", "2.md", "3.md")
    assert [
        "0: work 1, work 2",
        "10: candidate 1, landing 1, work 3, candidate 2",
        "11: landed 1, done 1, landing 2",
        "12: landed 2, done 2",
        "20: candidate 3, landing 3",
        "21: landed 3, done 3, idle",
    ] == short(slots.story(60))
    assert [("1.md", 1, 1, None), ("2.md", 2, 1, None), ("3.md", 1, 1, None)] == slots.tried
    assert 2 == slots.most_at_work


class TestSentBack:
    def test_it_begins_and_lands_before_others(self, tmp_path: Path) -> None:
        slots = watching(
            tmp_path, *(f"{n}.md" for n in range(1, 5)), landings={"1.md": ["conflict"]}
        )
        story = short(slots.story(100))
        assert [
            "0: work 1, work 2",
            "10: candidate 1, landing 1, work 3, candidate 2, work 4",
            "11: back 1, landing 2",
            "12: landed 2, done 2",
            "20: candidate 3, landing 3, work 1, candidate 4",
            "21: landed 3, done 3, landing 4",
            "22: landed 4, done 4",
            "30: candidate 1, landing 1",
            "31: landed 1, done 1, idle",
        ] == story
        name, slot, number, returned = slots.tried[-1]
        assert ("1.md", 1, 2) == (name, slot, number)
        assert returned is not None
        assert ("1.md-1", "conflict", 1) == (
            returned.candidate.commit,
            returned.sent_back.reason,
            returned.sent_back.returns,
        )

    @pytest.mark.parametrize("outcome", ["spec_issue", errors.AgentFailed("x", reason="crash")])
    def test_an_item_that_cannot_return_keeps_no_other_waiting(
        self, tmp_path: Path, outcome: Any
    ) -> None:
        """Sent back twice, it waits for a person or for its next attempt; others land."""
        slots = watching(
            tmp_path,
            *("1.md", "2.md"),
            attempts={
                "1.md": [(10.0, "candidate"), (10.0, "candidate"), (10.0, outcome)],
                "2.md": [(25.0, "candidate")],
            },
            landings={"1.md": ["check", "check"]},
            max_attempts=5,
            retry_seconds=600,
        )
        story = short(slots.story(100))
        assert "25: candidate 2" in story, "1 has the queue to itself"
        assert any(moment.startswith("32: ") and "landing 2" in moment for moment in story)
        assert ["2.md"] == slots.trunk.landed

    def test_its_next_attempt_says_how_often(self, tmp_path: Path) -> None:
        """For screens of a resumed watch, which have not seen it."""
        slots = watching(tmp_path, "1.md", landings={"1.md": ["check", "check"]})
        begun = events(slots.play(100), ev.WatchProcessingItem)
        assert [0, 1, 2] == [event.returns for event in begun]

    @pytest.mark.parametrize(
        ("attempts", "landings", "numbers", "reason"),
        [
            (
                [],
                ["check"] * 9,
                [1, 2, 3],
                "the check command fails at the gate in the same way 3 times, although agents "
                f"worked on it: no{NAMED}",
            ),
            (
                [(10.0, "candidate"), *[(10.0, CRASH)] * 2],
                ["check"],
                [1, 2, 2],
                f"it crashed{NAMED}",
            ),
            ([(10.0, "candidate")], [CRASH, CRASH], [1], f"it crashed{NAMED}"),
            ([(10.0, CRASH)] * 2, [], [1, 1], "it crashed"),
        ],
    )
    def test_it_is_parked_with_its_work(
        self,
        tmp_path: Path,
        attempts: list[Any],
        landings: list[Any],
        numbers: list[int],
        reason: str,
    ) -> None:
        """The reason names the ref of its work, even after failures, unless there is none."""
        slots = watching(
            tmp_path,
            "1.md",
            attempts={"1.md": attempts},
            landings={"1.md": landings},
            max_attempts=2 if attempts else 3,
        )
        (parked,) = events(slots.play(500), ev.WatchItemParked)
        assert reason == parked.reason
        assert numbers == [number for _, _, number, _ in slots.tried]

    def test_unapproved_work_does_not_land(self, tmp_path: Path) -> None:
        """Its item is parked with the reason and its work; others go on."""
        slots = watching(
            tmp_path, "1.md", "2.md", attempts={"1.md": [(5.0, "max_iterations")]}, max_attempts=3
        )
        seen = slots.play(100)
        (parked,) = events(seen, ev.WatchItemParked)
        assert (
            "1.md",
            "not approved within 3 iterations; its work is in refs/cuggino/candidates/1.md",
        ) == (parked.filename, parked.reason)
        assert ["2.md"] == slots.trunk.landed
        assert ["1.md", "2.md"] == [name for name, *_ in slots.tried]

    @pytest.mark.parametrize("recorded", [True, False])
    def test_unapproved_work_of_a_killed_watch(self, tmp_path: Path, recorded: bool) -> None:
        """It does not land either, also if the version of that watch did not record it."""
        slots = watching(tmp_path, "1.md", journal=True)
        end = ev.LoopMaxIterations(iteration=3, max_iterations=3, item="1.md")
        made = ev.WatchCandidate(
            filename="1.md", slot=1, commit="c", base="b", attempt=1, approved=not recorded
        )
        leave_killed(slots, ev.WatchProcessingItem(filename="1.md", slot=1), end, made)
        assert ["0: parked, idle"] == short(slots.story(100))
        assert [] == slots.trunk.landed

    def test_a_parked_item_that_comes_back_begins_anew(self, tmp_path: Path) -> None:
        slots = watching(tmp_path, "1.md", landings={"1.md": [CRASH]}, max_attempts=1)
        slots.write("1.md", when=50)
        assert ["0: work 1", "80: work 1"] == [
            moment for moment in short(slots.story(100)) if "work" in moment
        ]

    def test_an_edited_item_begins_anew(self, tmp_path: Path) -> None:
        """An edited item starts over: work on the old text does not count for the new one."""
        slots = watching(
            tmp_path, "1.md", "2.md", "3.md", landings={"1.md": ["conflict"]}, landing=5
        )
        slots.write("1.md", "another task", when=12)
        slots.play(100)
        assert ["1.md", 1, None] == [slots.tried[-1][0], *slots.tried[-1][2:]]


def test_all_that_is_at_work_is_signaled_before_any_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Disposal takes as long as the slowest agent or check, not as long as all of them."""
    slots = watching(tmp_path, "1.md", "2.md", "3.md", slots=3, landing=50)
    slots.attempts["3.md"] = [(5.0, "candidate")]
    signaled: list[tuple[Path, list[str], int]] = []

    def signal(folder: Path) -> None:
        signaled.append((folder, list(slots.disposed), slots.trunk.running))

    monkeypatch.setattr("cuggino.loops.watch.slots.interrupt_processes", signal)
    slots.t.record(slots.stream, until=9, dispose_at=8)
    assert ["1.md", "2.md"] == sorted(slots.disposed)
    assert (tmp_path / "slots", [], 1) == signaled[0]


class TestFailures:
    def test_one_ends_no_other(self, tmp_path: Path) -> None:
        failure = errors.LoopError("implementing", "it crashed")
        slots = watching(tmp_path, "1.md", "2.md", attempts={"1.md": [(3, failure)]})
        assert [
            "0: work 1, work 2",
            "3: retry 1",
            "10: candidate 2, landing 2",
            "11: landed 2, done 2",
            "63: work 1",
            "73: candidate 1, landing 1",
            "74: landed 1, done 1, idle",
        ] == short(slots.story(100))

    def test_a_usage_limit_stops_all(self, tmp_path: Path) -> None:
        """Those at work go on; nothing begins until one of them was served."""
        limit = errors.QuotaExceeded("no usage left", resets_at=None)
        slots = watching(tmp_path, "1.md", "2.md", "3.md", attempts={"1.md": [(3, limit)]})
        story = short(slots.story(1000))
        assert ["0: work 1, work 2", "3: retry 1"] == story[:2]
        assert ["10: candidate 2, work 1, landing 2, work 3"] == story[2:3]

    def test_a_spent_budget_ends_all(self, tmp_path: Path) -> None:
        spent = errors.LoopError("implementing", "budget", cause=errors.BudgetExceeded("9 of 8"))
        slots = watching(tmp_path, "1.md", "2.md", attempts={"1.md": [(3, spent)]})
        assert slots.story(100)[-1][1].startswith("LoopError")
        assert ["2.md"] == slots.disposed

    def test_a_slot_that_cannot_be_written(self, tmp_path: Path) -> None:
        """The item waits for a minute, uncounted, also if git reports the full disk."""
        said = "fatal: unable to write loose object file: No space left on device"
        for number, full in enumerate(
            (errors.StorageError("write", "no space left"), errors.ProcessError("git", said))
        ):
            folder = tmp_path / str(number)
            slots = watching(folder, "1.md", "2.md", attempts={"1.md": [(3, full)]})
            (retry,) = events(slots.play(30), ev.WatchItemRetry)
            assert not retry.counted
            assert 60 == retry.retry_in
            assert ["2.md"] == slots.trunk.landed[:1]

    def test_items_that_meet_the_same_limit_wait_for_it_once(self, tmp_path: Path) -> None:
        """The pause does not grow with the number of slots."""
        limit = errors.LoopError("p", "limit", cause=errors.QuotaExceeded("limit"))
        limited: Any = {f"{n}.md": [(n, limit)] for n in (1, 2, 3)}
        slots = watching(tmp_path, "1.md", "2.md", "3.md", slots=3, attempts=limited)
        retries = events(slots.play(30), ev.WatchItemRetry)
        assert [900, 899, 898] == [retry.retry_in for retry in retries]

    def test_an_item_that_no_prompt_can_hold(self, tmp_path: Path) -> None:
        """Its attempts are counted, and no other item waits for it."""
        slots = watching(tmp_path, "2.md", "3.md", slots=1, max_attempts=1)
        slots.write("1.md", "x" * (BIGGEST + 1))
        assert [
            "0: work 1, parked 1, work 2",
            "10: candidate 2, landing 2, work 3",
        ] == short(slots.story(12))[:2]

    def test_fewer_slots_after_an_overload(self, tmp_path: Path) -> None:
        busy = errors.LoopError("p", "529", cause=errors.AgentFailed("529", reason="overloaded"))
        names = [f"{n}.md" for n in range(1, 9)]
        slots = watching(tmp_path, *names, slots=4, attempts={"1.md": [(3, busy)]})
        changed = events(slots.play(40), ev.WatchSlotsChanged)
        assert [(2, 4), (3, 4), (4, 4)] == [(one.active, one.slots) for one in changed][:3]


class TestSpecIssues:
    def test_one_stops_its_item_and_those_after_it(self, tmp_path: Path) -> None:
        slots = watching(tmp_path, "1.md", "3.md", attempts={"1.md": [(3, "spec_issue")]})
        slots.write("2.md", "---\nafter: 1.md\n---\ntask")
        story = slots.story(100)
        assert [
            "0: work 1, work 3",
            "3: blocked 1",
            "10: candidate 3, landing 3",
            "11: landed 3, done 3, issue",
        ] == short(story, "held")
        assert 2 == sum(tag == "WatchItemHeld" for _, tag, *_ in story)

    def test_its_item_is_run_again_when_it_is_resolved(self, tmp_path: Path) -> None:
        slots = watching(tmp_path, "1.md", attempts={"1.md": [(3, "spec_issue")]}, settle_seconds=5)
        issues = slots.workspace.spec_issues
        slots.at(50, lambda: [path.rename(tmp_path / "x") for path in issues.iterdir()], issues)
        story = short(slots.story(100), "held")
        assert ["0: work 1", "3: blocked 1, issue", "55: work 1"] == story[:3]

    def test_one_that_no_item_has_written_stops_nothing(self, tmp_path: Path) -> None:
        slots = watching(tmp_path, "1.md")
        slots.workspace.write_spec_issue("unclear")
        assert "11: landed 1, done 1, issue" == short(slots.story(100))[-1]


class TestAfter:
    def test_an_item_waits_until_another_has_landed(self, tmp_path: Path) -> None:
        slots = watching(tmp_path, "2.md")
        slots.write("1.md", "---\nafter: [2]\n---\ntask")
        assert [
            "0: work 2",
            "10: candidate 2, landing 2",
            "11: landed 2, done 2, work 1",
            "21: candidate 1, landing 1",
            "22: landed 1, done 1, idle",
        ] == short(slots.story(100))
        assert [(), ("2.md",)] == slots.trunk.after, "it builds on that one's work"

    def test_circles_and_unknown_names_are_reported_once(self, tmp_path: Path) -> None:
        slots = watching(tmp_path, "4.md")
        slots.write("1.md", "---\nafter: 2.md\n---\ntask")
        slots.write("2.md", "---\nafter: 1.md\n---\ntask")
        slots.write("3.md", "---\nafter: nothing.md\n---\ntask")
        held = events(slots.play(100), ev.WatchItemHeld)
        assert ["1.md", "2.md", "3.md"] == [one.filename for one in held]
        assert "nothing.md" in held[2].reason
        assert ["4.md"] == slots.trunk.landed


class TestFollow:
    def test_one_that_is_delayed_is_tried_again(self, tmp_path: Path) -> None:
        """A delay is reported once for each reason."""
        slots = watching(tmp_path, "1.md")
        delayed = ev.WatchFollowDelayed(branch="main", commit="c", reason="dirty", paths=("a",))
        slots.trunk.follows = [delayed]
        slots.at(
            60,
            lambda: setattr(slots.trunk, "follows", [ev.WatchFollowed(branch="main", commit="c")]),
        )
        seen = slots.play(200)
        assert [delayed] == events(seen, ev.WatchFollowDelayed)
        assert [71.0] == [when for when, _, value in seen if isinstance(value, ev.WatchFollowed)]

    @pytest.mark.parametrize("at", [14, 31])
    def test_it_is_tried_again_when_the_user_has_changed_something(
        self, tmp_path: Path, at: float
    ) -> None:
        """At once, whether items are at work or not; nothing is watched otherwise."""
        slots = watching(tmp_path, "1.md", "2.md", attempts={"2.md": [(20, "candidate")]})
        delayed = ev.WatchFollowDelayed(branch="main", commit="c", reason="dirty")
        slots.at(1, lambda: setattr(slots.trunk, "follows", [delayed]))
        watched: list[int] = []

        def change() -> None:
            watched.append(slots.trunk.watched)
            slots.trunk.follows = [ev.WatchFollowed(branch="main", commit="c")]
            slots.trunk.owner.on_next("changed")
            slots.trunk.follows = []

        slots.at(5, lambda: watched.append(slots.trunk.watched))
        slots.at(at, change)
        slots.at(35, lambda: watched.append(slots.trunk.watched))
        seen = slots.play(60)
        assert [at] == [when for when, _, value in seen if isinstance(value, ev.WatchFollowed)]
        assert [0, 1, 0] == watched

    def test_a_change_during_a_landing_waits_for_its_end(self, tmp_path: Path) -> None:
        slots = watching(
            tmp_path, "1.md", "2.md", attempts={"2.md": [(10, "candidate")]}, landing=10
        )
        slots.trunk.landings["2.md"] = ["check"]
        slots.trunk.follows = [ev.WatchFollowDelayed(branch="main", commit="c", reason="dirty")]

        def change() -> None:
            slots.trunk.follows = [ev.WatchFollowed(branch="main", commit="c")]
            slots.trunk.owner.on_next("changed")

        slots.at(25, change)
        seen = slots.play(35)
        assert [30.0] == [when for when, _, value in seen if isinstance(value, ev.WatchFollowed)]

    def test_a_landing_lasts_until_the_branch_has_followed(self, tmp_path: Path) -> None:
        """A candidate that arrives meanwhile waits, and lands once."""
        slots = watching(
            tmp_path,
            *("1.md", "2.md", "3.md"),
            slots=3,
            attempts={"2.md": [(13, "candidate")], "3.md": [(16, "candidate")]},
        )
        slots.trunk.follow_seconds = 4
        story = short(slots.story(100), "work")
        assert [
            "14: candidate 1, landing 1",
            "15: landed 1, done 1",
            "17: candidate 2",
            "19: landing 2",
            "20: candidate 3, landed 2, done 2",
            "24: landing 3",
            "25: landed 3, done 3",
            "29: idle",
        ] == story
        assert ["1.md", "2.md", "3.md"] == slots.trunk.landed


def test_the_audit_runs_only_when_nothing_works(tmp_path: Path) -> None:
    slots = watching(tmp_path, "1.md", audits=[never()], settle_seconds=5)
    slots.write("2.md", when=20)
    audits = [(when, tag) for when, tag, _ in slots.story(30) if "Audit" in tag]
    assert [(11.0, "WatchAuditStarted"), (25.0, "WatchAuditInterrupted")] == audits


def test_an_item_removed_while_it_waits_does_not_land(tmp_path: Path) -> None:
    slots = watching(tmp_path, "1.md", "2.md", landing=5)
    gone = slots.workspace.backlog / "2.md"
    slots.at(12, lambda: gone.rename(tmp_path / "2.md"))
    (kept,) = events(slots.play(100), ev.WatchWorkKept)
    assert ("2.md", "refs/cuggino/candidates/2.md") == (kept.filename, kept.ref)
    assert ["1.md"] == slots.trunk.landed


@pytest.mark.parametrize(
    ("when", "landing"),
    [(5, "landed"), (12, CRASH), (16, "conflict")],
    ids=["at work", "to be tried again", "sent back"],
)
def test_an_item_removed_before_it_is_queued(
    tmp_path: Path, when: float, landing: str | Exception
) -> None:
    """Its work is kept, and no view waits for its landing until the watch ends."""
    names = ("1.md", "2.md", "3.md")
    slots = watching(tmp_path, *names, landings={"1.md": [landing]}, landing=5, settle_seconds=1)
    gone = slots.workspace.backlog / "1.md"
    slots.at(when, lambda: gone.rename(tmp_path / "1.md"))
    seen = slots.play(200)
    (kept,) = events(seen, ev.WatchWorkKept)
    assert ("1.md", "1.md", "refs/cuggino/candidates/1.md") == (kept.item, kept.filename, kept.ref)
    assert ["2.md", "3.md"] == slots.trunk.landed
    assert isinstance(seen[-1][2], ev.WatchBacklogWaiting)


class TestControl:
    def commanded(self, folder: Path, when: float, command: Any, *names: str, **more: Any) -> Any:
        commands = timer(when).pipe(ops.map(lambda _: command), ops.concat(never()))
        return watching(folder, *names, commands=commands, **more)

    def test_one_item_is_skipped(self, tmp_path: Path) -> None:
        slots = self.commanded(tmp_path, 3, ev.SkipAsked(item="2.md"), "1.md", "2.md")
        assert [
            "0: work 1, work 2",
            "3: parked 2",
            "10: candidate 1, landing 1",
            "11: landed 1, done 1, idle",
        ] == short(slots.story(30))
        assert ["2.md"] == slots.disposed

    def test_one_that_waits_to_land_is_skipped(self, tmp_path: Path) -> None:
        """It leaves the queue, and its reason names its work."""
        command = ev.SkipAsked(item="2.md")
        slots = self.commanded(tmp_path, 15, command, "1.md", "2.md", landing=20, journal=True)
        seen = slots.play(60)
        tags = [value.tag for when, _, value in seen if when == 15.0]
        assert ["SkipAsked", "WatchItemParked"] == tags
        (parked,) = events(seen, ev.WatchItemParked)
        assert ("2.md", "skipped by a person; its work is in refs/cuggino/candidates/2.md") == (
            parked.item,
            parked.reason,
        )
        assert ["1.md"] == slots.trunk.landed
        recorded = list_journals(slots.workspace.journal)[0].read_text()
        assert parked.reason in recorded

    def test_one_that_was_sent_back_is_skipped(self, tmp_path: Path) -> None:
        """Also while it waits for its next attempt, and nothing else is at work."""
        slots = self.commanded(
            tmp_path,
            50,
            ev.SkipAsked(item="1.md"),
            "1.md",
            attempts={"1.md": [(10.0, "candidate"), (10.0, CRASH)]},
            landings={"1.md": ["check"]},
        )
        assert ["0: work 1", "50: parked 1"] == [
            moment for moment in short(slots.story(600), "idle") if moment[0] in "05"
        ]

    def test_a_paused_watch_skips_what_waits(self, tmp_path: Path) -> None:
        commands = timer(3).pipe(
            ops.map(lambda _: ev.PauseAsked()),
            ops.concat(
                timer(17).pipe(ops.map(lambda _: ev.SkipAsked(item="2.md"))),
                timer(10).pipe(ops.map(lambda _: ev.ContinueAsked())),
                never(),
            ),
        )
        slots = watching(tmp_path, "1.md", "2.md", commands=commands, landing=4)
        slots.attempts = {name: [(2.0, "candidate")] for name in ("1.md", "2.md")}
        assert "20: parked 2" in short(slots.story(60))
        assert ["1.md"] == slots.trunk.landed

    def test_a_landing_is_not_cut_short(self, tmp_path: Path) -> None:
        slots = self.commanded(tmp_path, 15, ev.SkipAsked(item="1.md"), "1.md", landing=20)
        (ignored,) = events(slots.play(60), ev.ControlIgnored)
        assert "1.md is being landed" == ignored.reason
        assert ["1.md"] == slots.trunk.landed

    def test_one_that_cannot_be_moved_is_not_lost(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slots = self.commanded(tmp_path, 15, ev.SkipAsked(item="2.md"), "1.md", "2.md", landing=20)

        def full(*_: object) -> None:
            raise errors.StorageError("park", "no space left on device")

        monkeypatch.setattr("cuggino.storage.Backlog.park", full)
        (ignored,) = events(slots.play(100), ev.ControlIgnored)
        assert "no space left on device" in ignored.reason
        assert ["1.md", "2.md"] == slots.trunk.landed

    @pytest.mark.parametrize("command", [ev.SkipAsked(), ev.SteerAsked(text="use flask")])
    def test_an_item_must_be_named(self, tmp_path: Path, command: Any) -> None:
        slots = self.commanded(tmp_path, 3, command, "1.md", "2.md")
        (ignored,) = [v for _, _, v in slots.play(30) if v is not None and "Ignored" in v.tag]
        assert "name one of the items at work: 1.md, 2.md" == ignored.reason

    def test_the_only_one_need_not_be_named(self, tmp_path: Path) -> None:
        slots = self.commanded(tmp_path, 3, ev.SkipAsked(), "1.md")
        assert "3: parked 1, idle" == short(slots.story(30))[-1]

    def test_a_stop_lets_all_end_their_stages(self, tmp_path: Path) -> None:
        """Finished work lands; nothing new begins."""
        slots = self.commanded(
            tmp_path,
            3,
            ev.StopAsked(),
            "1.md",
            "2.md",
            "3.md",
            attempts={"2.md": [(20.0, "candidate")]},
        )
        story = slots.story(60)
        assert ["0: work 1, work 2"] == short(story)
        assert (20.0, "Interrupted: stopped after the stage") == story[-1]

    def test_a_stop_at_once(self, tmp_path: Path) -> None:
        slots = self.commanded(tmp_path, 3, ev.StopAsked(now=True), "1.md", "2.md")
        story = slots.story(60)
        assert 3.0 == story[-1][0]
        assert ["1.md", "2.md"] == sorted(slots.disposed)

    def test_a_pause_holds_all(self, tmp_path: Path) -> None:
        commands = timer(3).pipe(
            ops.map(lambda _: ev.PauseAsked()),
            ops.concat(timer(47).pipe(ops.map(lambda _: ev.ContinueAsked())), never()),
        )
        slots = watching(tmp_path, "1.md", "2.md", "3.md", commands=commands)
        story = short(slots.story(100))
        assert ["0: work 1, work 2", "50: candidate 1, landing 1, work 3, candidate 2"] == story[:2]

    def test_hours_hold_all(self, tmp_path: Path) -> None:
        """Outside of them nothing begins or lands; an item whose time has come begins beside."""
        hours = ["0:00-0:01 UTC", "0:10-1 UTC"]
        slots = watching(tmp_path, "1.md", "2.md", "3.md", hours=hours)
        slots.attempts |= {"1.md": [(70, "candidate")], "3.md": [(900, "candidate")]}
        slots.write("5.md", "---\nafter: 1970-01-01 00:20 UTC\n---\ntask")
        story = short(slots.story(1300), "held")
        assert ["0: work 1, work 2", "10: candidate 2, landing 2, work 3"] == story[:2]
        assert ["600: candidate 1, landing 1", "1200: work 5"] == [
            text for text in story if text.startswith(("600", "1200"))
        ]


@pytest.mark.real_agent
def test_many_items(tmp_path: Path) -> None:
    names = [f"{n:04}.md" for n in range(300)]
    slots = watching(tmp_path, *names, slots=16)
    slots.play(1e5)
    assert names == sorted(slots.trunk.landed)
    assert 16 == slots.most_at_work


def test_a_watch_removes_what_a_killed_one_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of a killed sandbox probe is removed too, whatever the agents write."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / "cuggino-session-trial-abc"
    (left / "x").mkdir(parents=True)
    os.utime(left, (1e9, 1e9))
    watching(tmp_path, "1.md").play(15)
    assert not left.exists()


class TestMessages:
    """Messages to one of several items."""

    def steered(self, folder: Path, **more: Any) -> SlotWatching:
        commands = timer(3).pipe(
            ops.map(lambda _: ev.SteerAsked(text="use flask", item="3.md")), ops.concat(never())
        )
        return watching(folder, "1.md", "2.md", "3.md", commands=commands, **more)

    def test_one_to_an_item_that_waits_is_kept(self, tmp_path: Path) -> None:
        """Its first agent gets the message."""
        slots = self.steered(tmp_path)
        seen = slots.play(15)
        assert [] == [value for _, _, value in seen if isinstance(value, ev.ControlIgnored)]
        assert [("3.md", ["use flask"])] == slots.told

    def test_one_that_nobody_was_told_is_not_lost_silently(self, tmp_path: Path) -> None:
        slots = self.steered(tmp_path)
        (ignored,) = events(slots.play(60), ev.ControlIgnored)
        assert ("steer", "3.md") == (ignored.source, ignored.item)
        assert "message not delivered, 3.md has ended: use flask" == ignored.reason
