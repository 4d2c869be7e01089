"""Prompts for the sessions of the plan/build loop (LOP-051, LOP-061, LOP-085, LOP-099).

The prompts for planning and building are files of the project, sent verbatim. Only the prompt for
the verifying agent is rendered from a template.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from cuggino.errors import ConfigError, StorageError
from cuggino.files import describe, read_text
from cuggino.prompts.overriding import BUILD_PROMPT, PLAN_PROMPT
from cuggino.prompts.rendering import Prompts

PromptPhase: TypeAlias = Literal["plan", "build"]

VERIFY_JOB_VARIABLES = (
    "job_id",
    "requirement_code",
    "description",
    "facts",
    "build_command",
    "test_command",
)
"""The variables of the template that verifies a job."""

_JOBS_FILE = "docs/requirements/jobs-to-be-done.json"
_NO_JOBS = '{\n  "jobs": []\n}\n'


class PromptNotFound(ConfigError):
    """A missing prompt file: planning is then skipped, and building impossible."""


def init_plan_build(
    project: Path, *, plan_path: str = PLAN_PROMPT, build_path: str = BUILD_PROMPT
) -> tuple[str, ...]:
    """Create the missing ones of both prompts and the jobs file; return their paths.

    Nothing is overwritten, not even a dangling link (LOP-085).

    Raises:
        StorageError: one cannot be written.
    """
    texts = {
        plan_path: _template("plan_prompt"),
        build_path: _template("build_prompt"),
        _JOBS_FILE: _NO_JOBS,
    }
    return tuple(path for path, text in texts.items() if _make(project / path, text))


def read_prompt(phase: PromptPhase, path: str, project: Path) -> str:
    """Return the prompt: the file's text, without a byte order mark and with `\\n` line endings.

    The path is relative to the project, or absolute.

    Raises:
        PromptNotFound: the file is missing; the hint names the expected file.
        ConfigError: it is blank, not UTF-8 text, or cannot be read.
    """
    name = f"{phase.capitalize()} prompt"
    try:
        return read_text(project / path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise PromptNotFound(
            f"{name} not found: Prompt file not found: {path}", hint=f"Expected file: {path}"
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{name} {path}: {describe(error)}", hint="write what the agent is to do, as UTF-8 text"
        ) from error


def job_verification_prompt(
    prompts: Prompts,
    *,
    job_id: str,
    requirement_code: str,
    description: str,
    facts: str,
    build_command: str | None = None,
    test_command: str | None = None,
) -> str:
    """Return the prompt for verifying a job; the commands are the project's own (LOP-099).

    `facts` is a list of facts that the loop has found itself, so that the agent need not repeat
    them.

    Raises:
        ConfigError: a project's own template uses an unknown variable.
    """
    variables = {
        "job_id": _one_line(job_id),
        "requirement_code": _one_line(requirement_code),
        "description": _quoted(description),
        "facts": facts.strip(),
        "build_command": _with(build_command),
        "test_command": _with(test_command),
    }
    return prompts.render("verify_job", variables)


def build_verification_prompt(prompts: Prompts) -> str:
    """Return the prompt for verifying the build of a project without a build command.

    Raises:
        ConfigError: a project's own template uses a variable.
    """
    return prompts.render("verify_build", {})


def check_verification_prompts(prompts: Prompts) -> None:
    """Render both templates, so that an error shows before an agent works.

    Raises:
        ConfigError: a project's own template uses an unknown variable, or is unreadable.
    """
    prompts.render("verify_job", dict.fromkeys(VERIFY_JOB_VARIABLES, ""))
    build_verification_prompt(prompts)


def _template(role: str) -> str:
    return Prompts().render(role, {})


def _make(path: Path, text: str) -> bool:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="") as file:
            try:
                file.write(text)
                file.flush()
            except OSError:
                with suppress(OSError):
                    path.unlink()
                raise
    except FileExistsError:
        return False
    except OSError as error:
        raise StorageError(
            "create plan_build file",
            f"{path}: {error.strerror or error}",
            hint="check the permissions and the free space of the folder",
        ) from error
    return True


def _with(command: str | None) -> str:
    return f"with `{_one_line(command)}`" if command else "as the project's files say"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines() or ["(nothing)"])
