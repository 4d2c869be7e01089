"""`cuggino guard`: what the guard says of a command, of many, of a run that was."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cuggino.security.roles import ROLES
from cuggino_cli.completing import run_ids
from cuggino_cli.follow import OutputOptions, stdout_terminal
from cuggino_cli.manual import manual

if TYPE_CHECKING:
    from cuggino.config import Config
    from cuggino.security.policy import Level
    from cuggino.security.roles import Role
    from cuggino_cli.output.terminal import ColorMode, Terminal

_COMMAND_TOOLS = ("Bash", "Monitor", "PowerShell")

_level_option = click.option(
    "--level",
    type=click.Choice(["roles", "full"]),
    help="roles: any program, files by the role. full: listed programs only.",
)
_color_option = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="When to use colours; NO_COLOR counts for auto.",
)


@click.group(
    "guard",
    epilog=manual(
        ("cuggino guard check 'git diff && rm -rf build'", "Part by part, with the reason."),
        (
            "cuggino guard check --role planning --tool Write --path src/app.py",
            "May a planning agent write that file?",
        ),
        (
            "cuggino guard audit 0193b2c1 --level full",
            "What of a run would be denied by a stricter setting.",
        ),
        see=("doctor", "runs", "help config"),
    ),
)
def command() -> None:
    """Ask what the guard says of what an agent does; nothing is run.

    The guard looks at each tool call of an agent before it is made: the command line as bash reads
    it, and the files that are written. The setting "guard" in .cuggino.json is "roles" (the
    default), "full" or "off".

    What it promises: no command line names a program that is not listed ("full"), and no visible
    write goes where the role may not write. What it cannot promise: an interpreter, a test, a build
    or a git hook that is allowed to run can do anything that you may. The sandbox is the boundary,
    the guard is the seat belt.
    """


@command.command(
    "check",
    epilog=manual(
        (
            "cuggino guard check --profile python 'pytest -q | tail'",
            "With the programs of one language.",
        ),
        ("cuggino guard check --role implementing 'make install'", "By the level of roles."),
        (
            "cuggino guard check --file cases.jsonl --json",
            "Judge many: id, tool, input, options on each line.",
        ),
        exits="0 allowed (or every line of the file judged), 1 denied, 2 wrong usage.",
    ),
)
@click.argument("command_line", metavar="[COMMAND]", required=False)
@click.option("--profile", "profiles", metavar="NAME", multiple=True, help="Only these languages.")
@click.option("--role", type=click.Choice(ROLES), help="Who asks; files are judged by it.")
@_level_option
@click.option("--tool", metavar="NAME", help="Another tool than Bash, such as Write.")
@click.option("--path", metavar="FILE", help="The file that the tool writes.")
@click.option("--allow-destructive", is_flag=True, help="Allow rm and mv within the project.")
@click.option(
    "--allow-command", "commands", metavar="NAME", multiple=True, help="Allow one more program."
)
@click.option(
    "--cwd",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where the agent is; a folder that is not in this one is taken for the project.",
)
@click.option(
    "--file",
    "cases",
    metavar="CASES.jsonl",
    help="Judge a case a line, - for standard input; one verdict a line.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
@_color_option
def check(
    command_line: str | None,
    profiles: tuple[str, ...],
    role: Role | None,
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

    It is judged as in this project, by its .cuggino.json and the options in front of that. Without
    --role and --level the command policy ("full") is applied; with a role, the configured level.

    A line of CASES.jsonl is an object with id, tool, input and options (profiles,
    allow_destructive, extra_commands, extra_pkill_targets, cwd, project_dir, mode, level).
    """
    given = (command_line, tool, path, role, level, cwd, *profiles, *commands)
    if cases is not None:
        if any(value is not None for value in given) or allow_destructive:
            raise click.UsageError("With --file each line says all of its case: give no more.")
        return _check_file(cases, as_json=as_json, terminal=_terminal(color))
    return _check_one(
        *_call(command_line, tool, path),
        config=_config(profiles, commands, allow_destructive),
        role=role,
        level=level,
        cwd=cwd,
        as_json=as_json,
        terminal=_terminal(color),
    )


