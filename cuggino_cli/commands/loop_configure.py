"""`cuggino loop configure` (LOP-026 to LOP-030)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cuggino_cli.commands import setup
from cuggino_cli.follow import INTERRUPTED
from cuggino_cli.loop_settings import load_settings, user_file
from cuggino_cli.manual import manual

if TYPE_CHECKING:
    from cuggino.config.loop_config import PlanBuildConfig

_KEYS = {
    "model": "model",
    "planPromptPath": "plan_prompt_path",
    "buildPromptPath": "build_prompt_path",
    "allowAll": "allow_all",
    "stream": "stream",
    "autoCommit": "auto_commit",
    "logLevel": "log_level",
    "verifyAfterIteration": "verify_after_iteration",
    "verifyModel": "verify_model",
    "verify.build": "verify_build",
    "verify.test": "verify_test",
    "protectedBranches": "protected_branches",
    "agent": "agent",
}
"""Of each key its field, in the order in which they are shown."""

_FLAGS = {
    "model": "model",
    "plan_prompt": "planPromptPath",
    "build_prompt": "buildPromptPath",
    "allow_all": "allowAll",
}
_KEY_COLUMNS = 22


@click.command(
    "configure",
    epilog=manual(
        ("cuggino loop configure", "Ask for all settings."),
        ("cuggino loop configure --model claude-opus-4.5 --project", "Save one, for this project."),
        ("cuggino loop configure --show", "Each value, and where it comes from."),
        exits="0 saved or shown, 2 wrong usage or nobody to ask, 130 cancelled.",
        see=("help config",),
    ),
)
@click.option("--model", "-m", metavar="M", help="The model that agents are asked to use.")
@click.option("--plan-prompt", metavar="FILE", help="What the planning agent is told.")
@click.option("--build-prompt", metavar="FILE", help="What a building agent is told.")
@click.option(
    "--allow-all/--no-allow-all", default=None, help="Let agents use any program, or listed ones."
)
@click.option("--project", "is_project", is_flag=True, help="Change the project's file.")
@click.option("--reset", is_flag=True, help="Remove the file.")
@click.option("--show", is_flag=True, help="Show each value, and where it comes from.")
def command(is_project: bool, reset: bool, show: bool, **flags: Any) -> int:
    """Ask for the settings of the loop and save them in ~/.lopen/loop-config.json.

    What is given as an option is saved, and nothing is asked. The project's own file is
    .lopen/loop-config.json; what stands in it goes before the user's.
    """
    folder = Path.cwd()
    context = click.get_current_context()
    if show:
        _show(folder, load_settings(folder, context.obj))
        return 0
    file = _file(folder, is_project=is_project)
    if reset:
        from cuggino.config.loop_config import reset_loop_config

        reset_loop_config(file)
        click.echo("Configuration reset to defaults.")
        return 0
    changes = {_FLAGS[name]: value for name, value in flags.items() if value is not None}
    if not changes:
        if not setup.on_terminal():
            raise click.UsageError(
                "Nobody can be asked without a terminal: give an option, such as --model."
            )
        from cuggino_cli.loop_configure_questions import ask_settings

        try:
            changes = ask_settings(_present(folder, is_project=is_project))
        except (KeyboardInterrupt, EOFError):
            click.echo("Configuration cancelled.")
            compat = context.parent is not None and context.parent.params["compat_exit_codes"]
            return 0 if compat else INTERRUPTED
    _save(folder, file, changes)
    return 0


def _file(folder: Path, *, is_project: bool) -> Path:
    from cuggino.config.loop_config import LOOP_CONFIG_FILE
    from cuggino.errors import ConfigError

    if is_project:
        return folder / LOOP_CONFIG_FILE
    file = user_file()
    if file is None:
        raise ConfigError("there is no home folder", hint="set HOME, or give --project")
    return file


def _present(folder: Path, *, is_project: bool) -> PlanBuildConfig:
    """The settings that the file's values are over: the project's have no say in the user's."""
    from cuggino.config.loop_config import load_loop_config

    if is_project:
        return load_settings(folder)
    return load_loop_config(Path.home()).config


def _save(folder: Path, file: Path, changes: dict[str, Any]) -> None:
    """Save the changes and say what holds now (LOP-027, LOP-028)."""
    from cuggino.config.loop_config import change_loop_config
    from cuggino_cli.output.sanitize import inert

    change_loop_config(file, changes)
    settings = load_settings(folder)
    click.echo("Configuration saved.")
    for title, value in (
        ("Model", settings.model),
        ("Plan Prompt", settings.plan_prompt_path),
        ("Build Prompt", settings.build_prompt_path),
        ("Stream", settings.stream),
    ):
        click.echo(f"  {title}: {inert(_told(value))}")
    for key, value in changes.items():
        if getattr(settings, _KEYS[key]) != value:
            click.echo(f"cuggino: the file of the project has another {key}", err=True)


def _show(folder: Path, settings: PlanBuildConfig) -> None:
    """Each value with its origin; model and agent may be those of `.cuggino.json`."""
    from cuggino.config import Config, load_config
    from cuggino_cli.output.sanitize import inert

    shared = load_config(folder)
    for key, field in _KEYS.items():
        value, origin = getattr(settings, field), settings.origin_of(key)
        if key in ("model", "agent") and key not in settings.origins:
            other = getattr(shared, key)
            if other != Config.model_fields[key].default:
                value, origin = other, ".cuggino.json"
        click.echo(inert(f"{key + ':':<{_KEY_COLUMNS}}{_told(value)}  ({origin})"))


def _told(value: object) -> str:
    match value:
        case None:
            return "(none)"
        case bool():
            return str(value).lower()
        case tuple():
            return ", ".join(map(str, value)) or "(none)"
        case _:
            return str(value)
