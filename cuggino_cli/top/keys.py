"""The keys of `cuggino top`: a pure step from view to view, and the act that a key asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from cuggino.events import ContinueAsked, ControlEvent, PauseAsked, SteerAsked, StopAsked
from cuggino_cli.screen.columns import width
from cuggino_cli.screen.text import flat
from cuggino_cli.top.rows import Key, Subject


class Send(NamedTuple):
    """Send a command to the run of a project."""

    key: Key
    command: ControlEvent
    note: str
    """The note that reports it."""


class Answer(NamedTuple):
    """Answer a question."""

    key: Key
    text: str


class LookIn(NamedTuple):
    """Show the lines of a run, or the text of a question."""

    subject: Subject


class Close(NamedTuple):
    """Return to the rows."""


class Quit(NamedTuple):
    """End the screen; runs go on."""


Act: TypeAlias = Send | Answer | LookIn | Close | Quit


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The parts of the screen besides the rows."""

    selected: Key | None = None
    asking: Literal["", "steer", "answer", "stop"] = ""
    """What is typed or confirmed for the selected row."""
    is_inside: bool = False
    """The lines of the selected run are shown in place of the rows."""
    back: int = 0
    """Lines between the last one that is shown and the last one."""
    note: str = ""
    """What the last key has led to."""


def followed(view: View, about: Sequence[Subject]) -> View:
    """Return the view with a row selected that is there; a prompt for one that went is closed."""
    keys = [subject.key for subject in about]
    if view.selected in keys:
        return view
    if view.asking:
        return replace(view, asking="", note="It is not there any more; nothing was sent")
    if view.is_inside or view.selected is None:
        return view if view.is_inside or not keys else replace(view, selected=keys[0])
    project = view.selected.project
    near = next((key for key in keys if key.project == project), keys[0] if keys else None)
    return replace(view, selected=near)


def step(
    view: View, key: str, about: Sequence[Subject], *, text: str = "", page: int = 10
) -> tuple[View, Act | None]:
    """Return the view after a key, and what it asks for.

    `text` is what stands in the prompt, `page` the rows of a page.
    """
    view = followed(replace(view, note=""), about)
    subject = next((one for one in about if one.key == view.selected), None)
    if view.asking:
        return _asked(view, key, subject, text.strip())
    if view.is_inside:
        moves = {"up": 1, "k": 1, "down": -1, "j": -1, "pageup": page, "pagedown": -page}
        if key in moves:
            return replace(view, back=max(view.back + moves[key], 0)), None
        if key in ("escape", "q", "left", "enter"):
            return replace(view, is_inside=False, back=0), Close()
        if key == "end":
            return replace(view, back=0), None
    elif key == "q":
        return view, Quit()
    else:
        count, keys = len(about), [one.key for one in about]
        place = keys.index(subject.key) if subject is not None else 0
        places = {"up": place - 1, "k": place - 1, "down": place + 1, "j": place + 1}
        places |= {"pageup": place - page, "pagedown": place + page, "home": 0, "end": count}
        if key in places and count:
            return replace(view, selected=keys[min(max(places[key], 0), count - 1)]), None
    return (view, None) if subject is None else _on(view, key, subject)


def _on(view: View, key: str, subject: Subject) -> tuple[View, Act | None]:
    """Return the view after a key that acts on a row."""
    kind = subject.key.kind
    match key:
        case "enter" | "right" if kind != "none" and not view.is_inside:
            return replace(view, is_inside=True, back=0), LookIn(subject)
        case "a" if kind == "question":
            return replace(view, asking="answer"), None
        case "y" if subject.is_approval:
            return view, Answer(subject.key, "approve")
        case "a":
            return replace(view, note="Choose a question, which begins with ?"), None
        case "s" | "p" | "x" if not subject.is_at_work:
            return replace(view, note=f"Nothing runs in {flat(subject.project)}"), None
        case "s" if kind not in ("run", "item"):
            return replace(view, note="Choose a run or an item"), None
        case "s" if subject.state is not None and len(subject.state.at_work) > 1:
            return replace(view, note="Choose one of its items"), None
        case "s":
            return replace(view, asking="steer"), None
        case "x":
            return replace(view, asking="stop"), None
        case "p":
            return view, _pause(subject)
        case _:
            return view, None


def _pause(subject: Subject) -> Send:
    whole = subject.status.activity
    name = flat(subject.project)
    if whole is not None and whole.state in ("pausing", "paused"):
        return Send(subject.key, ContinueAsked(), f"{name} goes on")
    return Send(subject.key, PauseAsked(), f"{name} pauses after this stage")


def _asked(view: View, key: str, subject: Subject | None, text: str) -> tuple[View, Act | None]:
    """Return the view after a key while something is typed or confirmed."""
    closed = replace(view, asking="")
    if subject is None or key == "escape":
        return closed, None
    if view.asking == "stop":
        if key != "y":
            return replace(closed, note="Not stopped"), None
        note = f"{flat(subject.project)} stops after this stage"
        return closed, Send(subject.key, StopAsked(), note)
    if key != "enter" or not text:
        return (closed if key == "enter" else view), None
    if view.asking == "answer":
        return closed, Answer(subject.key, text)
    item = subject.key.name or None
    if item is None and subject.state is not None and subject.state.at_work:
        item = subject.state.at_work[0].item
    return closed, Send(subject.key, SteerAsked(text=text, item=item), f"Told: {text}")


def prompt_text(view: View, about: Sequence[Subject], columns: int) -> str:
    """Return what stands before the typed text, or the question that a key confirms; or ""."""
    subject = next((one for one in about if one.key == view.selected), None)
    if subject is None or not view.asking:
        return ""
    if view.asking != "stop":
        return _longest(columns, f"{view.asking} (Enter sends, Esc cancels): ", f"{view.asking}: ")
    owner, name = subject.status.owner, flat(subject.project)
    command = flat((owner.command if owner is not None else None) or "the run")
    return _longest(
        columns, f"Stop `{command}` in {name} after this stage? y/n ", f"Stop {name}? y/n "
    )


def key_text(view: View, columns: int) -> str:
    """Return the keys in words, as far as they fit."""
    if view.asking == "stop":
        return "y stops the whole run, n keeps it"
    if view.asking:
        return "Enter sends, Esc cancels"
    if view.is_inside:
        return _longest(
            columns,
            "q back  ↑↓ scroll  s steer  a answer  p pause/continue  x stop",
            "q back  ↑↓ s a p x",
        )
    return _longest(
        columns,
        "↑↓ choose  Enter look in  s steer  a answer  p pause/continue  x stop  q quit",
        "Enter look in  s a p  x stop  q quit",
        "Enter s a p x q",
    )


def _longest(columns: int, *texts: str) -> str:
    """Return the first of the texts that fits, or else the last one."""
    return next((text for text in texts if width(text) < columns), texts[-1])
