"""Shell completion of names. Nothing is started, and errors are ignored."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem


def agent_names(
    _context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Complete agents, and the prefixes of agents that are files."""
    from cuggino.agents import agent_entries

    return offered([entry.name for entry in agent_entries()] + ["scripted:", "replay:"], begun)


def run_ids(
    _context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Complete ids of the runs in the current folder, newest first."""
    journals = Path(".cuggino/journal").glob("*.jsonl")
    return offered(sorted((path.stem for path in journals), reverse=True), begun)


def backlog_items(
    _context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Complete items of the backlog, parked ones included."""
    return _files(("backlog", "parked"), begun)


def parked_items(
    _context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Complete parked items."""
    return _files(("parked",), begun)


def issue_names(
    _context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Complete open spec issues and findings."""
    return _files(("spec-issues", "tbd"), begun)


def _files(folders: Iterable[str], begun: str) -> list[CompletionItem]:
    names = {
        path.name
        for folder in folders
        for path in Path(".cuggino", folder).glob("*")
        if path.is_file() and not path.name.startswith(".")
    }
    return offered(sorted(names), begun)


def offered(
    names: Iterable[str], begun: str, about: dict[str, str] | None = None
) -> list[CompletionItem]:
    """Return the names that begin with the typed text, each with its help."""
    return [
        CompletionItem(name, help=(about or {}).get(name))
        for name in names
        if name.startswith(begun)
    ]
