"""The rows of `cuggino top`, without a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.runs import LastRun, ProjectStatus, RunState, Waiting
from cuggino.storage import LockOwner
from cuggino_cli.screen.columns import width
from cuggino_cli.screen.fragments import paint
from cuggino_cli.top.rows import advice, rows, subjects, summary

AT = datetime(2026, 11, 23, 7, tzinfo=UTC)
NOW = AT + timedelta(seconds=72)
ISSUE = Waiting(kind="spec-issue", name="i.md", title="PDF or\x1b[2J HTML?", hint="")
PARKED = Waiting(kind="parked", name="4.md", title="out of iterations", hint="")


def run_of(
    name: str,
    *events: ev.Event,
    waiting: Sequence[Waiting] = (),
    kind: str = "run",
    slots: int = 1,
) -> ProjectStatus:
    """Return a project where a run has recorded these events."""
    started = ev.RunStarted.model_validate(
        {
            "run_id": "1",
            "kind": kind,
            "command": "c",
            "focus": "add a login page",
            "options": {"slots": slots},
        }
    )
    state = RunState()
    for event in (started, *events):
        state = state.add(event, at=AT)
    return ProjectStatus(
        folder=Path("/home/me") / name,
        at=AT,
        owner=LockOwner(pid=7, since=AT, command=f"cuggino {kind}"),
        activity=state,
        waiting=tuple(waiting),
    )


def ended(name: str, *, message: str = "", resume: str | None = None) -> ProjectStatus:
    """Return a project whose last run has failed."""
    started = ev.RunStarted(run_id="1", kind="run", command="c", focus="the export")
    last = LastRun(
        run_id="1",
        state="failed",
        at=AT,
        started=started,
        activity=RunState().add(started, at=AT),
        message=message,
        resume=resume,
    )
    return ProjectStatus(folder=Path("/home/me") / name, at=AT, last=last)


def item(number: int, title: str) -> list[ev.Event]:
    name = f"{number}.md"
    return [
        ev.WatchProcessingItem(filename=name, title=title, position=number, total=3, slot=number),
        ev.IterationStart(iteration=1, max_iterations=3).of_item(name),
        ev.ImplementingStart(iteration=1).of_item(name),
    ]


WORK: list[ev.Event] = [
    ev.IterationStart(iteration=2, max_iterations=3),
    ev.SessionEnded(outcome="completed", cost_usd=0.84),
    ev.ReviewingStart(iteration=2),
    ev.ToolCall(name="Bash", input={"command": "make -C /home/me/blog test"}, id="t"),
]
ASKED: list[ev.Event] = [
    ev.WatchProcessingItem(filename="1.md"),
    ev.LoopSpecIssue(iteration=1, filename="i.md", content="PDF?"),
    ev.WatchSpecIssueWaiting(),
]
WATCH = run_of("shop", *item(1, "Login page"), *item(2, "Search 検索"), kind="watch", slots=2)
ALL = [
    ended("notes", resume="cuggino run --resume 1"),
    run_of("blog", *WORK, waiting=[ISSUE, PARKED]),
    WATCH,
]


def shown(statuses: Sequence[ProjectStatus], columns: int) -> list[str]:
    lines = [paint(row, color=False) for row in rows(statuses, NOW, columns)]
    assert all(width(line) < columns for line in lines), lines
    return [line.rstrip() for line in lines]


def test_at_80_columns() -> None:
    """Projects at work come first, and a project is named in its first row only."""
    at = f"{AT.astimezone():%H:%M}"
    assert [
        "  PROJECT  RUN                 STAGE          NOW                   TIME   COST",
        "  blog     add a login page    2/3 review     1m 12s ▶ Bash m...  1m 12s  $0.84",
        "           ? PDF or␛[2J HTML?  asks you       a answers it",
        "           ! 4.md              parked         out of iterations",
        "  shop     watch: 1 waiting    2 at work                          1m 12s",
        "           Login page          1/3 implement  1m 12s …            1m 12s",
        "           Search 検索         1/3 implement  1m 12s …            1m 12s",
        f"  notes    the export          failed         {at}: resume i...      0s",
    ] == shown(ALL, 80)


def test_at_40_columns() -> None:
    """In a narrow terminal there is no room for tools and costs."""
    assert [
        "  PROJECT RUN          STAGE       TIME",
        "  blog    add a log... review    1m 12s",
        "          ? PDF or␛... asks you",
        "          ! 4.md       parked",
        "  shop    watch: 1 ... 2 at work 1m 12s",
        "          Login page   implement 1m 12s",
        "          Search 検索  implement 1m 12s",
        "  notes   the export   failed        0s",
    ] == shown(ALL, 40)


@pytest.mark.parametrize("columns", [1, 8, 20, 30, 59, 60, 61, 120, 300])
def test_every_width(columns: int) -> None:
    """No row reaches the last column, at any width."""
    assert len(subjects(ALL)) + 1 == len(shown(ALL, columns))


def test_no_control_characters() -> None:
    """Without color nothing but text is printed, whatever a title holds; a mark selects a row."""
    key = subjects(ALL)[1].key
    lines = [paint(row, color=False) for row in rows(ALL, NOW, 80, key)]
    assert all(line.isprintable() for line in lines)
    assert [2] == [place for place, line in enumerate(lines) if line.startswith("> ")]


@pytest.mark.parametrize(
    ("status", "stage", "doing"),
    [
        (run_of("a", *WORK, ev.PauseAsked()), "pausing", "Bash"),
        (run_of("a", *WORK, ev.PauseAsked(), ev.RunPaused()), "paused", "p goes on"),
        (run_of("a", *WORK, ev.RunPaused(until=AT)), "waits", "⏳ hours: until "),
        (run_of("a", *WORK, ev.StopAsked()), "stopping", "Bash"),
        (run_of("a", ev.WatchBacklogWaiting()), "waits for work", ""),
        (run_of("a", *ASKED, kind="watch", waiting=[ISSUE]), "waits for you", "Answer: PDF?"),
        (run_of("a", *ASKED, kind="watch"), "resumes soon", ""),
        (
            run_of("a", *item(1, "Login"), ev.StopAsked(), kind="watch", slots=2),
            "stopping  ",
            "",
        ),
        (ended("a", message="the check failed"), "failed", "the check failed"),
        (ended("a", resume="cuggino run --resume 1"), "failed", "resume it: cuggino run"),
        (ProjectStatus(folder=Path("/a"), at=AT, problem="no access"), "no run yet", "no access"),
        (
            ProjectStatus(folder=Path("/a"), at=AT, owner=LockOwner(pid=7)),
            "works",
            "it writes no journal",
        ),
    ],
)
def test_states(status: ProjectStatus, stage: str, doing: str) -> None:
    """Each state has a word, and says what it waits for or what to do."""
    line = shown([status], 200)[1]
    assert stage in line
    assert doing in line


def test_projects_of_one_name() -> None:
    """Folders of the same name are told apart by the ones above them."""
    twins = [
        ProjectStatus(folder=Path(f"/home/{user}/app"), at=AT, owner=LockOwner(pid=7))
        for user in ("ann", "bob")
    ]
    assert ["ann/app", "bob/app"] == [line.split()[0] for line in shown(twins, 80)[1:]]


def test_many_that_wait() -> None:
    """The first questions of a project have rows, and the number of the others is shown."""
    many = [Waiting(kind="spec-issue", name=f"{n}.md", title="?", hint="") for n in range(9)]
    lines = shown([run_of("a", *WORK, waiting=many)], 80)
    assert 5 == sum("asks you" in line for line in lines)
    assert "and 4 more" in lines[-1]


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([], "nothing at work"),
        (ALL, "3 at work · 2 wait for you · $0.84"),
        ([ended("a")], "nothing at work"),
    ],
)
def test_summary(statuses: Sequence[ProjectStatus], expected: str) -> None:
    """The line above the rows counts what is at work, what waits, and its cost."""
    assert expected == summary(statuses)


def test_advice_says_what_to_do_next() -> None:
    """Where nothing runs, a line below the rows says how to begin."""
    assert "No project has run here yet" in advice([])
    assert "Nothing runs" in advice([ended("a")])
    assert "Answer what waits" in advice(
        [ProjectStatus(folder=Path("/a"), at=AT, waiting=(ISSUE,))]
    )
    assert "" == advice(ALL)
