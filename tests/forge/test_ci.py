"""CI of commits, pull requests and branches, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from reactivex import Observable, defer, just, throw

from cuggino.config import PullRequestSettings
from cuggino.domain import Schedule
from cuggino.errors import (
    ConfigError,
    ForgeError,
    ForgeLimited,
    ForgeLoginMissing,
    ForgeRefused,
    ForgeUnreachable,
)
from cuggino.events import CiDone, Event, WaitingEnded, WaitingStarted, WatchForgeWaiting
from cuggino.forge import Ci, Forge, Job, ProjectCi, ci_of, ci_state
from cuggino.forge.model import JobState
from cuggino.forge.patience import Patient
from cuggino.operators import Flow, emit, flow
from cuggino.stages import WaitingPlace, waiting
from cuggino.testing import CiRun, InMemoryForge, Marbles, VirtualClock
from tests.forge.proposed import Proposed
from tests.git_project import isolate_git

STATES: dict[str, JobState] = {"p": "pending", "o": "passed", "f": "failed", "s": "skipped"}


def jobs(drawn: str) -> tuple[Job, ...]:
    """Return one job per letter: pending, `o` for passed, failed, skipped."""
    return tuple(Job(id=str(at), name=one, state=STATES[one]) for at, one in enumerate(drawn))


@pytest.mark.parametrize(
    ("drawn", "state"),
    [("", "none"), ("o", "passed"), ("os", "passed"), ("op", "pending"), ("opf", "failed")],
)
def test_the_state_of_several_jobs(drawn: str, state: str) -> None:
    """A failure decides, then a pending job."""
    assert ci_state(jobs(drawn)) == state


@pytest.mark.parametrize(
    ("polls", "settled"),
    [
        (["a:o"], "1"),
        (["a:p", "a:po", "a:oo"], "001"),
        (["a:f"], "1"),
        (["a:fp", "a:fp"], "01"),
        (["a:p", "a:fp", "b:fp", "b:fp"], "0001"),
        (["a:", "a:", "a:"], "001"),
        (["a:", "a:", "b:", "a:"], "0000"),
        (["a:", "a:", "a:p", "a:"], "0000"),
    ],
)
def test_when_it_is_settled(polls: list[str], settled: str) -> None:
    """Jobs may still appear, and those beside a failed one are waited for during one poll."""
    ci, seen = Ci(), ""
    for poll in polls:
        commit, _, drawn = poll.partition(":")
        ci = ci.after(commit, jobs(drawn))
        seen += str(int(ci.is_settled))
    assert seen == settled


def opened(*ci: CiRun | tuple[CiRun, ...]) -> tuple[Marbles, InMemoryForge]:
    """Return a forge with the pull request 1 of the branch `b`, at the commit `c1`."""
    t = Marbles()
    forge = InMemoryForge(t.clock, ci=ci)
    forge.push("b", "c1")
    opening = forge.open_pull_request(branch="b", target="main", title="T", body="")
    opening.subscribe(scheduler=t.clock)
    return t, forge


def drawn(seen: list[tuple[float, str, Any]]) -> list[tuple[float, object]]:
    """Return what was emitted: the commit and state of CI, with `!` once it is settled."""
    shown: list[tuple[float, object]] = []
    for at, kind, value in seen:
        if isinstance(value, Ci):
            shown.append((at, f"{value.commit} {value.state}{'!' if value.is_settled else ''}"))
        else:
            shown.append((at, type(value).__name__ if value is not None else kind))
    return shown


RED = CiRun(state="failed", takes=60.0)


@pytest.mark.parametrize("of", [1, "c1"], ids=["pull request", "commit"])
@pytest.mark.parametrize(
    ("ci", "expected"),
    [
        ((CiRun(takes=150.0),), [(0, "c1 pending"), (180, "c1 passed!")]),
        ((RED,), [(0, "c1 pending"), (60, "c1 failed!")]),
        (
            ((RED, CiRun(takes="9h")),),
            [(0, "c1 pending"), (60, "c1 failed"), (120, "c1 failed!")],
        ),
        ((), [(0, "c1 none"), (120, "c1 none!")]),
    ],
    ids=["passes", "fails", "fails beside a long job", "has no jobs"],
)
def test_changes_are_emitted(of: int | str, ci: Any, expected: list[Any]) -> None:
    """An unchanged answer emits nothing."""
    t, forge = opened(*ci)
    assert drawn(t.record(ci_of(forge, of), until=600)) == expected


def test_another_push_begins_anew() -> None:
    """The head of a pull request is followed."""
    t, forge = opened(RED, CiRun(takes=90.0))
    forge.at(100, lambda: forge.push("b", "c2"))
    seen = drawn(t.record(ci_of(forge, 1), until=600))
    assert seen[-2:] == [(120, "c2 pending"), (240, "c2 passed!")]


def test_it_ends_with_its_schedule() -> None:
    t, forge = opened(CiRun(takes=600.0))
    seen = t.record(ci_of(forge, 1, schedule=Schedule.constant("10s").times(2)), until=600)
    assert drawn(seen) == [(0, "c1 pending"), (20, "completed")]


def test_an_outage_is_waited_for() -> None:
    t, forge = opened(CiRun(takes=30.0))
    forge.fail("pull_request", ForgeUnreachable("no connection"), times=2)
    seen = drawn(t.record(ci_of(forge, 1), until=70))
    assert seen == [(0, WatchForgeWaiting.__name__)] * 1 + [
        (5, WatchForgeWaiting.__name__),
        (15, "c1 pending"),
    ]


def test_one_that_does_not_exist_is_refused() -> None:
    t, forge = opened()
    ((at, kind, error),) = t.record(ci_of(forge, 99), until=9)
    assert (at, kind, type(error)) == (0, "error", ForgeRefused)


def test_a_disposed_wait_costs_nothing() -> None:
    """Neither a timer nor a call is left."""
    t, forge = opened(CiRun(takes=0.0))
    t.record(ci_of(forge, 1), until=9, dispose_at=5)
    calls = len(forge.calls)
    t.clock.advance_to(t.clock.after("1d"))
    assert len(forge.calls) == calls
    assert t.clock.pending == 0


BRANCH = "cuggino/7"
Make = Callable[..., Proposed]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Proposed]:
    """Make a project whose forge has such CI."""
    isolate_git(monkeypatch, tmp_path / "home")
    return lambda *ci: Proposed(tmp_path, ci=ci)


def pushed(work: Proposed, *, opened: bool = True) -> str:
    """Check out a branch, push it, open its pull request; return its commit."""
    root = work.project.root
    work.git("checkout", "--quiet", "-b", BRANCH, cwd=root)
    work.git("push", "--quiet", "origin", BRANCH, cwd=root)
    if opened:
        opening = work.forge.open_pull_request(
            branch=BRANCH, target="main", title="Add a page", body=""
        )
        work.play(opening)
    return work.git("rev-parse", "HEAD", cwd=root).strip()


def project_ci_of(work: Proposed) -> ProjectCi:
    return ProjectCi(work.project.root, PullRequestSettings(), work.forge)


def awaited(work: Proposed, until: CiDone | None = None, seconds: float = 3600.0) -> WaitingEnded:
    *_, ended = events_of(work, until or CiDone(), seconds)
    assert isinstance(ended, WaitingEnded)
    return ended


def events_of(work: Proposed, until: CiDone, seconds: float = 3600.0) -> list[Event]:
    place = WaitingPlace(folder=work.project.root, ci=project_ci_of(work))
    return work.play(flow(lambda: waiting(until, place)), seconds)


@pytest.mark.parametrize("state", ["passed", "failed"])
def test_the_pull_request_of_the_branch(make: Make, state: Any) -> None:
    """The jobs of the branch's pull request are awaited; the answer names them."""
    work = make(CiRun(state=state, takes=300.0))
    head = pushed(work)
    ended = awaited(work)
    assert isinstance(ended.until, CiDone)
    assert (1, "happened", f"{state} at commit {head[:12]} (test {state})") == (
        ended.until.pull_request,
        ended.outcome,
        ended.answer,
    )
    assert 300 <= ended.waited <= 420


