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

The sections are the roles; each table of a section is one run of that role, in order. A step can
use a tool of an MCP server that the session has::

    [[coding]]
    [[coding.steps]]
    tool = "set_deliverable_status"
    input = { deliverableId = "DL-001", status = "passed" }

The server is started for real, and the first that has the tool is asked; `server/tool` says which.

The further kinds of steps are those of `Step`; these are there to try what happens when an agent
fails::

    [[implementing]]
    [[implementing.steps]]
    usage = { input_tokens = 9000, output_tokens = 400 }     # tokens, told at once
    [[implementing.steps]]
    limit = { status = "rejected", resets_in = 3600 }        # a usage limit, lifted in an hour
    [[implementing.steps]]
    fail = { status = 429, text = "You've hit your limit" }  # the session ends with an error
    [[implementing.resumed]]                                 # ... and this when it is gone on with
    say = "<DONE>Done after all.</DONE>"

`fail = { status = 529, error = "overloaded_error" }` is an overloaded API, a status of 500 one that
is broken, `error = "connection_failed"` without a status one that cannot be reached.

A session that is resumed plays the `reminder` of its run if it is asked for a missing marker, else
`resumed`. Without `resumed` it plays the steps of the run behind the one at which it was ended, or
all of them when none is left, or when another process began it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from cuggino.errors import ConfigError

_KINDS = (
    *("say", "think", "write", "append", "delete", "run", "tool"),
    *("sleep", "usage", "limit", "fail", "raw", "exit"),
)


class TokenCounts(BaseModel):
    """What one message of the model takes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    cache_read_tokens: int = Field(default=0, ge=0)
    cache_creation_tokens: int = Field(default=0, ge=0)


class Limit(BaseModel):
    """What the program reports of a usage limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: str = "rejected"
    """`allowed`, `allowed_warning` or `rejected`."""
    resets_in: float | None = None
    """Seconds from then on until it is lifted, negative for a time that is past."""
    type: str = "five_hour"


class Failure(BaseModel):
    """An error of the API that the program could not overcome."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: int | None = Field(default=None, ge=400, le=599)
    """That of the HTTP response; None when there was none."""
    error: str = "api_error"
    """Its type in the API's words, or `connection_failed`."""
    text: str = "API Error"
    """What the program says about it."""


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
    tool: str | None = Field(default=None, pattern=r"^([^/]+/\S+|[^/\s]+)$")
    """A tool of an MCP server to call with `input`, by its name there or as `server/name`."""
    input: dict[str, JsonValue] = Field(default_factory=dict)
    """What `tool` is called with; variables are put in each of its texts."""
    sleep: float | None = None
    """Seconds of silence."""
    usage: TokenCounts | None = None
    """A message of the model is complete, and took these tokens."""
    limit: Limit | None = None
    """The program reports a usage limit, and goes on."""
    fail: Failure | None = None
    """End at once with this error as the result."""
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
        if self.input and self.tool is None:
            raise ValueError("only a step with a tool has an input")
        return self

    def orders(self) -> dict[str, Any]:
        """The step for the program that plays it: what it is, and nothing that it is not."""
        given = self.model_dump(exclude_none=True, exclude={"input"})
        return given | ({"input": self.input} if self.tool is not None else {})


class Run(BaseModel):
    """One session of a scripted agent."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: tuple[Step, ...] = ()
    reminder: tuple[Step, ...] = ()
    """What it does when it is asked again, since it had ended without a terminal marker."""
    resumed: tuple[Step, ...] = ()
    """What it does when it is gone on with for another reason, such as an error that has passed."""
    cost_usd: float = 0.0
    """US dollars that each of its processes tells at its end."""


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
    initializer: tuple[Run, ...] = ()
    coding: tuple[Run, ...] = ()
    sync: tuple[Run, ...] = ()
    verify: tuple[Run, ...] = ()
    plan: tuple[Run, ...] = ()
    build: tuple[Run, ...] = ()
    judge: tuple[Run, ...] = ()

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
