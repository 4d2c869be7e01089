"""`cuggino loop configure` (LOP-026 to LOP-030)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click

from cuggino.config import (
    PLAN_BUILD_CONFIG_FILE,
    Config,
    LoadedPlanBuildConfig,
    LogLevel,
    PlanBuildConfig,
    change_plan_build_config,
    load_config,
    load_plan_build_config,
    reset_plan_build_config,
)
from cuggino.errors import ConfigError
from cuggino_cli.help.manual import manual
from cuggino_cli.options.plan_build import load_settings, user_file
from cuggino_cli.options.questions import Question, ask, say, y_or_n, yes_or_no
from cuggino_cli.screen import console
from cuggino_cli.screen.console import INTERRUPTED
from cuggino_cli.screen.text import inert

_KEYS = {
    "model": "model",
    "planPromptPath": "plan_prompt",
    "buildPromptPath": "build_prompt",
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
"""The field of each key, in display order."""

_FLAGS = {
    "model": "model",
    "plan_prompt": "planPromptPath",
    "build_prompt": "buildPromptPath",
    "allow_all": "allowAll",
}
_KEY_COLUMNS = 22
_TITLE = "Loop Configuration"
_MODELS = ("claude-opus-4.5", "claude-sonnet-4", "gpt-5", "gpt-5-mini", "gemini-3-pro")


@click.command(
    "configure",
    epilog=manual(
        ("cuggino loop configure", "Ask for all settings."),
        ("cuggino loop configure --model claude-opus-4.5 --project", "Save one, for this project."),
        ("cuggino loop configure --show", "Each value with its origin."),
        exits="0 saved or shown, 2 wrong usage, or no terminal to ask on, 130 cancelled.",
        see=("help config",),
    ),
)
@click.option("--model", "-m", metavar="M", help="The model of the agents.")
@click.option("--plan-prompt", metavar="FILE", help="The prompt of the planning agent.")
@click.option("--build-prompt", metavar="FILE", help="The prompt of the building agents.")
@click.option(
    "--allow-all/--no-allow-all", default=None, help="Allow any program, or listed ones only."
)
@click.option("--project", "is_project", is_flag=True, help="Change the project's file.")
@click.option("--reset", is_flag=True, help="Remove the file.")
@click.option("--show", is_flag=True, help="Show each value with its origin.")
def command(is_project: bool, reset: bool, show: bool, **flags: Any) -> int:
    """Ask for the settings of the loop and save them in ~/.lopen/loop-config.json.

    With options, those settings are saved and nothing is asked. The project's own file,
    .lopen/loop-config.json, overrides the user's.
    """
    folder = Path.cwd()
    context = click.get_current_context()
    if show:
        _show(folder, load_settings(folder, context.obj))
        return 0
    file = _file(folder, is_project=is_project)
    if reset:
        reset_plan_build_config(file)
        click.echo("Configuration reset to defaults.")
        return 0
    changes = {_FLAGS[name]: value for name, value in flags.items() if value is not None}
    if not changes:
        if not console.on_terminal():
            raise click.UsageError("No terminal to ask on: pass an option, such as --model.")
        try:
            changes = _ask_settings(_present(folder, is_project=is_project))
        except (KeyboardInterrupt, EOFError):
            click.echo("Configuration cancelled.")
            compat = context.parent is not None and context.parent.params["compat_exit_codes"]
            return 0 if compat else INTERRUPTED
    _save(folder, file, changes)
    return 0


def _file(folder: Path, *, is_project: bool) -> Path:
    if is_project:
        return folder / PLAN_BUILD_CONFIG_FILE
    file = user_file()
    if file is None:
        raise ConfigError("there is no home folder", hint="set HOME, or give --project")
    return file


def _present(folder: Path, *, is_project: bool) -> PlanBuildConfig:
    """Return the settings that the file overrides; the project's never affect the user's."""
    if is_project:
        return load_settings(folder).config
    return load_plan_build_config(Path.home()).config


def _save(folder: Path, file: Path, changes: dict[str, Any]) -> None:
    """Save the changes and print the resulting settings (LOP-027, LOP-028)."""
    change_plan_build_config(file, changes)
    settings = load_settings(folder).config
    click.echo("Configuration saved.")
    for title, value in (
        ("Model", settings.model),
        ("Plan Prompt", settings.plan_prompt),
        ("Build Prompt", settings.build_prompt),
        ("Stream", settings.stream),
    ):
        click.echo(f"  {title}: {inert(_text(value))}")
    for key, value in changes.items():
        if getattr(settings, _KEYS[key]) != value:
            click.echo(f"cuggino: the project's file overrides {key}", err=True)


def _show(folder: Path, loaded: LoadedPlanBuildConfig) -> None:
    """Print each value with its origin; model and agent may come from `.cuggino.json`."""
    shared = load_config(folder)
    for key, field in _KEYS.items():
        value, origin = getattr(loaded.config, field), loaded.origin_of(key)
        if key in ("model", "agent") and key not in loaded.origins:
            other = getattr(shared, key)
            if other != Config.model_fields[key].default:
                value, origin = other, ".cuggino.json"
        click.echo(inert(f"{key + ':':<{_KEY_COLUMNS}}{_text(value)}  ({origin})"))


def _text(value: object) -> str:
    match value:
        case None:
            return "(none)"
        case bool():
            return str(value).lower()
        case tuple():
            return ", ".join(map(str, value)) or "(none)"
        case _:
            return str(value)


def _ask_settings(current: PlanBuildConfig) -> dict[str, Any]:
    """Ask for each setting, with the current value pre-filled; return them by their keys.

    Raises:
        KeyboardInterrupt: Ctrl-C.
        EOFError: Ctrl-D on an empty answer, or the terminal was closed.
    """
    models = list(dict.fromkeys((current.model, *_MODELS)))
    say(_TITLE)
    say("Models (a number, or any other name):")
    for number, model in enumerate(models, start=1):
        say(f"  {number}. {inert(model)}", indent="     ")
    return {
        question.field: ask(question, getattr(current, _KEYS[question.field]))
        for question in _questions(models)
    }


def _questions(models: list[str]) -> tuple[Question, ...]:
    return (
        Question(
            field="model",
            flag="--model",
            message="Model",
            parse=lambda text: _model(text, models),
        ),
        Question(
            field="planPromptPath", flag="--plan-prompt", message="Plan prompt", parse=_file_name
        ),
        Question(
            field="buildPromptPath", flag="--build-prompt", message="Build prompt", parse=_file_name
        ),
        _toggle("stream", "Show the agent's words as they come"),
        _toggle("allowAll", "Let agents use any program"),
        _toggle("verifyAfterIteration", "Verify the build after each iteration"),
        _toggle("autoCommit", "Commit what an iteration leaves"),
        Question(field="logLevel", flag="", message="Log level (all, info, error)", parse=_level),
    )


def _toggle(field: str, message: str) -> Question:
    return Question(
        field=field, flag="", message=message, parse=yes_or_no, show=y_or_n, toggle=True
    )


def _model(text: str, models: list[str]) -> str:
    name = text.strip()
    if not name:
        raise ValueError("A model is needed")
    if not (name.isascii() and name.isdigit()):
        return name
    if len(name) > 2 or not 1 <= int(name) <= len(models):
        raise ValueError(f"A number from 1 to {len(models)}, or a name")
    return models[int(name) - 1]


def _file_name(text: str) -> str:
    if not text.strip():
        raise ValueError("A file is needed")
    return text.strip()


def _level(text: str) -> str:
    levels = get_args(LogLevel)
    if text.strip() not in levels:
        raise ValueError("One of " + ", ".join(levels))
    return text.strip()
