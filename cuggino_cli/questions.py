"""What `cuggino setup` asks: the questions, what may be answered, and the asking (CUG-075)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from prompt_toolkit import prompt
from prompt_toolkit.document import Document
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.validation import ValidationError, Validator

Value: TypeAlias = str | int | bool | None
"""A setting as `Config` holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question: what it is about, and how text and setting become each other."""

    field: str
    """The field of `Config`."""
    flag: str
    """The option of the command that answers it in advance."""
    message: str
    parse: Callable[[str], Value]
    """The typed text as a setting; raises `ValueError` with what is expected."""
    show: Callable[[Value], str] = lambda value: "" if value is None else str(value)
    """A setting as the text that would be typed."""
    toggle: bool = False

    @property
    def prompt(self) -> str:
        """What stands before the answer."""
        return f"{self.message} (y/n): " if self.toggle else f"{self.message}: "


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("A folder is needed")
    return text.strip()


def _whole_number(text: str) -> int:
    # `int` alone would take "1_000", other scripts' digits and, with an error of its own, any size.
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10 and int(digits) >= 1):
        raise ValueError("A whole number of at least 1 is needed")
    return int(digits)


def yes_or_no(text: str) -> bool:
    """The typed answer as a setting; raises `ValueError` when it is neither."""
    typed = text.strip().lower()
    # Parts count as well, so that nobody is told off in the middle of a word.
    if typed in ("y", "ye", "yes"):
        return True
    if typed in ("n", "no"):
        return False
    raise ValueError("Answer y or n")


def _gate(text: str) -> Literal["context", "block"]:
    return "block" if yes_or_no(text) else "context"


def y_or_n(value: Value) -> str:
    """A setting as what would be typed."""
    return "y" if value in (True, "block") else "n"


GATE = Question(
    field="gate",
    flag="--gate",
    message="Count an approval only if the check command passes (recommended)",
    parse=_gate,
    show=y_or_n,
    toggle=True,
)
"""Asked only when there is a check command."""

QUESTIONS = (
    Question(
        field="specs_path",
        flag="--specs-path",
        message="Path to the specifications folder",
        parse=_not_blank,
    ),
    Question(
        field="max_iterations",
        flag="--max-iterations",
        message="Maximum iterations per loop run",
        parse=_whole_number,
    ),
    Question(
        field="setup_command",
        flag="--setup-command",
        message="Setup command (install deps, build, etc.) — leave empty to skip",
        parse=str.strip,
    ),
    Question(
        field="check_command",
        flag="--check-command",
        message="Check command (linting, type checking, tests) — leave empty to skip",
        parse=str.strip,
    ),
    GATE,
    Question(
        field="commit",
        flag="--commit/--no-commit",
        message="Auto-commit after each implementation step",
        parse=yes_or_no,
        show=y_or_n,
        toggle=True,
    ),
    Question(
        field="audit",
        flag="--audit/--no-audit",
        message="Run audit agent during idle time",
        parse=yes_or_no,
        show=y_or_n,
        toggle=True,
    ),
)
"""All questions, in the order in which they are asked."""


def ask(question: Question, default: Value) -> Value:
    """Ask on the terminal, the answer pre-filled with `default`, until it can be used.

    Raises:
        KeyboardInterrupt: Ctrl-C.
        EOFError: Ctrl-D on an empty answer, or the terminal has gone.
    """
    answer = prompt(
        question.prompt,
        default=question.show(default),
        validator=_Parses(question.parse),
        validate_while_typing=True,
        key_bindings=_SWITCH if question.toggle else None,
    )
    return question.parse(answer)


def _switch(event: KeyPressEvent) -> None:
    """A typed y or n takes the place of the pre-filled one, which need not be erased."""
    event.current_buffer.document = Document(event.data)


_SWITCH = KeyBindings()
for _key in "yYnN":
    _SWITCH.add(_key)(_switch)


class _Parses(Validator):
    """Accepts what can be parsed, and shows the parser's complaint otherwise."""

    def __init__(self, parse: Callable[[str], Value]) -> None:
        self._parse = parse

    def validate(self, document: Document) -> None:
        try:
            self._parse(document.text)
        except ValueError as error:
            raise ValidationError(len(document.text), str(error)) from error
