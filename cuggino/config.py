"""`.cuggino.json`: what it may hold, and how it is read and written (CUG-070 to CUG-074).

Unlike the original, a file that cannot be used is an error with its place and a proposal, never a
silent default: a run with other settings than the user believes costs a night.
"""

from __future__ import annotations

import difflib
import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.alias_generators import to_camel

from cuggino.errors import ConfigError

CONFIG_FILE = ".cuggino.json"
_LONGEST = 366 * 24 * 3600.0
"""Seconds that a limit may have: timers cannot wait for any number."""


class LoopSettings(BaseModel):
    """What the coding loop can be told, by a project's configuration or by a caller."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    specs_path: str = ".specs"
    """The folder with the specifications, relative to the project."""
    max_iterations: int = Field(default=10, ge=1)
    """How many plan-to-review rounds a run may take."""
    max_tasks_per_plan: int = Field(default=50, ge=1)
    """How many implementing agents may work on one plan before it is reviewed anyway."""
    setup_command: str | None = None
    """Run once after each planning, in a shell. Blank is absent."""
    check_command: str | None = None
    """Run before each implementing agent and before the review, in a shell. Blank is absent."""
    setup_strict: bool = False
    """End the run when the setup command fails."""
    command_timeout: float | None = Field(default=None, gt=0, le=_LONGEST)
    """Seconds that a setup or check command may take; absent means no limit."""
    gate: Literal["context", "block"] = "context"
    """`block`: an approval counts only if the check command before that review exited with 0."""
    commit: bool = False
    """Commit after each task."""
    push: str | None = None
    """Push after each commit, to `remote/branch`; absent means no push."""
    model: str | None = None
    """The model that the agent is asked to use; absent means the agent's own default."""
    budget: float | None = Field(default=None, gt=0)
    """US dollars that all agents of a run may spend together; absent means no limit."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens that all agents of a run may use together; absent means no limit."""
    max_duration: float | None = Field(default=None, gt=0, le=_LONGEST)
    """Seconds that a run may take, all its waiting included; absent means no limit."""
    wait_for_quota: bool = False
    """Wait until a usage limit is lifted and go on, instead of ending the run."""
    max_retries: int = Field(default=0, ge=0)
    """How often in a row an agent that failed in passing (overload, lost connection) is retried."""
    idle_timeout: float | None = Field(default=None, gt=0, le=_LONGEST)
    """Seconds that an agent may be silent while no tool runs; absent means no limit."""
    tool_timeout: float | None = Field(default=None, gt=0, le=_LONGEST)
    """Seconds that an agent may be silent while a tool runs; absent means no limit."""
    stage_timeout: float | None = Field(default=None, gt=0, le=_LONGEST)
    """Seconds that one agent's whole stage may take; absent means no limit."""
    progress_patience: int | None = Field(default=None, ge=1)
    """After how many implementing agents that changed nothing to plan anew, then to stop."""
    review_patience: int | None = Field(default=None, ge=1)
    """After how many reviews in a row with the same findings to stop."""
    journal: bool = False
    """Write down each run, so that it can be resumed and reported."""
    journal_days: int = Field(default=30, ge=1)
    """Days after which the journal of an ended run is removed."""
    journal_runs: int = Field(default=100, ge=1)
    """How many journals of ended runs are kept."""

    @field_validator("setup_command", "check_command", mode="after")
    @classmethod
    def _blank_is_absent(cls, value: str | None) -> str | None:
        return (value or "").strip() or None

    @field_validator("specs_path", mode="after")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value

    @field_validator("push", mode="after")
    @classmethod
    def _remote_and_branch(cls, value: str | None) -> str | None:
        # No URL: it would be shown with each push, and may hold a password.
        if value is not None and not re.fullmatch(r"[^/\s:-][^/\s:]*/[^/\s:+-][^\s:]*", value):
            raise ValueError('must be "remote/branch", such as "origin/main"')
        return value

    @model_validator(mode="after")
    def _gate_needs_a_check(self) -> Self:
        if self.gate == "block" and self.check_command is None:
            raise ValueError('"gate": "block" needs a "checkCommand", else no approval could count')
        return self


