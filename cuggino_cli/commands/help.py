"""`cuggino help`: the help of a command, and the help pages."""

from __future__ import annotations

import difflib
import json
import shutil
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from cuggino.events import event_types
from cuggino_cli.commands import COMMANDS
from cuggino_cli.help import TOPICS, lookup, page, schemas
from cuggino_cli.help.lookup import explanations
from cuggino_cli.help.manual import manual
from cuggino_cli.help.rendering import headings, rendered, section
from cuggino_cli.options.completing import offered

_SHOWN = 5
"""Words that an error proposes at most."""
_NO_SCHEMA = "Only `help events` and `help config` have a JSON Schema."


def _complete_topics(
    _context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Complete help topics and commands."""
    return offered([*TOPICS, *COMMANDS], begun, {**COMMANDS, **TOPICS})


def _complete_names(
    context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Complete the sections of a page, or the subcommands of a command."""
    topic = str(context.params.get("topic"))
    if topic in TOPICS:
        return offered(headings(page(topic)), begun)
    group = context.parent.command if context.parent else None
    found = group.get_command(context, topic) if isinstance(group, click.Group) else None
    return offered(found.commands if isinstance(found, click.Group) else (), begun)


@click.command(
    "help",
    context_settings={"ignore_unknown_options": True},  # `help --budget` is about that option
    epilog=manual(
        ("cuggino help run", "The help of a command."),
        ("cuggino help loops", "A page."),
        ("cuggino help gate", "A word: a key, an option, an event, a name of the library."),
        ("cuggino help --dirty", "An option of some commands."),
        ("cuggino help events CommitPerformed", "One section of a page: an event."),
        ("cuggino help config --json > cuggino.schema.json", "A JSON Schema, for an editor."),
        exits="0 shown, 2 unknown name.",
    ),
)
@click.argument("topic", required=False, shell_complete=_complete_topics)
@click.argument("name", required=False, shell_complete=_complete_names)
@click.option("--json", "as_json", is_flag=True, help="JSON Schema, for `events` and `config`.")
@click.pass_context
def command(ctx: click.Context, topic: str | None, name: str | None, as_json: bool) -> int:
    """Explain a command, a topic or a word.

    TOPIC is a command or a page; `cuggino help` lists both. Any other word is looked up in the
    pages, the options and the library: `budget`, `RateLimited`, `Schedule`, `13`. NAME is a
    subcommand, or a section or a word of the page.
    """
    if topic is None and not as_json:
        return _overview(ctx)
    if as_json:
        return _schema(topic, name)
    assert topic is not None
    return _page(topic, name) if topic in TOPICS else _of_command(ctx, topic, name)


def _overview(ctx: click.Context) -> int:
    assert ctx.parent is not None
    click.echo(ctx.parent.get_help())
    click.echo("\nPages, with `cuggino help TOPIC`:")
    for topic, about in TOPICS.items():
        click.echo(f"  {topic:<13} {about}")
    return 0


def _of_command(ctx: click.Context, topic: str, name: str | None) -> int:
    assert ctx.parent is not None
    group = ctx.parent.command
    assert isinstance(group, click.Group)
    found = group.get_command(ctx.parent, topic)
    if found is None:
        if name is not None:
            raise click.UsageError(_unknown("command or topic", topic, [*COMMANDS, *TOPICS]))
        return _look_up(ctx.parent, topic, group)
    inner = click.Context(found, parent=ctx.parent, info_name=topic)
    if name is not None:
        below = found.get_command(inner, name) if isinstance(found, click.Group) else None
        if below is None:
            names = found.list_commands(inner) if isinstance(found, click.Group) else []
            raise click.UsageError(_unknown(f"command of `{topic}`", name, names))
        found, inner = below, click.Context(below, parent=inner, info_name=name)
    click.echo(found.get_help(inner))
    return 0


def _look_up(ctx: click.Context, word: str, group: click.Group) -> int:
    """Print what there is on a word that is neither a command nor a page."""
    commands = {name: group.get_command(ctx, name) for name in group.list_commands(ctx)}
    taken = {name: command for name, command in commands.items() if command is not None}
    found = lookup.explanations(word, taken)
    if not found:
        raise click.UsageError(
            _unknown("command, topic or word", word, [*taken, *TOPICS], lookup.words(taken))
        )
    return _print("\n".join(found))


def _page(topic: str, name: str | None) -> int:
    """Print the page, one section of it, or the rows of its tables that have the name."""
    text: str | None = page(topic)
    assert text is not None
    if name is not None:
        names = headings(text)
        text = section(text, name) or "\n".join(explanations(name, {}, (topic,)))
        if not text:
            raise click.UsageError(_unknown(f"section or word of `{topic}`", name, names))
    return _print(text)


def _print(text: str) -> int:
    """Print Markdown, through the pager on a terminal."""
    columns = max(min(shutil.get_terminal_size().columns, 100) - 1, 20)
    click.echo_via_pager("".join(f"{line}\n" for line in rendered(text, columns)))
    return 0


def _schema(topic: str | None, name: str | None) -> int:
    match topic, name:
        case "events", None:
            schema = schemas.event_schemas()
        case "events", str():
            by_name = {tag.lower(): cls for tag, cls in event_types().items()}
            if name.lower() not in by_name:
                raise click.UsageError(_unknown("event", name, list(event_types())))
            schema = schemas.event_schema(by_name[name.lower()])
        case "config", None:
            schema = schemas.config_schema()
        case _:
            raise click.UsageError(_NO_SCHEMA)
    click.echo(json.dumps(schema, indent=2, ensure_ascii=False))
    return 0


def _unknown(kind: str, name: str, names: list[str], more: Sequence[str] = ()) -> str:
    """Return the error that names what is nearest: of `names`, else what of `more` contains it."""
    near = difflib.get_close_matches(name, names, n=1)
    near = near or [word for word in more if name.lower() in word.lower()][:_SHOWN]
    near = near or difflib.get_close_matches(name, more, n=1)
    shown = " or ".join(f"'{word}'" for word in near)
    return f"There is no {kind} '{name}'." + (f" Did you mean {shown}?" if near else "")
