"""What `cuggino loop configure` asks, in the order of the original (LOP-029)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from cuggino.config.loop_config import LogLevel
from cuggino_cli.loop_questions import say
from cuggino_cli.output.sanitize import inert
from cuggino_cli.questions import Question, ask, y_or_n, yes_or_no

if TYPE_CHECKING:
    from cuggino.config.loop_config import PlanBuildConfig

TITLE = "Loop Configuration"
MODELS = ("claude-opus-4.5", "claude-sonnet-4", "gpt-5", "gpt-5-mini", "gemini-3-pro")

_SETTINGS = {
    "model": "model",
    "planPromptPath": "plan_prompt_path",
    "buildPromptPath": "build_prompt_path",
    "stream": "stream",
    "allowAll": "allow_all",
    "verifyAfterIteration": "verify_after_iteration",
    "autoCommit": "auto_commit",
    "logLevel": "log_level",
}


def ask_settings(present: PlanBuildConfig) -> dict[str, Any]:
    """Ask for each setting, pre-filled with the present one; gives them by the keys of the file.

    Raises:
        KeyboardInterrupt: Ctrl-C.
        EOFError: Ctrl-D on an empty answer, or the terminal has gone.
    """
    models = list(dict.fromkeys((present.model, *MODELS)))
    say(TITLE)
    say("Models (a number, or any other name):")
    for number, model in enumerate(models, start=1):
        say(f"  {number}. {inert(model)}", indent="     ")
    return {
        question.field: ask(question, getattr(present, _SETTINGS[question.field]))
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
        Question(field="planPromptPath", flag="--plan-prompt", message="Plan prompt", parse=_file),
        Question(
            field="buildPromptPath", flag="--build-prompt", message="Build prompt", parse=_file
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


def _file(text: str) -> str:
    if not text.strip():
        raise ValueError("A file is needed")
    return text.strip()


def _level(text: str) -> str:
    if text.strip() not in get_args(LogLevel):
        raise ValueError("One of " + ", ".join(get_args(LogLevel)))
    return text.strip()
