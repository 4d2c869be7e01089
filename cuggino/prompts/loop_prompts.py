"""What the sessions of the plan/build loop are told (LOP-051, LOP-061, LOP-085, LOP-099).

The prompts for planning and building belong to the project: they are files in it, sent as they are.
Only the verifying agent is told something that is made for the occasion.
"""

from __future__ import annotations

import stat
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from cuggino.errors import ConfigError, StorageError
from cuggino.prompts import Prompts

PLAN_PROMPT = "PLAN.PROMPT.md"
BUILD_PROMPT = "BUILD.PROMPT.md"

PromptPhase: TypeAlias = Literal["plan", "build"]

VERIFY_JOB_VARIABLES = (
    "job_id",
    "requirement_code",
    "description",
    "facts",
    "build_command",
    "test_command",
)
"""Which variables the template may use by which a job is verified."""

_JOBS_FILE = "docs/requirements/jobs-to-be-done.json"
_NO_JOBS = '{\n  "jobs": []\n}\n'


class PromptNotFound(ConfigError):
    """The file of a prompt is not there: planning is then left out, and nothing can be built."""


def init_loop(
    project: Path, *, plan_path: str = PLAN_PROMPT, build_path: str = BUILD_PROMPT
) -> tuple[str, ...]:
    """Make those that are missing of both prompts and the jobs file; gives their paths.

    Nothing is ever overwritten: whatever has the name, a link to nothing too, stays (LOP-085).

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
    """The prompt as it is sent: the file's text, without a byte order mark, lines ended by `\\n`.

    The path is relative to the project, or absolute.

    Raises:
        PromptNotFound: there is no such file; its hint names the file that is expected.
        ConfigError: it is blank, no text, no UTF-8, or cannot be read.
    """
    name, file = f"{phase.capitalize()} prompt", project / path
    try:
        if not stat.S_ISREG(file.stat().st_mode):  # the read of a pipe would never end
            raise ConfigError(f"{name} {path} is not a file")
        text = file.read_bytes().decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise PromptNotFound(
            f"{name} not found: Prompt file not found: {path}", hint=f"Expected file: {path}"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{name} {path} is not UTF-8 (byte {error.start})", hint="save the file as UTF-8"
        ) from error
    except OSError as error:
        raise ConfigError(f"{name} {path} cannot be read ({error.strerror or error})") from error
    if "\0" in text:
        raise ConfigError(f"{name} {path} is not a text: it holds a NUL character")
    if not text.strip():
        raise ConfigError(f"{name} {path} is blank", hint="write into it what the agent is to do")
    return text.replace("\r\n", "\n").replace("\r", "\n")


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
    """What the agent is told that verifies a job; the commands are the project's own (LOP-099).

    `facts` is a list of what the loop has found out itself, so that it need not be done again.

    Raises:
        ConfigError: a project's own template uses a variable that there is not.
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
    """What the agent is told that verifies the build where the project names no command for it.

    Raises:
        ConfigError: a project's own template uses a variable.
    """
    return prompts.render("verify_build", {})


def check_verification_prompts(prompts: Prompts) -> None:
    """Render both once, so that a bad one is known before an agent works.

    Raises:
        ConfigError: a project's own template uses a variable that there is not, or is unreadable.
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
            "make loop file",
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