@command.command(
    "audit",
    epilog=manual(
        ("cuggino guard audit 0193b2c1", "By the present settings."),
        ("cuggino guard audit 0193b2c1 --json", "Each denied call as an object."),
        exits="0 none would be denied, 1 some would, 2 wrong usage.",
    ),
)
@click.argument("run_id", metavar="RUN", shell_complete=run_ids)
@_level_option
@click.option("--json", "as_json", is_flag=True, help="Print each denied call as a JSON object.")
@_color_option
def audit(run_id: str, level: Level | None, as_json: bool, color: ColorMode) -> int:
    """Judge the tool calls of a recorded run, and list those that would be denied.

    RUN is the id of a run, or how it begins; see `cuggino runs`. Each call is judged by the policy
    of the role that made it, at the level of that run, with the present .cuggino.json (those of
    `cuggino deliver` at full, with the run's own settings and the present .autonoe/agent.json), and
    as made in the project's folder: where an agent had changed to is not recorded.
    """
    from cuggino_cli.guard_audit import Audit
    from cuggino_cli.recorded import Runs

    folder = Path.cwd()
    path = Runs(folder).find(run_id)
    terminal = _terminal(color)
    found = Audit(folder, _config(), path, level=level)
    for call in found.denied():
        if as_json:
            _write_json(call.as_json())
        else:
            terminal.print(call.fragments())
    if not as_json:
        terminal.print(found.summary())
    return 1 if found.denials else 0


def _call(command_line: str | None, tool: str | None, path: str | None) -> tuple[str, Any]:
    """The tool and its input."""
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
    """The configuration of the project with what was given."""
    from cuggino.config import changed_config, load_config
    from cuggino.security.extensions import allowed_commands

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
    role: Role | None,
    level: Level | None,
    cwd: Path | None,
    as_json: bool,
    terminal: Terminal,
) -> int:
    from cuggino.config import configured_policy
    from cuggino.security.shell.shfmt import find_shfmt
    from cuggino.security.tools import judge
    from cuggino_cli.output.verdicts import verdict_fragments, verdict_json

    project = Path.cwd()
    place = project if cwd is None else cwd.resolve()
    if not place.is_relative_to(project.resolve()):
        project = place
    if level is None:
        level = "roles" if role is not None and config.guard != "full" else "full"
    policy = configured_policy(config, role, project=project, level=level)
    verdict = judge(policy, tool, tool_input, str(place), shfmt=find_shfmt())
    if as_json:
        _write_json(verdict_json(verdict))
    else:
        terminal.print(verdict_fragments(verdict))
    return 0 if verdict.is_allowed else 1


def _check_file(name: str, *, as_json: bool, terminal: Terminal) -> int:
    from cuggino.security.shell.shfmt import find_shfmt
    from cuggino.security.tools import judge
    from cuggino.security.verdict import denied
    from cuggino_cli.guard_cases import BadLine, read_cases
    from cuggino_cli.output.verdicts import part_fragments, verdict_json

    shfmt = find_shfmt()
    for case in read_cases(_lines(name), here=Path.cwd()):
        if isinstance(case, BadLine):
            verdict = denied(f"line {case.number}", case.reason)
        else:
            verdict = judge(case.policy, case.tool, case.input, case.cwd, shfmt=shfmt)
        if as_json:
            _write_json({"id": case.id, **verdict_json(verdict)})
        else:
            title = str(case.id if case.id is not None else verdict.parts[0].text)
            terminal.print(part_fragments(title, verdict.reason))
    return 0


def _lines(name: str) -> list[bytes]:
    from cuggino.errors import ConfigError

    if name == "-":
        return sys.stdin.buffer.readlines()
    try:
        with Path(name).open("rb") as file:
            return file.readlines()
    except OSError as error:
        raise ConfigError(f"--file {name} cannot be read: {error.strerror}") from error


def _terminal(color: ColorMode) -> Terminal:
    return stdout_terminal(OutputOptions(verbose=False, quiet=False, json=False, color=color))


def _write_json(value: dict[str, Any]) -> None:
    click.echo(json.dumps(value))
