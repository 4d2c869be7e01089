"""cuggino top: its rows and keys, without a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest

from cuggino import events as ev
from cuggino.runs import LastRun, ProjectStatus, RunState, Waiting
from cuggino.storage import LockOwner
from cuggino_cli.screen.columns import width
from cuggino_cli.screen.fragments import paint
from cuggino_cli.top.keys import (
    Act,
    Answer,
    Close,
    LookIn,
    Quit,
    Send,
    View,
    followed,
    key_text,
    prompt_text,
    step,
)
from cuggino_cli.top.rows import Key, Subject, advice, rows, subjects, summary

AT = datetime(2026, 11, 23, 7, tzinfo=UTC)
NOW = AT + timedelta(seconds=72)
ISSUE = Waiting(kind="spec-issue", name="i.md", title="PDF or\x1b[2J HTML?", hint="")
PARKED = Waiting(kind="parked", name="4.md", title="out of iterations", hint="")


def run_of(
    name: str, *events: ev.Event, waiting: Sequence[Waiting] = (), kind: str = "run", slots: int = 1
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


ABOUT = subjects(ALL)
BLOG, QUESTION, PARKED_ROW, SHOP, LOGIN, SEARCH, NOTES = (subject.key for subject in ABOUT)


def pressed(
    *keys: str, view: View | None = None, about: Sequence[Subject] = ABOUT, text: str = ""
) -> tuple[View, Act | None]:
    """Return the view after these keys, and what the last one asks for."""
    act: Act | None = None
    view = view or View()
    for key in keys:
        view, act = step(view, key, about, text=text, page=3)
    return view, act


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ((), 0),
        (("down",), 1),
        (("j", "j", "k"), 1),
        (("up",), 0),
        (("end",), 6),
        (("end", "down"), 6),
        (("end", "home"), 0),
        (("pagedown",), 3),
        (("end", "pageup"), 3),
    ],
)
def test_rows_are_chosen(keys: Sequence[str], place: int) -> None:
    """The keys move the selection, which stays within the rows."""
    view, act = pressed("?", *keys)
    assert (ABOUT[place].key, None) == (view.selected, act)


def test_the_selection_follows_its_row() -> None:
    """A row keeps the selection where it moves to; after its end its project has it."""
    view = View(selected=LOGIN)
    assert LOGIN == followed(view, ABOUT[::-1]).selected
    assert SHOP == followed(view, [one for one in ABOUT if one.key != LOGIN]).selected
    assert BLOG == followed(view, ABOUT[:1]).selected
    assert followed(view, []).selected is None


def test_looking_in_and_back() -> None:
    """Enter shows the lines of a run, arrows scroll back in them, q returns, and q again quits."""
    view, act = pressed("enter", view=View(selected=LOGIN))
    assert view.is_inside and isinstance(act, LookIn)
    assert LOGIN == act.subject.key
    view, act = pressed("up", "up", "pageup", "down", view=view)
    assert (4, LOGIN) == (view.back, view.selected)
    assert 0 == pressed("end", view=view)[0].back
    view, act = pressed("q", view=view)
    assert (False, 0, Close()) == (view.is_inside, view.back, act)
    assert isinstance(pressed("q", view=view)[1], Quit)


@pytest.mark.parametrize("key", ["s", "x", "p", "a"])
def test_a_run_whose_row_is_gone_stays_open(key: str) -> None:
    """Its last lines can be read, and nothing acts on another run."""
    view, act = pressed(key, view=View(selected=LOGIN, is_inside=True), about=ABOUT[:1])
    assert (LOGIN, "", None) == (view.selected, view.asking, act)


@pytest.mark.parametrize(
    ("key", "item"), [(BLOG, None), (LOGIN, "1.md")], ids=["a run", "an item of a watch"]
)
def test_steering(key: Key, item: str | None) -> None:
    """The message goes to the agent of the selected run or item."""
    view, act = pressed("s", view=View(selected=key))
    assert ("steer", None) == (view.asking, act)
    view, act = pressed("enter", view=view, text=" Use the form ")
    command = ev.SteerAsked(text="Use the form", item=item)
    assert Send(key, command, "Told: Use the form") == act
    assert "" == view.asking


def test_a_watch_with_one_item_is_steered_at_it() -> None:
    """The message names the item, as the watch would ask for it."""
    about = subjects([run_of("shop", *item(1, "Login page"), kind="watch", slots=2)])
    _, act = pressed("s", "enter", view=View(selected=SHOP), about=about, text="x")
    assert isinstance(act, Send)
    assert ev.SteerAsked(text="x", item="1.md") == act.command


def test_answering() -> None:
    """A question is answered with the typed text; an empty one changes nothing."""
    view, _ = pressed("a", view=View(selected=QUESTION))
    assert "answer" == view.asking
    assert Answer(QUESTION, "PDF") == pressed("enter", view=view, text="PDF")[1]
    for key in ("enter", "escape"):
        after, act = pressed(key, view=view, text="  ")
        assert ("", None) == (after.asking, act)


def test_an_answer_to_a_settled_question_goes_nowhere() -> None:
    """When the row goes while something is typed, the prompt is closed and nothing is sent."""
    view, _ = pressed("a", view=View(selected=QUESTION))
    after, act = pressed("enter", view=view, about=ABOUT[:1], text="PDF")
    assert ("", None) == (after.asking, act)
    assert "nothing was sent" in followed(view, ABOUT[:1]).note


def test_stopping_needs_a_confirmation() -> None:
    """Only y stops the run; any other key keeps it."""
    view, act = pressed("x", view=View(selected=LOGIN))
    assert ("stop", None) == (view.asking, act)
    assert "Stop `cuggino watch` in shop after this stage? y/n " == prompt_text(view, ABOUT, 80)
    for key in ("n", "enter", "x", "q", "escape"):
        assert pressed(key, view=view)[1] is None
    _, act = pressed("y", view=view)
    assert isinstance(act, Send)
    assert (LOGIN.project, ev.StopAsked()) == (act.key.project, act.command)


@pytest.mark.parametrize(
    ("events", "command"),
    [
        ([], ev.PauseAsked()),
        ([ev.PauseAsked()], ev.ContinueAsked()),
        ([ev.PauseAsked(), ev.RunPaused()], ev.ContinueAsked()),
    ],
)
def test_pausing_and_going_on(events: list[ev.Event], command: ev.ControlEvent) -> None:
    """One key pauses a run that works, and takes a pause back."""
    _, act = pressed("p", about=subjects([run_of("blog", *events)]))
    assert isinstance(act, Send)
    assert command == act.command


@pytest.mark.parametrize(
    ("key", "selected", "note"),
    [
        *((key, NOTES, "Nothing runs in notes") for key in "spx"),
        ("s", QUESTION, "Choose a run or an item"),
        ("s", SHOP, "Choose one of its items"),
        ("a", BLOG, "Choose a question"),
    ],
)
def test_keys_without_an_object(key: str, selected: Key, note: str) -> None:
    """A key that has nothing to act on says why."""
    view, act = pressed(key, view=View(selected=selected))
    assert act is None
    assert note in view.note


@pytest.mark.parametrize("key", ["enter", "a", "s", "p", "x", "down", "end", "z", "escape"])
def test_no_key_fails_without_rows(key: str) -> None:
    """Without a project no key does anything but q."""
    view, act = pressed(key, about=[])
    assert (None, None) == (view.selected, act)
    assert isinstance(pressed("q", about=[])[1], Quit)


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("asking", ["", "steer", "answer", "stop"])
@pytest.mark.parametrize("inside", [False, True])
def test_words_fit(
    columns: int, asking: Literal["", "steer", "answer", "stop"], inside: bool
) -> None:
    """The keys are named in as many words as fit, and a prompt leaves room for the text."""
    view = View(selected=BLOG, is_inside=inside, asking=asking)
    assert width(key_text(view, columns)) < columns
    assert width(prompt_text(view, ABOUT, columns)) < columns
    assert bool(asking) == bool(prompt_text(view, ABOUT, columns))
