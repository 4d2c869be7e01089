"""Questions on the terminal."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import click
from prompt_toolkit import prompt
from prompt_toolkit.document import Document
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.validation import ValidationError, Validator

Value: TypeAlias = str | int | float | bool | None
"""A setting in the configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about one setting."""

    field: str
    """The field of the configuration."""
    flag: str
    """The option that answers the question in advance."""
    message: str
    parse: Callable[[str], Value]
    """Parses the typed text; raises `ValueError` with the expected format."""
    show: Callable[[Value], str] = lambda value: "" if value is None else str(value)
    """Formats a setting as it would be typed."""
    toggle: bool = False

    @property
    def prompt(self) -> str:
        return f"{self.message} (y/n): " if self.toggle else f"{self.message}: "


def yes_or_no(text: str) -> bool:
    """Parse an answer; raise `ValueError` if it is neither yes nor no."""
    typed = text.strip().lower()
    # Prefixes are valid too: answers are checked while they are typed.
    if typed in ("y", "ye", "yes"):
        return True
    if typed in ("n", "no"):
        return False
    raise ValueError("Answer y or n")


def y_or_n(value: Value) -> str:
    """Format a setting as `y` or `n`."""
    return "y" if value in (True, "block", "clean") else "n"


def ask(question: Question, default: Value) -> Value:
    """Ask on the terminal, with `default` pre-filled, until the answer is valid.

    Raises:
        KeyboardInterrupt: Ctrl-C.
        EOFError: Ctrl-D on an empty answer, or the terminal was closed.
    """

    class Parses(Validator):
        def validate(self, document: Document) -> None:
            try:
                question.parse(document.text)
            except ValueError as error:
                raise ValidationError(len(document.text), str(error)) from error

    def replace(event: KeyPressEvent) -> None:
        """Replace the pre-filled answer by the typed y or n."""
        event.current_buffer.document = Document(event.data)

    keys = KeyBindings()
    for key in "yYnN" if question.toggle else "":
        keys.add(key)(replace)
    answer = prompt(
        question.prompt,
        default=question.show(default),
        validator=Parses(),
        validate_while_typing=True,
        key_bindings=keys,
    )
    return question.parse(answer)


def typed(message: str) -> str:
    """Return what the user types after the prompt, without spaces around it."""
    return prompt(message).strip()


def say(text: str, *, indent: str = "") -> None:
    """Print a line, wrapped between words on a narrow terminal."""
    columns = max(shutil.get_terminal_size().columns, 20)
    if len(text) >= columns:
        text = click.wrap_text(text, columns - 1, subsequent_indent=indent)
    click.echo(text)