def test_a_commit(make: Make) -> None:
    """A commit is awaited by its hash."""
    work = make(CiRun(takes=60.0))
    head = pushed(work)
    ended = awaited(work, CiDone(commit=head))
    assert f"passed at commit {head[:12]} (test passed)" == ended.answer


def test_without_jobs(make: Make) -> None:
    """A pull request for which no job begins has no CI after three looks."""
    work = make()
    head = pushed(work)
    assert f"commit {head[:12]} has no jobs" == awaited(work).answer


def test_without_a_pull_request(make: Make) -> None:
    """A branch that is not proposed, with a commit that has no job, has no CI."""
    work = make()
    head = pushed(work, opened=False)
    reason = f"{BRANCH} has no open pull request, and commit {head[:12]} no job"
    with pytest.raises(ConfigError, match=reason):
        awaited(work)


def test_a_forge_that_is_down(make: Make) -> None:
    """An outage of the forge is reported and waited for; a refusal ends the wait."""
    work = make(CiRun(takes=60.0))
    pushed(work)
    work.forge.fail("pull_request", ForgeUnreachable("down"), times=7)
    begun, *waits, ended = events_of(work, CiDone(pull_request=1))
    assert isinstance(begun, WaitingStarted)
    assert [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0] == [
        one.retry_in for one in waits if isinstance(one, WatchForgeWaiting)
    ]
    assert isinstance(ended, WaitingEnded)
    assert ("happened", True) == (ended.outcome, ended.answer.startswith("passed"))
    assert ended.waited > 60
    work.forge.fail("pull_request", ForgeRefused("gone", status=404))
    ended = awaited(work, CiDone(pull_request=1))
    assert ("failed", "gone") == (ended.outcome, ended.answer)


