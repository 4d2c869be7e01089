"""`cuggino backlog`: the items for `cuggino watch`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import click

from cuggino.errors import ConfigError, StorageError
from cuggino.events import WatchForgeWaiting, WatchItemImported, WatchSourceFailed
from cuggino.runs import project_status
from cuggino.runs.words import sent_back_text
from cuggino.storage import Backlog, Origins, Workspace, read_text_file
from cuggino_cli.help.manual import manual
from cuggino_cli.options.completing import backlog_items, parked_items
from cuggino_cli.options.naming import find, one_line, show_file
from cuggino_cli.options.project import project_folder
from cuggino_cli.screen.text import inert

_KIND_COLUMNS = 9


@click.group(
    "backlog",
    epilog=manual(
        ('cuggino backlog add "Login page" --text "as in .specs/login.md"', "An item at the end."),
        ("cuggino backlog list", "All items in order, then parked ones."),
        ("cuggino backlog show 3", "The item whose name begins with 003."),
        ("cuggino backlog retry 2", "Retry a parked item."),
        ("cuggino backlog import", "Read the trackers now."),
        exits="0 done, 2 no such item, or wrong usage.",
        see=("watch", "issues"),
    ),
)
def command() -> None:
    """Add, show, import, retry and remove items of the backlog.

    Items are the files in .cuggino/backlog. A NAME is a file name, a prefix of one, or its number.
    """


@command.command(
    "add",
    epilog=manual(
        ('cuggino backlog add "Search" --file notes/search.md', "With the text of a file."),
        (
            'git log -1 --format=%B | cuggino backlog add "Follow up" -',
            "With the output of another program.",
        ),
    ),
)
@click.argument("title")
@click.argument("stdin", metavar="[-]", required=False)
@click.option("--text", metavar="TEXT", help="The description of the task.")
@click.option("--file", metavar="FILE", help="A file with the description; - is standard input.")
def add(title: str, stdin: str | None, text: str | None, file: str | None) -> int:
    """Add an item at the end; - reads its text from standard input."""
    if stdin not in (None, "-"):
        raise click.UsageError(f"Unexpected argument {one_line(stdin)!r}: quote the title.")
    if sum(given is not None for given in (stdin, text, file)) > 1:
        raise click.UsageError("--text, --file and - exclude each other.")
    if not title.strip():
        raise click.UsageError("The title is empty.")
    name = _backlog().add(title, _text(text, stdin or file))
    click.echo(f"Added {one_line(name)}")
    return 0


@command.command("list", epilog=manual(("cuggino backlog list", "The next item is first.")))
def list_items() -> int:
    """List items in their order, then parked ones and problems.

    Items that wait are listed with what they come after, imported ones with their page; held items
    cannot begin until you act. Of items that a watch works on, the slot and the stage are shown,
    and whether they wait to land.
    """
    backlog, pages = _backlog(), _pages()
    items, problems = backlog.survey()
    order, at_work = backlog.order(items, now=datetime.now(UTC)), _at_work()
    reasons = order.reasons

    def item(name: str) -> str:
        kind, what = "item", _after(order.waiting.get(name, ()))
        if name in at_work:
            kind, what = at_work[name]
        elif name in reasons:
            kind, what = "held", reasons[name]
        return _line(kind, name, ", ".join(filter(None, (what, pages.get(name)))))

    lines = [
        *map(item, items),
        *(_line("parked", name, reason) for name, reason in backlog.parked().items()),
        *(_line("problem", name, reason) for name, reason in problems.items()),
    ]
    click.echo("\n".join(lines or ["The backlog is empty."]))
    return 0


@command.command("show", epilog=manual(("cuggino backlog show 001", "By its number.")))
@click.argument("name", shell_complete=backlog_items)
def show(name: str) -> int:
    """Print an item."""
    backlog, parked = _backlog(), _backlog().parked()
    found = _find(name, [*_files(backlog), *parked])
    is_parked = found not in _files(backlog)
    path = _parked_folder() / found if is_parked else backlog.path(found)
    if is_parked:
        click.echo(_line("parked", found, parked[found]), err=True)
    show_file(path, what="item")
    return 0


@command.command(
    "retry", epilog=manual(("cuggino backlog retry 001", "Once the cause of the failure is fixed."))
)
@click.argument("name", shell_complete=parked_items)
def retry(name: str) -> int:
    """Put a parked item back into the backlog."""
    backlog = _backlog()
    back = backlog.unpark(_find(name, list(backlog.parked()), what="parked item"))
    click.echo(f"Back in the backlog: {one_line(back)}")
    return 0


@command.command("rm", epilog=manual(("cuggino backlog rm 001-login-page.md", "By its full name.")))
@click.argument("name", shell_complete=backlog_items)
def remove(name: str) -> int:
    """Take an item out; its file goes to .cuggino/archive."""
    backlog = _backlog()
    archived = backlog.remove(_find(name, [*_files(backlog), *backlog.parked()]))
    click.echo(f"Moved to .cuggino/archive/{one_line(archived)}")
    return 0


@command.command(
    "import",
    epilog=manual(
        ("cuggino backlog import", "Also before the first watch."),
        exits="0 all sources were read, 1 one could not be, 2 wrong configuration, or a run works "
        "here.",
        see=("watch",),
    ),
)
def import_items() -> int:
    """Read all "backlogSources" once, and import what is new or has changed there.

    A watch does so by itself. Each change is printed; `cuggino help trackers` explains them.
    """
    from cuggino import Runtime, iterate
    from cuggino_cli.options.trusting import check_trust

    check_trust(project_folder())
    changes = failures = 0
    for event in iterate(Runtime.live(cwd=project_folder()).import_items()):
        if isinstance(event, WatchItemImported):
            changes += 1
            facts = ", ".join(filter(None, (event.reason, event.url)))
            click.echo(_line(event.change, event.filename, facts))
        elif isinstance(event, WatchSourceFailed):
            failures += 1
            click.echo(f"cuggino: source {event.source}: {inert(event.message)}", err=True)
        elif isinstance(event, WatchForgeWaiting):
            click.echo(f"cuggino: {event.forge}: {inert(event.message)}", err=True)
    if not changes and not failures:
        click.echo("Nothing has changed.")
    return 1 if failures else 0


def _pages() -> dict[str, str]:
    origins = Origins(Workspace(project_folder())).all()
    return {name: origin.url for name, origin in origins.items()}


def _backlog() -> Backlog:
    return Backlog(Workspace(project_folder()))


def _at_work() -> dict[str, tuple[str, str]]:
    """Return what the working watch does with its items, if one works: a word, and more of it."""
    if Workspace(project_folder()).owner() is None:
        return {}
    try:
        activity = project_status(project_folder(), at=datetime.now(UTC)).activity
    except StorageError:  # which `status` reports
        return {}
    if activity is None:
        return {}
    words = {"landing": "landing", "queue": "to land", "proposed": "proposed"}
    words |= dict.fromkeys(("sent-back", "retry"), "item")
    found = {name: ("held", reason) for name, reason in activity.held}
    if activity.item:
        found[activity.item] = ("at work", activity.role)
    for one in activity.items:
        facts = [f"slot {one.slot}, {one.role}"] if one.place == "slot" else []
        if one.place == "proposed":
            facts.append(f"{one.pull_words} {one.pull_url}".rstrip())
        if one.worker:
            facts.append(f"on {one.worker}")
        if one.place == "retry" and one.wait is not None:
            facts.append(f"retry at {one.wait.until.astimezone():%H:%M:%S}")
        if one.returns:
            facts.append(sent_back_text(one.returns, one.return_reason))
        found[one.item] = (words.get(one.place or "", "at work"), ", ".join(facts))
    return found


def _parked_folder() -> Path:
    return Workspace(project_folder()).parked


def _files(backlog: Backlog) -> list[str]:
    """Return the items, empty and unreadable ones included."""
    problems: Iterable[str] = backlog.problems()
    return [*backlog.items(), *(name for name in problems if backlog.path(name).is_file())]


def _find(wanted: str, names: list[str], *, what: str = "item") -> str:
    return find(wanted, list(dict.fromkeys(names)), what=what, number_of=_number)


def _number(name: str) -> int | None:
    match = re.match(r"\d+", name)
    return int(match[0]) if match else None


def _after(names: Iterable[str]) -> str:
    return f"after {', '.join(names)}" if names else ""


def _line(kind: str, name: str, reason: str) -> str:
    indented = inert(reason).replace("\n", "\n" + " " * _KIND_COLUMNS)
    return f"{kind:<{_KIND_COLUMNS}}{one_line(name)}" + (f": {indented}" if reason else "")


def _text(text: str | None, file: str | None) -> str:
    if file is None:
        return text or ""
    if file != "-":
        return read_text_file(Path.cwd() / file, what="--file")
    piped = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not piped.strip():
        raise ConfigError("standard input is empty", hint="write down what to work on")
    return piped
