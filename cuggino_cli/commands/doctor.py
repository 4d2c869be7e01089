"""`cuggino doctor`: checks that a run can work here."""

from __future__ import annotations

from pathlib import Path

import click

from cuggino import run
from cuggino.doctor import CheckResult, CheckStatus, doctor
from cuggino.trust import project_commands
from cuggino_cli.follow.output import plain_lines
from cuggino_cli.help.manual import manual
from cuggino_cli.options.project import agent_from_project, project_folder
from cuggino_cli.options.supervision import agent_names
from cuggino_cli.options.trusting import command_line, is_trusted, trust_rule, trust_store
from cuggino_cli.screen.fragments import Fragment, Label

_LABELS: dict[CheckStatus, Label] = {"ok": "success", "note": "caution", "problem": "problem"}
_STATUS_COLUMNS = 9


@click.command(
    "doctor",
    epilog=manual(
        ("cuggino doctor", "Check this folder and the configured agents."),
        ("cuggino doctor --agent codex", "Check another agent."),
        exits="0 no problem, 1 at least one.",
        see=("setup", "agents"),
    ),
)
@click.option(
    "--agent",
    "-a",
    metavar="NAME",
    help="Check this agent, not the configured one.",
    shell_complete=agent_names,
)
def command(agent: str | None) -> int:
    """Check that a run can work here."""
    lines = plain_lines()
    problems = 0

    def show(result: CheckResult) -> None:
        nonlocal problems
        lines.print(result_fragments(result))
        problems += result.status == "problem"

    folder = project_folder(announce=True)
    agent = agent_from_project(agent, folder)
    run(doctor(folder, agent=agent, trusted=is_trusted(folder)), show)
    if (trust := _trust_result(folder)) is not None:
        show(trust)
    ending = f"{problems} problem{'s' * (problems != 1)}" if problems else "No problems"
    lines.print([Fragment("plain", f"\n{ending}.")])
    return 1 if problems else 0


def _trust_result(folder: Path) -> CheckResult | None:
    """Return whether a run would ask about commands of the project; None if it starts nothing.

    Raises:
        ConfigError: the user's configuration is unusable.
    """
    commands = project_commands(folder)
    rule = trust_rule()
    if not commands or rule == "off":
        return None
    store = trust_store()
    unseen = commands if store is None else store.unseen(folder)
    if not unseen:
        return CheckResult("ok", f"trust: all {len(commands)} commands and settings accepted")
    names = "\n".join(f"  {command_line(command)}" for command in unseen)
    hint = "`cuggino trust` accepts them; a run asks when it starts, and without a terminal "
    hint += "starts nothing" if rule == "require" else "starts them"
    status: CheckStatus = "problem" if rule == "require" else "note"
    return CheckResult(status, f"trust: you have not accepted yet what is started:\n{names}", hint)


def result_fragments(result: CheckResult) -> list[Fragment]:
    """Return the line of a result, with its hint indented below."""
    indent = "\n" + " " * _STATUS_COLUMNS
    fragments = [
        Fragment(_LABELS[result.status], f"{result.status:<{_STATUS_COLUMNS}}"),
        Fragment("plain", result.what.replace("\n", indent)),
    ]
    if result.hint:
        fragments.append(Fragment("prose", indent + result.hint.replace("\n", indent)))
    return fragments
