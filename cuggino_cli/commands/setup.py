"""`cuggino setup`: asks for the settings of a project and saves them (CUG-074, CUG-075)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cuggino_cli.completing import agent_names
from cuggino_cli.manual import manual

if TYPE_CHECKING:
    from cuggino.config import Config
    from cuggino_cli.existing import Existing
    from cuggino_cli.questions import Value

_KEY_COLUMNS = 16


@click.command(
    "setup",
    epilog=manual(
        ("cuggino setup", "Ask six or seven questions."),
        (
            'cuggino setup --yes --check-command "make test" --gate block --commit',
            "For scripts: ask nothing.",
        ),
        ("cuggino setup --yes --guard full", "Change one setting, keep the others."),
        exits="0 saved, 2 nothing was saved, 130 interrupted.",
        see=("doctor", "run", "help config"),
    ),
)
@click.option("--specs-path", metavar="FOLDER", help="Where the specifications are.")
@click.option("--max-iterations", type=click.IntRange(min=1), help="Rounds that a run may take.")
@click.option("--setup-command", metavar="COMMAND", help='Run after each planning; "" for none.')
@click.option("--check-command", metavar="COMMAND", help='Run before each review; "" for none.')
@click.option(
    "--gate",
    type=click.Choice(["context", "block"]),
    help="Whether a failing check command blocks an approval.",
)
@click.option(
    "--guard",
    type=click.Choice(["roles", "full", "off"]),
    help="What holds agents back: their roles, a list of programs as well, or nothing.",
)
@click.option("--commit/--no-commit", default=None, help="Commit after each task.")
@click.option("--audit/--no-audit", default=None, help="Audit in the idle time of a watch.")
@click.option(
    "--agent",
    "-a",
    metavar="NAME",
    help="See `cuggino agents`; or scripted:FILE.",
    shell_complete=agent_names,
)
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: take the present values.")
def command(yes: bool, **flags: Any) -> int:
    """Save the settings of this project in .cuggino.json.

    What is given as an option is not asked.
    """
    from cuggino.config import save_config
    from cuggino_cli.existing import keep_beside, read_existing

    folder = Path.cwd()
    existing = read_existing(folder)
    given: dict[str, Value] = {name: value for name, value in flags.items() if value is not None}
    if existing.problem is not None:
        _note(f"{existing.problem.message}; the defaults take its place.")
    if not yes:
        given = _ask_rest(existing, given)
    config = _settled(folder, existing.config, given)
    if existing.problem is not None:
        kept = keep_beside(folder, existing.content)
        _note(f"The file that could not be used is kept as {kept.name}.")
    save_config(folder, config)
    click.echo(summary(config), nl=False)
    _tell_next(folder, config)
    return 0


def on_terminal() -> bool:
    """Whether somebody can be asked: both streams are a terminal."""
    return all(
        stream is not None and not stream.closed and stream.isatty()
        for stream in (sys.stdin, sys.stdout)
    )


def summary(config: Config) -> str:
    """What was saved, one aligned line a key, between empty lines."""
    from cuggino_cli.output.sanitize import inert

    rows = {
        "specsPath": config.specs_path,
        "maxIterations": str(config.max_iterations),
        "setupCommand": config.setup_command or "(none)",
        "checkCommand": config.check_command or "(none)",
        "commit": str(config.commit).lower(),
        "audit": str(config.audit).lower(),
    }
    if config.gate != "context":
        rows["gate"] = config.gate
    if config.guard != "roles":
        rows["guard"] = config.guard
    text = "\nConfiguration saved to .cuggino.json:\n\n"
    for key, value in rows.items():
        shown = inert(value).replace("\n", "\n" + " " * (2 + _KEY_COLUMNS))
        text += f"  {key + ':':<{_KEY_COLUMNS}}{shown}\n"
    return text + "\n"


def _note(text: str) -> None:
    """Say something beside the result."""
    from cuggino_cli.output.sanitize import inert

    click.echo(inert(text), err=True)


def _ask_rest(existing: Existing, given: Mapping[str, Value]) -> dict[str, Value]:
    """The given settings and the answers to all questions that they leave open."""
    from cuggino_cli.questions import GATE, QUESTIONS, ask

    values = dict(given)
    terminal = on_terminal()
    missing = []
    try:
        for question in QUESTIONS:
            needless = question is GATE and not str(values.get("check_command") or "").strip()
            if question.field in given or needless:
                continue
            if not terminal:
                missing.append(question.flag)
                continue
            default = getattr(existing.config, question.field)
            if question is GATE and existing.new:
                default = "block"
            values[question.field] = ask(question, default)
    except (KeyboardInterrupt, EOFError):
        _note("Nothing was saved.")
        raise click.Abort from None
    if missing:
        raise click.UsageError(
            f"Nobody can be asked without a terminal: add --yes, or give {', '.join(missing)}."
        )
    return values


def _settled(folder: Path, config: Config, given: Mapping[str, Value]) -> Config:
    """The configuration with the given settings in place of its own.

    Raises:
        ConfigError: a setting, or the settings together, cannot be used.
    """
    from pydantic.alias_generators import to_camel

    from cuggino.config import parse_config
    from cuggino.errors import ConfigError

    values = {**config.model_dump(), **given}
    values["specs_path"] = str(values["specs_path"]).strip()
    has_check = bool(str(values["check_command"] or "").strip())
    if values["gate"] == "block" and not has_check and "gate" not in given:
        values["gate"] = "context"
        _note("The gate is off now: there is no check command.")
    raw = {to_camel(name): value for name, value in values.items()}
    hint = "nothing was saved; correct the option"
    for key, value in raw.items():
        if not _storable(str(value)):
            raise ConfigError(f'"{key}" is not UTF-8', hint=hint)
    try:
        settled = parse_config(raw)
    except ConfigError as error:
        raise ConfigError(error.message, hint=hint) from error
    if "agent" in given:
        from cuggino.agents import make_agent

        make_agent(settled.agent, cwd=folder, path=settled.agent_path)
    return settled


def _storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _tell_next(folder: Path, config: Config) -> None:
    from cuggino_cli.output.sanitize import inert

    if not (folder / config.specs_path).is_dir():
        click.echo(
            f"Next: write the specifications in the folder {inert(config.specs_path)}, "
            "which does not exist yet."
        )