class Config(LoopSettings):
    """The settings of a project. Keys in the file are in camelCase."""

    model_config = ConfigDict(strict=True, alias_generator=to_camel, populate_by_name=True)

    max_retries: int = Field(default=3, ge=0)
    idle_timeout: float | None = Field(default=900.0, gt=0, le=_LONGEST)
    tool_timeout: float | None = Field(default=7200.0, gt=0, le=_LONGEST)
    progress_patience: int | None = Field(default=3, ge=1)
    review_patience: int | None = Field(default=3, ge=1)
    journal: bool = True
    commit_timeout: float = Field(default=600.0, gt=0, le=_LONGEST)
    """Seconds that a commit may take, its hooks and signature included, and a push as well."""
    audit: bool = False
    """Run the audit agent in the idle time of `watch`."""
    settle_seconds: float = Field(default=30.0, gt=0, le=_LONGEST)
    """Seconds without a change after which `watch` counts the files of a folder again."""
    max_attempts: int = Field(default=3, ge=1)
    """How often `watch` tries a backlog item that fails, before it is parked."""
    retry_seconds: float = Field(default=60.0, gt=0, le=_LONGEST)
    """Seconds before the second attempt; each further pause is twice as long, at most an hour."""
    on_max_iterations: Literal["complete", "park"] = "complete"
    """What becomes of a backlog item whose rounds are used up without an approval."""
    notify: str | list[str] = "bell"
    """How `watch` calls a person: `bell`, `none`, or one or several Apprise URLs."""
    agent: str = Field(default="claude", pattern=r"\S")
    """The agent: a name, or `scripted:FILE`."""
    agent_path: str | None = None
    """The agent's program, if it is not the one found on PATH."""

    @field_validator("notify", mode="after")
    @classmethod
    def _known_ways(cls, value: str | list[str]) -> str | list[str]:
        for way in [value] if isinstance(value, str) else value:
            if way not in ("bell", "none") and "://" not in way:
                raise ValueError('must be "bell", "none", or Apprise URLs such as "ntfy://topic"')
        return value


def config_path(folder: Path) -> Path:
    """Where the configuration of the project in `folder` is."""
    return folder / CONFIG_FILE


def load_config(folder: Path) -> Config:
    """The configuration of the project in `folder`; all defaults without a file or an empty one.

    Raises:
        ConfigError: the file cannot be read, is not JSON (with line and column), holds an unknown
            key (with the nearest valid one) or a value of a wrong type.
    """
    path = config_path(folder)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Config()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{CONFIG_FILE} is not UTF-8 (byte {error.start})", hint="save the file as UTF-8"
        ) from error
    except OSError as error:
        raise ConfigError(f"{CONFIG_FILE} cannot be read: {error.strerror}") from error
    text = text.removeprefix("\ufeff")
    if not text.strip():
        return Config()
    try:
        raw = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{CONFIG_FILE} line {error.lineno} column {error.colno}: not valid JSON ({error.msg})",
            hint="correct the file, or write a new one with `cuggino setup`",
        ) from error
    except (ValueError, RecursionError) as error:  # an endless number, a bottomless nesting
        raise ConfigError(
            f"{CONFIG_FILE}: not usable JSON ({error})",
            hint="correct the file, or write a new one with `cuggino setup`",
        ) from error
    if not isinstance(raw, dict):
        raise ConfigError(
            f"{CONFIG_FILE} holds {_json_type(raw)}, but must hold an object",
            hint="write a new one with `cuggino setup`",
        )
    return parse_config(raw)


def parse_config(raw: dict[str, Any], *, where: str = CONFIG_FILE) -> Config:
    """The configuration from its JSON object; raises `ConfigError` with one sentence."""
    known = {field.alias or name: name for name, field in Config.model_fields.items()}
    for key in raw:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            raise ConfigError(
                f'{where}: unknown key "{key}"',
                hint=f'did you mean "{near[0]}"?' if near else "valid keys: " + ", ".join(known),
            )
    try:
        return Config.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        message = first["msg"].removeprefix("Value error, ")
        if not first["loc"]:
            raise ConfigError(f"{where}: {message}") from error
        key = str(first["loc"][0])
        raise ConfigError(
            f'{where}: "{key}" is {_shown(raw.get(key))}: {message}',
            hint="correct the value, or write a new file with `cuggino setup`",
        ) from error


def changed_config(config: Config, values: dict[str, Any]) -> Config:
    """The configuration with these values, by their names in Python, in the place of its own.

    Raises:
        ConfigError: a value cannot be used.
    """
    return parse_config({**config.model_dump(by_alias=True), **_aliased(values)}, where="options")


def _aliased(values: dict[str, Any]) -> dict[str, Any]:
    return {Config.model_fields[name].alias or name: value for name, value in values.items()}


def save_config(folder: Path, config: Config) -> None:
    """Write the configuration as indented JSON with a final newline; absent values are left out.

    The six keys of the original are always written, others only where they differ from the default.
    """
    always = {"specs_path", "max_iterations", "setup_command", "check_command", "commit", "audit"}
    default = Config()
    kept = {
        field.alias or name: getattr(config, name)
        for name, field in Config.model_fields.items()
        if getattr(config, name) is not None
        and (name in always or getattr(config, name) != getattr(default, name))
    }
    path = config_path(folder)
    beside = path.with_name(path.name + ".tmp")
    try:
        text = json.dumps(kept, indent=2, ensure_ascii=False) + "\n"
        beside.write_text(text, encoding="utf-8", errors="replace")
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise ConfigError(
            f"{CONFIG_FILE} cannot be written in {folder}: {error.strerror}",
            hint="check the permissions of the folder",
        ) from error


def _json_type(value: object) -> str:
    match value:
        case list():
            return "a list"
        case str():
            return "a text"
        case None:
            return "null"
        case bool():
            return "a boolean"
        case _:
            return "a number"


def _shown(value: object) -> str:
    # Of a URL the scheme alone: the rest may hold a password.
    text = re.sub(r'://[^"]+', "://…", json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 60 else text[:57] + "..."
