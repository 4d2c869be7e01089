"""What `cuggino loop` asks before it begins (LOP-002 to LOP-004, LOP-040)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

import click

from cuggino_cli.output.sanitize import inert

BANNER = "Lopen Loop - Autonomous Development Workflow"
QUESTION = "Do you need to add specifications, or shall we commence planning and building?"
OPTIONS = ("Add specifications", "Plan and build (default)", "Go straight to building")
SELECT = "Select (1-3, default=2): "
BRANCH = "Create a branch named (empty: none): "
ADD_SPECIFICATIONS = "Add specifications to docs/requirements/, then re-run loop."

Choice = Literal["specifications", "plan", "build"]

_CHOICES: dict[str, Choice] = {"": "plan", "1": "specifications", "2": "plan", "3": "build"}
_TRIES = 3


def say(text: str, *, indent: str = "") -> None:
    """A line, which a narrow terminal gets wrapped between its words."""
    columns = max(shutil.get_terminal_size().columns, 20)
    if len(text) >= columns:
        text = click.wrap_text(text, columns - 1, subsequent_indent=indent)
    click.echo(text)


def ask_choice() -> Choice:
    """What a person wants first; planning when three answers in a row are none.

    Raises:
        KeyboardInterrupt: Ctrl-C.
        EOFError: Ctrl-D on an empty answer, or the terminal has gone.
    """
    say(QUESTION)
    for number, option in enumerate(OPTIONS, start=1):
        say(f"  {number}. {option}", indent="     ")
    for _ in range(_TRIES):
        choice = _CHOICES.get(_typed(SELECT))
        if choice is not None:
            return choice
        say("Please answer 1, 2 or 3.")
    say("Going on with 2.")
    return "plan"


def ask_branch(folder: Path) -> bool:
    """Create the branch that a person names and switch to it; gives whether there is one now.

    Raises:
        KeyboardInterrupt, EOFError: as `ask_choice`.
    """
    from cuggino import run
    from cuggino.errors import ProcessError
    from cuggino.sources.git import git_lines

    for _ in range(_TRIES):
        name = _typed(BRANCH)
        if not name:
            return False
        try:
            run(git_lines("switch", "--create", name, cwd=folder))
        except ProcessError as error:
            say(inert(error.message))
        else:
            say(f"Switched to the new branch {inert(name)}.")
            return True
    return False


def _typed(message: str) -> str:
    from prompt_toolkit import prompt

    return prompt(message).strip()
