"""Scenarios: what a scripted agent does, written down in a TOML file.

::

    pause = 0.3                         # seconds before each step

    [[planning]]                        # the first planning agent
    cost_usd = 0.01
    [[planning.steps]]
    say = "Reading the specifications."
    [[planning.steps]]
    write = "$CUGGINO_PLAN_FILE"        # variables of the agent's environment are put in
    text = "# Plan ..."
    [[planning.steps]]
    run = "python3 -m unittest"         # the Bash tool
    [[planning.steps]]
    say = "<PLAN_COMPLETE>Two tasks.</PLAN_COMPLETE>"

The sections are the roles; each table of a section is one run of that role, in order.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from cuggino.errors import ConfigError

_KINDS = ("say", "think", "write", "append", "delete", "run", "sleep", "raw", "exit")


class Step(BaseModel):
    """One deed of a scripted agent: exactly one of its kinds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    say: str | None = None
    """Text of the model, markers included."""
    think: str | None = None
    """Reasoning of the model."""
    write: str | None = None
    """A file to write, with `text`."""
    append: str | None = None
    """A file to append `text` to."""
    delete: str | None = None
    """A file to remove."""
    run: str | None = None
    """A shell command, in a session of its own as Claude Code's Bash tool does it."""
    sleep: float | None = None
    """Seconds of silence."""
    raw: str | None = None
    """A line for standard output as it is, to play a broken agent."""
    exit: int | None = None
    """End at once with this exit code and without a result; `text` goes to standard error."""
    text: str = ""

    @model_validator(mode="after")
    def _one_kind(self) -> Step:
        kinds = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            found = " and ".join(kinds) or "none"
            raise ValueError(f"a step has exactly one of {', '.join(_KINDS)}; this has {found}")
        return self


class Run(BaseModel):
    """One session of a scripted agent."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: tuple[Step, ...] = ()
    reminder: tuple[Step, ...] = ()
    """What it does when it is asked again, since it had ended without a terminal marker."""
    cost_usd: float = 0.0


class Scenario(BaseModel):
    """The runs of every role, and how they are paced."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pause: float = Field(default=0.0, ge=0)
    """Seconds before each step."""
    repeat: bool = False
    """Repeat the last run of a role when it has no further one."""
    planning: tuple[Run, ...] = ()
    implementing: tuple[Run, ...] = ()
    reviewing: tuple[Run, ...] = ()
    audit: tuple[Run, ...] = ()

    def runs(self, role: str | None) -> tuple[Run, ...]:
        """The runs of a role; of an unknown role there are none."""
        runs: tuple[Run, ...] = getattr(self, role or "", ())
        return runs


def load_scenario(path: Path) -> Scenario:
    """The scenario in the file.

    Raises:
        ConfigError: the file is missing, is not TOML, or holds something else than a scenario.
    """
    try:
        raw: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        return Scenario.model_validate(raw)
    except OSError as error:
        raise ConfigError(f"scenario {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"scenario {path} is not valid TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        message = first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"scenario {path}, {where or 'top'}: {message}") from error
