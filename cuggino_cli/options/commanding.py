"""Sending a command to the run that works here, and waiting until it has taken it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import click

from cuggino.config import load_config
from cuggino.control import check_receiver, pending_commands, send_command
from cuggino.errors import ConfigError
from cuggino.events import ControlEvent, ControlIgnored, Event
from cuggino.processes import is_started_by_run
from cuggino.runs import JournalNews
from cuggino.storage import DECISIONS, Issue, Workspace, answer_issue, decide as record_decision
from cuggino_cli.options.completing import backlog_items
from cuggino_cli.options.naming import find, one_line
from cuggino_cli.options.project import project_folder

E = TypeVar("E", bound="Event")

PATIENCE = 3.0
"""Seconds in which a run accepts a command; it polls twice a second."""
OUTCOME = 2.0
"""Seconds to wait for the outcome of an accepted command."""
_PAUSE = 0.05
_UNHEARD = "The run has not answered yet; it obeys as soon as it does."

item_option = click.option(
    "--item",
    metavar="NAME",
    shell_complete=backlog_items,
    help="The item of a watch, by its file; needed if several are at work.",
)


def is_pending(command: ControlEvent) -> bool:
    """Return whether such a command waits for the run that works here.

    Raises:
        NothingRuns: no run works here.
        ConfigError: an agent asks, or the run cannot obey it.
    """
    folder = project_folder()
    check_receiver(Workspace(folder), command)
    return command in pending_commands(folder)


def answer(project: Path, issue: Issue, text: str) -> tuple[str, Path]:
    """Answer an issue of a project; return its name in the archive, and the file of the answer.

    Raises:
        ConfigError: the answer is blank, or the configuration cannot be used.
        StorageError: the issue is gone, or the answer could not be written.
    """
    if issue.is_approval:
        _check_person()
    specs = Path(load_config(project).specs_path)
    at = datetime.now().astimezone()
    archived = answer_issue(Workspace(project), issue, text, specs=project / specs, at=at)
    return archived, specs / DECISIONS


def awaited_approval(wanted: str | None) -> Issue:
    """Return what waits for an approval: the only one, or the one of this number, name or item.

    Raises:
        ConfigError: nothing waits.
        click.UsageError: it is not clear which.
    """
    issues = Workspace(project_folder()).issues()
    numbers = {issue.name: number for number, issue in enumerate(issues, start=1)}
    open_ones = {issue.name: issue for issue in issues if issue.is_approval}
    if not open_ones:
        raise ConfigError("nothing waits for an approval here", hint="see `cuggino status`")
    meant = [one for one in open_ones.values() if wanted is None or wanted in one.title]
    if len(meant) > 1 and not (wanted or "").isdecimal():
        listed = "; ".join(f"{numbers[one.name]} {one_line(one.title)}" for one in meant)
        what = f"{one_line(wanted)!r} may be any of" if wanted else "Name one of those that wait:"
        raise click.UsageError(f"{what} {listed}.")
    if len(meant) == 1 and not (wanted or "").isdecimal():
        return meant[0]
    assert wanted is not None
    return open_ones[find(wanted, list(open_ones), what="approval", number_of=numbers.get)]


def decide(issue: Issue, *, approves: bool, text: str = "") -> int:
    """Record a person's decision on what waits for it; return the exit code.

    Raises:
        ConfigError: an agent or a command of a run calls this.
        StorageError: it is settled, or the decision could not be written.
    """
    _check_person()
    record_decision(Workspace(project_folder()), issue, approves=approves, text=text)
    click.echo(f"{'Approved' if approves else 'Rejected'}: {one_line(issue.title)}")
    return 0


def _check_person() -> None:
    if is_started_by_run():
        raise ConfigError(
            "agents and commands of a run cannot approve anything",
            hint="use a terminal of your own",
        )


class Sent:
    """A command that was sent to the run in the current folder.

    Raises:
        NothingRuns: no run works here.
        ConfigError: an agent sends it, or the run cannot obey it.
        StorageError: it could not be written.
    """

    def __init__(self, command: ControlEvent) -> None:
        folder = project_folder()
        self._news = JournalNews(Workspace(folder))
        self._tag = command.tag
        self._seen: list[Event] = []
        send_command(folder, command)

    def is_taken(self) -> bool:
        """Wait a little; return whether the run has taken the command.

        Raises:
            ConfigError: the run has ignored it.
        """

        def answers(event: Event) -> bool:
            return event.tag == self._tag or isinstance(event, ControlIgnored)

        answer = self._wait(answers, PATIENCE)
        if isinstance(answer, ControlIgnored):
            raise ConfigError(answer.reason)
        if answer is None:
            click.echo(_UNHEARD)
        return answer is not None

    def has_led_to(self, kind: type[E]) -> E | None:
        """Return the event of this kind that came of the command, if there is one by now."""
        found = (event for event in self._seen if isinstance(event, kind))
        return next(found, None)

    def leads_to(self, *kinds: type[E]) -> E | None:
        """Wait a little; return the event of one of these kinds that came of the command."""
        self._wait(lambda event: isinstance(event, kinds), OUTCOME)
        return next(filter(None, map(self.has_led_to, kinds)), None)

    def _wait(self, is_wanted: Callable[[Event], bool], seconds: float) -> Event | None:
        until = time.monotonic() + seconds
        while True:
            self._seen += [entry.event for entry in self._news.read()]
            found = next(filter(is_wanted, self._seen), None)
            if found is not None or time.monotonic() > until:
                return found
            time.sleep(_PAUSE)  # the command has nothing else to do, and so no scheduler
