"""`cuggino help`: the help of a command, and pages about what is not one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable

import click

from cuggino_cli.completing import help_names, help_topics
from cuggino_cli.manual import manual

TOPICS = {
    "events": "what a run says, with `--json` and in the library",
    "markers": "what agents declare with tags in their text",
    "config": "the keys of .cuggino.json",
    "exit-codes": "what a loop ends with",
}
"""The pages, each with what it is about."""


@click.command(
    "help",
    epilog=manual(
        ("cuggino help run", "The help of a command."),
        ("cuggino help events CommitPerformed", "One event, with its fields."),
        ("cuggino help config --json > cuggino.schema.json", "A JSON Schema, for an editor."),
        exits="0 shown, 2 there is no such thing.",
    ),
)
@click.argument("topic", required=False, shell_complete=help_topics)
@click.argument("name", required=False, shell_complete=help_names)
@click.option("--json", "as_json", is_flag=True, help="JSON Schema, for `events` and `config`.")
@click.pass_context
def command(ctx: click.Context, topic: str | None, name: str | None, as_json: bool) -> int:
    """Explain a command or a topic.

    TOPIC is a command, or one of: events, markers, config, exit-codes. NAME is one event, such as
    `cuggino help events CommitPerformed`, or a command of a command.
    """
    if topic is None:
        if as_json:
            raise click.UsageError("JSON Schema is there for `help events` and `help config`.")
        return _overview(ctx)
    if topic not in TOPICS:
        if as_json:
            raise click.UsageError("JSON Schema is there for `help events` and `help config`.")
        return _of_command(ctx, topic, name)
    from cuggino_cli import topics

    columns = max(min(shutil.get_terminal_size().columns, 100) - 1, 20)
    if name is not None and topic != "events":
        raise click.UsageError(f"`help {topic}` takes no further name.")
    match topic, as_json:
        case "events", _ if name is not None:
            from cuggino.events.wire import event_types

            by_name = {tag.lower(): cls for tag, cls in event_types().items()}
            cls = by_name.get(name.lower())
            if cls is None:
                raise click.UsageError(_unknown("event", name, list(event_types())))
            if as_json:
                return _schema(topics.event_schema(cls))
            return _page(topics.event_topic(cls, columns))
        case "events", True:
            return _schema(topics.event_schemas())
        case "config", True:
            return _schema(topics.config_schema())
        case _, True:
            raise click.UsageError("JSON Schema is there for `help events` and `help config`.")
        case "events", False:
            return _page(topics.events_topic(columns))
        case "markers", False:
            return _page(topics.markers_topic(columns))
        case "config", False:
            return _page(topics.config_topic(columns))
        case _:
            return _page(topics.exit_codes_topic(columns))


def _overview(ctx: click.Context) -> int:
    assert ctx.parent is not None
    click.echo(ctx.parent.get_help())
    click.echo("\nTopics, with `cuggino help TOPIC`:")
    for topic, about in TOPICS.items():
        click.echo(f"  {topic:<12} {about}")
    return 0


def _of_command(ctx: click.Context, topic: str, name: str | None) -> int:
    assert ctx.parent is not None
    group = ctx.parent.command
    assert isinstance(group, click.Group)
    found = group.get_command(ctx.parent, topic)
    if found is None:
        names = [*group.list_commands(ctx.parent), *TOPICS]
        raise click.UsageError(_unknown("command or topic", topic, names))
    inner = click.Context(found, parent=ctx.parent, info_name=topic)
    if name is not None:
        below = found.get_command(inner, name) if isinstance(found, click.Group) else None
        if below is None:
            names = found.list_commands(inner) if isinstance(found, click.Group) else []
            raise click.UsageError(_unknown(f"command of `{topic}`", name, names))
        found, inner = below, click.Context(below, parent=inner, info_name=name)
    click.echo(found.get_help(inner))
    return 0


def _unknown(kind: str, name: str, names: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, names, n=1)
    return f"There is no {kind} '{name}'." + (f" Did you mean '{near[0]}'?" if near else "")


def _schema(schema: object) -> int:
    click.echo(json.dumps(schema, indent=2, ensure_ascii=False))
    return 0


def _page(lines: Iterable[str]) -> int:
    """On a terminal through the pager, as a page may be longer than the screen."""
    click.echo_via_pager("".join(f"{line}\n" for line in lines))
    return 0
