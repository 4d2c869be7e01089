"""The git commands that cuggino runs in a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from reactivex import Observable

from cuggino.git import command_of
from cuggino.processes import process_output

Output: TypeAlias = Callable[..., Observable[bytes]]


def replace_git(monkeypatch: pytest.MonkeyPatch, output: Output) -> None:
    """Let `output` run the commands of git instead of `process_output`."""
    monkeypatch.setattr("cuggino.git.program.process_output", output)


def note_git(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which the name of each command of git is added from now on."""
    names: list[str] = []

    def noted(argv: tuple[str, ...], **options: Any) -> Observable[bytes]:
        names.append(command_of(argv[1:]))
        return process_output(argv, **options)

    replace_git(monkeypatch, noted)
    return names
