"""What a shell is offered when a word is completed. Nothing is started, and no error is told."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem


def agent_names(
    _context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The agents that are programs or packages, and the beginnings of those that are files."""
    from cuggino.agents.registry import agent_entries

    return _offered([entry.name for entry in agent_entries()] + ["scripted:", "replay:"], begun)


def run_ids(
    _context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The runs of the present folder, newest first."""
    journals = Path(".cuggino/journal").glob("*.jsonl")
    return _offered(sorted((path.stem for path in journals), reverse=True), begun)


def backlog_items(
    _context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The items of the backlog, and those that are parked."""
    return _files(("backlog", "parked"), begun)


def parked_items(
    _context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The items that are parked."""
    return _files(("parked",), begun)


def issue_names(
    _context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The spec issues and findings that wait."""
    return _files(("spec-issues", "tbd"), begun)


def help_topics(
    _context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The pages of `cuggino help`, and the commands."""
    from cuggino_cli.commands.help import TOPICS
    from cuggino_cli.main import COMMANDS

    return _offered([*TOPICS, *COMMANDS], begun, {**COMMANDS, **TOPICS})


def help_names(
    context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Below `events` the events, below a command its own commands."""
    topic = context.params.get("topic")
    if topic == "events":
        from cuggino.events.wire import event_types

        return _offered(event_types(), begun)
    group = context.parent.command if context.parent else None
    found = group.get_command(context, str(topic)) if isinstance(group, click.Group) else None
    return _offered(found.commands if isinstance(found, click.Group) else (), begun)


def _files(folders: Iterable[str], begun: str) -> list[CompletionItem]:
    names = {
        path.name
        for folder in folders
        for path in Path(".cuggino", folder).glob("*")
        if path.is_file() and not path.name.startswith(".")
    }
    return _offered(sorted(names), begun)


def _offered(
    names: Iterable[str], begun: str, about: dict[str, str] | None = None
) -> list[CompletionItem]:
    return [
        CompletionItem(name, help=(about or {}).get(name))
        for name in names
        if name.startswith(begun)
    ]
