"""The keys of `cuggino top`: a pure step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pytest

from cuggino import events as ev
from cuggino_cli.screen.columns import width
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
from cuggino_cli.top.rows import Key, Subject, subjects

from .test_top_rows import ALL, item, run_of

ABOUT = subjects(ALL)
BLOG, QUESTION, PARKED, SHOP, LOGIN, SEARCH, NOTES = (subject.key for subject in ABOUT)


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
