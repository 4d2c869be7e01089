"""`cuggino guard`: verdicts on a command, a file of cases, or a recorded run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from cuggino import run
from cuggino.config import Config, changed_config, load_config
from cuggino.errors import ConfigError
from cuggino.guard import PERMISSION_SETS, Level, PermissionSet, allowed_commands
from cuggino.guard_audit import (
    BadLine,
    Case,
    JudgedCall,
    audit_run,
    check_call,
    judge_case,
    read_cases,
)
from cuggino.runs import Runs
from cuggino.runs.words import tool_text
from cuggino_cli.follow.output import color_option, plain_lines, write_json
from cuggino_cli.help.manual import manual
from cuggino_cli.options.completing import run_ids
from cuggino_cli.screen.fragments import Fragment, joined
from cuggino_cli.screen.terminal import ColorMode, Lines
from cuggino_cli.screen.verdicts import part_fragments, verdict_fragments, verdict_json

_COMMAND_TOOLS = ("Bash", "Monitor", "PowerShell")

_level_option = click.option(
    "--level",
    type=click.Choice(["roles", "full"]),
    help="roles: any program. full: listed programs only. [default: the run's]",
)


@click.group(
    "guard",
    epilog=manual(
        ("cuggino guard check 'git diff && rm -rf .git'", "Part by part, with the reason."),
        (
            "cuggino guard check --role planning --tool Write --path src/app.py",
            "May a planning agent write that file?",
        ),
        (
            "cuggino guard audit 0193b2c1 --level full",
            "The calls of a run that a stricter setting would deny.",
        ),
        see=("doctor", "runs", "help config"),
    ),
)
def command() -> None:
    """Ask the guard about an agent's tool calls; nothing is run.

    The guard checks every tool call of an agent before it runs: the command line as bash parses it,
    and the files that its tools write. The setting "guard" in .cuggino.json is "roles" (the
    default), "full" or "off".

    Both levels deny git that discards work or pushes, and publishing. Where no sandbox confines the
    role, and always at "full", they also deny visible writes to files that are not the role's.
    "check" judges as without a sandbox. "full" guarantees that no command line names an unlisted
    program. The guard cannot limit an interpreter, a test, a build or a git hook that is allowed to
    run: these can do anything that you may. The sandbox is the boundary. Where there is none
    ("cuggino doctor"), the guard is advice, and verification after each session is what protects.
    """


@command.command(
    "check",
    epilog=manual(
        (
            "cuggino guard check --profile python 'pytest -q | tail'",
            "With the programs of one language.",
        ),
        ("cuggino guard check --role deliver 'make install'", "As in cuggino deliver."),
        (
            "cuggino guard check --file cases.jsonl --json",
            "Judge many: id, tool, input, options on each line.",
        ),
        exits="0 allowed (or every line of the file judged), 1 denied, 2 wrong usage.",
    ),
)
@click.argument("command_line", metavar="[COMMAND]", required=False)
@click.option("--profile", "profiles", metavar="NAME", multiple=True, help="Only these languages.")
@click.option(
    "--role", type=click.Choice(PERMISSION_SETS), help="The agent's role, which limits files."
)
@_level_option
@click.option("--tool", metavar="NAME", help="The tool, such as Write. [default: Bash]")
@click.option("--path", metavar="FILE", help="The file that the tool writes.")
@click.option("--allow-destructive", is_flag=True, help="Allow rm and mv within the project.")
@click.option(
    "--allow-command", "commands", metavar="NAME", multiple=True, help="Allow one more program."
)
@click.option(
    "--cwd",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The agent's current folder; one outside this project is taken for the project.",
)
@click.option(
    "--file",
    "cases",
    metavar="CASES.jsonl",
    help="Judge one case per line, - for standard input; print one verdict per line.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
@color_option
def check(
    command_line: str | None,
    profiles: tuple[str, ...],
    role: PermissionSet | None,
    level: Level | None,
    tool: str | None,
    path: str | None,
    allow_destructive: bool,
    commands: tuple[str, ...],
    cwd: Path | None,
    cases: str | None,
    as_json: bool,
    color: ColorMode,
) -> int:
    """Explain the verdict on COMMAND, or on a file that a tool would write, part by part.

    The call is judged as in a run: the project's .cuggino.json applies, and the roles deliver,
    verify and sync also have its .autonoe/agent.json and the level "full". Options override these.
    The verdict names the level.

    A line of CASES.jsonl is an object with id, tool, input, role, level and options (profiles,
    allow_destructive, extra_commands, extra_pkill_targets, cwd, project_dir, mode, role, level).
    With a role, from the line or --role, it is judged as in a run in its project; without one by
    its options alone, at the level "full".
    """
    if cases is not None:
        given = (command_line, tool, path, cwd, *profiles, *commands)
        if any(value is not None for value in given) or allow_destructive:
            raise click.UsageError(
                "--file allows only --role and --level: each line is a whole case."
            )
        return _check_file(cases, role=role, level=level, as_json=as_json, lines=plain_lines(color))
    return _check_one(
        *_call(command_line, tool, path),
        config=_config(profiles, commands, allow_destructive),
        role=role,
        level=level,
        cwd=cwd,
        as_json=as_json,
        lines=plain_lines(color),
    )


@command.command(
    "audit",
    epilog=manual(
        ("cuggino guard audit 0193b2c1", "By the current settings."),
        ("cuggino guard audit 0193b2c1 --json", "Each denied call as an object."),
        exits="0 none would be denied, 1 some would, 2 wrong usage.",
    ),
)
@click.argument("run_id", metavar="RUN", shell_complete=run_ids)
@_level_option
@click.option("--json", "as_json", is_flag=True, help="Print each denied call as a JSON object.")
@color_option
def audit(run_id: str, level: Level | None, as_json: bool, color: ColorMode) -> int:
    """Judge the tool calls of a recorded run, and list those that would be denied.

    RUN is the id of a run, or a prefix of it; see `cuggino runs`. Each call is judged by the policy
    of its role, at the level of the run and with the current .cuggino.json. Runs of `cuggino
    deliver` are judged at level full, with their own settings and the current .autonoe/agent.json.
    All calls are judged as made in the project's folder: an agent's current folder is not recorded.
    """
    folder = Path.cwd()
    path = Runs(folder).path_of(run_id)
    lines = plain_lines(color)
    calls = denials = 0

    def show(judged: JudgedCall) -> None:
        nonlocal calls, denials
        calls += 1
        if judged.verdict.is_allowed:
            return
        denials += 1
        if as_json:
            write_json(_denied_json(judged))
        else:
            lines.print(_denied_fragments(judged))

    run(audit_run(path, project=folder, config=_config(), level=level), show)
    if not as_json:
        total = f"{calls} tool call{'s' * (calls != 1)}"
        lines.print([Fragment("plain", f"{denials} of {total} would be denied.")])
    return 1 if denials else 0


def _denied_json(judged: JudgedCall) -> dict[str, Any]:
    """Return a denied call with its place in the journal and the verdict."""
    return {
        "seq": judged.seq,
        "at": judged.at.isoformat(),
        "stage": judged.stage,
        "role": judged.role,
        "tool": judged.call.name,
        "input": judged.call.input,
        **verdict_json(judged.verdict),
    }


def _denied_fragments(judged: JudgedCall) -> list[Fragment]:
    """Return a denied call, and below it each denied part."""
    at = f"{judged.at.astimezone():%m-%d %H:%M:%S}"
    head = [
        Fragment("prose", f"{at} {judged.stage or judged.role} "),
        Fragment("tool", f"▶ {tool_text(judged.call.name, judged.call.input)}"),
    ]
    parts = [part for part in judged.verdict.parts if not part.is_allowed]
    return joined([head, *(part_fragments(part.text, part.reason) for part in parts)])


def _call(command_line: str | None, tool: str | None, path: str | None) -> tuple[str, Any]:
    tool = tool or ("Bash" if path is None else "Write")
    if tool in _COMMAND_TOOLS:
        if command_line is None or path is not None:
            raise click.UsageError("Give the COMMAND to judge, or --tool and --path, or --file.")
        return tool, {"command": command_line}
    if command_line is not None:
        raise click.UsageError(f"{tool} takes no COMMAND: give --path.")
    key = "notebook_path" if tool == "NotebookEdit" else "file_path"
    return tool, {} if path is None else {key: path}


def _config(
    profiles: tuple[str, ...] = (), commands: tuple[str, ...] = (), destructive: bool = False
) -> Config:
    """Return the configuration of the project with the given options."""
    config = load_config(Path.cwd())
    values: dict[str, Any] = {}
    if profiles:
        values["profile"] = list(profiles)
    if commands:
        tiers = allowed_commands(config.allow_commands)._asdict()
        tiers["base"] = (*tiers["base"], *commands)
        values["allow_commands"] = {tier: list(names) for tier, names in tiers.items()}
    if destructive:
        values["allow_destructive"] = True
    return changed_config(config, values)


def _check_one(
    tool: str,
    tool_input: dict[str, Any],
    *,
    config: Config,
    role: PermissionSet | None,
    level: Level | None,
    cwd: Path | None,
    as_json: bool,
    lines: Lines,
) -> int:
    checked = check_call(
        tool, tool_input, project=Path.cwd(), config=config, role=role, level=level, cwd=cwd
    )
    if as_json:
        write_json({**verdict_json(checked.verdict), "level": checked.level or "off"})
    else:
        lines.print(verdict_fragments(checked.verdict, checked.level))
    return 0 if checked.verdict.is_allowed else 1


def _check_file(
    name: str,
    *,
    role: PermissionSet | None,
    level: Level | None,
    as_json: bool,
    lines: Lines,
) -> int:
    for case in read_cases(_lines(name), here=Path.cwd(), role=role, level=level):
        verdict = judge_case(case)
        if as_json:
            write_json({"id": case.id, **verdict_json(verdict), **_level_json(case)})
        else:
            title = str(case.id if case.id is not None else verdict.parts[0].text)
            lines.print(part_fragments(title, verdict.reason))
    return 0


def _level_json(case: Case | BadLine) -> dict[str, str]:
    """Return the level of a case; a bad line has none."""
    if isinstance(case, BadLine):
        return {}
    return {"level": case.policy.level if case.policy is not None else "off"}


def _lines(name: str) -> list[bytes]:
    if name == "-":
        return sys.stdin.buffer.readlines()
    try:
        with Path(name).open("rb") as file:
            return file.readlines()
    except OSError as error:
        raise ConfigError(f"--file {name} cannot be read: {error.strerror}") from error
