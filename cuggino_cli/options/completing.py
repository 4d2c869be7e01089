"""Shell completion of names. Nothing is started, and errors are ignored."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from cuggino.files import find_project

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completing(names: Callable[[], Iterable[str]]) -> Complete:
    """Return the completion of an argument or option, from all names that are possible."""
    return lambda _context, _parameter, begun: offered(names(), begun)


def _workspace(folder: str) -> Path:
    return find_project(Path.cwd()) / ".cuggino" / folder


def _runs() -> Iterable[str]:
    return sorted((path.stem for path in _workspace("journal").glob("*.jsonl")), reverse=True)


def _files(*folders: str) -> Iterable[str]:
    return sorted(
        {
            path.name
            for folder in folders
            for path in _workspace(folder).glob("*")
            if path.is_file() and not path.name.startswith(".")
        }
    )


run_ids = completing(_runs)
"""Runs of the project, newest first."""
backlog_items = completing(lambda: _files("backlog", "parked"))
parked_items = completing(lambda: _files("parked"))
issue_names = completing(lambda: _files("spec-issues", "tbd"))


def offered(
    names: Iterable[str], begun: str, about: dict[str, str] | None = None
) -> list[CompletionItem]:
    """Return the names that begin with the typed text, each with its help."""
    return [
        CompletionItem(name, help=(about or {}).get(name))
        for name in names
        if name.startswith(begun)
    ]