FORGE = cast(Forge, SimpleNamespace(host="github.com", repo="o/r"))


class Calls:
    """A call that meets these faults, one after the other, and then succeeds with "done"."""

    def __init__(self, clock: VirtualClock, faults: Iterable[Exception]) -> None:
        self.clock = clock
        self.faults = list(faults)
        self.at: list[float] = []

    def __call__(self) -> Observable[str]:
        def called(_: Any) -> Observable[str]:
            self.at.append(self.clock.elapsed)
            return throw(self.faults.pop(0)) if self.faults else just("done")

        return defer(called)


def repeated(
    *faults: Exception, clock: VirtualClock | None = None
) -> tuple[Calls, list[Any], list[Exception]]:
    clock = clock or VirtualClock()
    calls = Calls(clock, faults)
    seen: list[Any] = []
    errors: list[Exception] = []

    def story() -> Flow[None]:
        yield from emit((yield from Patient(FORGE).get("comment on issue 7", calls)))

    flow(story).subscribe(seen.append, errors.append, scheduler=clock)
    clock.advance_to(clock.at("1d"))
    return calls, seen, errors


def test_a_call_that_succeeds_is_not_repeated() -> None:
    calls, seen, _ = repeated()
    assert calls.at == [0]
    assert seen == ["done"]


def test_an_outage_is_waited_for_ever_longer_up_to_ten_minutes() -> None:
    calls, seen, _ = repeated(*[ForgeUnreachable("no connection")] * 10)
    assert [b - a for a, b in zip(calls.at, calls.at[1:], strict=False)] == (
        [5, 10, 20, 40, 80, 160, 320, 600, 600, 600]
    )
    assert seen[0] == WatchForgeWaiting(
        forge="github.com/o/r",
        doing="comment on issue 7",
        message="no connection",
        retry_in=5,
    )
    assert len(seen) == 11
    assert seen[-1] == "done"


def test_a_limit_is_waited_for_until_its_end() -> None:
    clock = VirtualClock()
    calls, seen, _ = repeated(ForgeLimited("too many", until=clock.at("90s")), clock=clock)
    assert calls.at == [0, 90]
    assert seen[0].retry_in == 90


@pytest.mark.parametrize(("until", "wait"), [("0s", 1), ("5h", 3600)])
def test_the_wait_for_a_limit_is_a_second_to_an_hour(until: str, wait: float) -> None:
    clock = VirtualClock()
    end = clock.at(until) - timedelta(seconds=0 if wait > 1 else 30)
    calls, _, _ = repeated(ForgeLimited("too many", until=end), clock=clock)
    assert calls.at == [0, wait]


def test_a_limit_without_a_known_end_is_waited_for_ever_longer_up_to_an_hour() -> None:
    calls, _, _ = repeated(*[ForgeLimited("too many")] * 8)
    assert [b - a for a, b in zip(calls.at, calls.at[1:], strict=False)] == (
        [60, 120, 240, 480, 960, 1920, 3600, 3600]
    )


def test_a_missing_login_is_reported_once() -> None:
    missing = ForgeLoginMissing("no login", hint="run `gh auth login`")
    calls, seen, _ = repeated(missing, missing, missing)
    assert calls.at == [0, 600, 1200, 1800]
    assert [event.message for event in seen[:-1]] == ["no login; run `gh auth login`"]


def test_another_failure_begins_anew() -> None:
    missing = ForgeLoginMissing("no login")
    down = ForgeUnreachable("down")
    calls, seen, _ = repeated(missing, down, down, missing, down)
    assert calls.at == [0, 600, 605, 615, 1215, 1220]
    assert [event.message for event in seen[:-1]] == [
        *("no login", "down", "down", "no login", "down"),
    ]


@pytest.mark.parametrize("error", [ForgeRefused("not found", status=404), ValueError("a bug")])
def test_what_repeating_would_not_change_is_raised(error: Exception) -> None:
    calls, seen, errors = repeated(error)
    assert calls.at == [0]
    assert (seen, errors) == ([], [error])


def test_a_disposed_wait_leaves_no_timer() -> None:
    clock = VirtualClock()
    calls = Calls(clock, [cast(ForgeError, ForgeUnreachable("down"))] * 3)
    ended = flow(lambda: Patient(FORGE).do("look", calls)).subscribe(scheduler=clock)
    clock.advance_to(clock.at("2s"))
    ended.dispose()
    assert clock.pending == 0
