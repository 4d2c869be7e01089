"""Scenarios: TOML files that define the behavior of a scripted agent.

::

    pause = 0.3                         # seconds before each step

    [[planning]]                        # the first planning agent
    cost_usd = 0.01
    [[planning.steps]]
    say = "Reading the specifications."
    [[planning.steps]]
    write = "$CUGGINO_PLAN_FILE"        # variables of the agent's environment are expanded
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

The servers are really started, and the first one that has the tool is called; `server/tool` names
a server.

A step can listen for a person's message (`cuggino steer`), for at most this number of seconds::

    [[implementing]]
    [[implementing.steps]]
    listen = 60
    [[implementing.steps]]
    say = "<DONE>You said: $CUGGINO_MESSAGE</DONE>"

Without a message the variable is empty. Messages to a session that no longer listens are added to
the next prompt.

`Step` describes the other kinds of steps. These simulate failures of an agent::

    [[implementing]]
    [[implementing.steps]]
    usage = { input_tokens = 9000, output_tokens = 400 }     # tokens, reported at once
    [[implementing.steps]]
    limit = { status = "rejected", resets_in = 3600 }        # a usage limit, lifted in an hour
    [[implementing.steps]]
    limit = { status = "allowed", used = 0.85, resets_in = 3600 }         # 85 % of a window
    [[implementing.steps]]
    limit = { status = "rejected", overage = true, resets_in = 3600 }     # paid for beyond it
    [[implementing.steps]]
    fail = { status = 429, text = "You've hit your limit" }  # the session ends with an error
    [[implementing.resumed]]                                 # ... and this when it is resumed
    say = "<DONE>Done after all.</DONE>"

A run with a `model` and without `cost_usd` reports no dollars, like most agents: they are estimated
from its `usage`::

    [[implementing]]
    model = "gpt-5.5"
    [[implementing.steps]]
    usage = { input_tokens = 9000, output_tokens = 400 }

`fail = { status = 529, error = "overloaded_error" }` simulates an overloaded API, `status = 500` a
broken one, and `error = "connection_failed"` without a status an unreachable one.

A resumed session plays the `reminder` of its run if it is asked for a missing marker, else
`resumed`, as when it is asked about an approval. Without `resumed` it plays the steps after the
one at which it was ended. If none are left, or if another process started the session, it plays all
steps of the run.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from cuggino.errors import ConfigError
from cuggino.files import read_regular

_KINDS = (
    *("say", "think", "write", "append", "delete", "run", "tool"),
    *("sleep", "listen", "usage", "limit", "fail", "raw", "exit"),
)


class TokenCounts(BaseModel):
    """The tokens of one message of the model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    cache_read_tokens: int = Field(default=0, ge=0)
    cache_creation_tokens: int = Field(default=0, ge=0)


class Limit(BaseModel):
    """A usage limit reported by the program."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: str = "rejected"
    """`allowed`, `allowed_warning` or `rejected`."""
    resets_in: float | None = None
    """Seconds until it is lifted; negative for a time in the past."""
    type: str = "five_hour"
    used: float | None = None
    """The used share of the window, from 0 to 1."""
    overage: bool = False
    """True if the work continues beyond the limit and is paid for."""


class Failure(BaseModel):
    """An API error that the program could not recover from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: int | None = Field(default=None, ge=400, le=599)
    """Status of the HTTP response; None if there was none."""
    error: str = "api_error"
    """Error type of the API, or `connection_failed`."""
    text: str = "API Error"
    """The program's message about it."""


class Step(BaseModel):
    """One step of a scripted agent, of exactly one kind."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    say: str | None = None
    """Text of the model, markers included."""
    think: str | None = None
    """Reasoning of the model."""
    write: str | None = None
    """A file to write with `text`."""
    append: str | None = None
    """A file to append `text` to."""
    delete: str | None = None
    """A file to remove."""
    run: str | None = None
    """A shell command, run in a new session like Claude Code's Bash tool."""
    tool: str | None = Field(default=None, pattern=r"^([^/]+/\S+|[^/\s]+)$")
    """An MCP tool to call with `input`, by its name or as `server/name`."""
    input: dict[str, JsonValue] = Field(default_factory=dict)
    """Input of `tool`; variables in its texts are expanded."""
    sleep: float | None = None
    """Seconds of silence."""
    listen: float | None = Field(default=None, ge=0)
    """Maximum seconds to wait for a person's message. Later steps find it in `$CUGGINO_MESSAGE`."""
    usage: TokenCounts | None = None
    """Report a complete message of the model with these tokens."""
    limit: Limit | None = None
    """Report a usage limit, and continue."""
    fail: Failure | None = None
    """End immediately with this error as the result."""
    raw: str | None = None
    """A raw line for standard output, to simulate a broken agent."""
    exit: int | None = None
    """End immediately with this exit code and without a result; `text` goes to standard error."""
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
        """Return the step for the program, without unset fields."""
        given = self.model_dump(exclude_none=True, exclude={"input"})
        return given | ({"input": self.input} if self.tool is not None else {})


class ScenarioRun(BaseModel):
    """One session of a scripted agent."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: tuple[Step, ...] = ()
    reminder: tuple[Step, ...] = ()
    """Steps of a session that is asked for its missing terminal marker."""
    resumed: tuple[Step, ...] = ()
    """Steps of a session that is resumed for another reason, such as a transient error."""
    cost_usd: float | None = None
    """US dollars that each of its processes reports at its end. Default: 0 without a model; none
    with one, so that they are estimated from the tokens."""
    model: str | None = None
    """The model that it reports."""

    @property
    def reported_usd(self) -> float | None:
        """Return the US dollars that are reported; None reports none."""
        return 0.0 if self.cost_usd is None and self.model is None else self.cost_usd


class Scenario(BaseModel):
    """The runs of every role, and their pace."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pause: float = Field(default=0.0, ge=0)
    """Seconds before each step."""
    repeat: bool = False
    """Repeat the last run of a role when it has no further one."""
    planning: tuple[ScenarioRun, ...] = ()
    implementing: tuple[ScenarioRun, ...] = ()
    reviewing: tuple[ScenarioRun, ...] = ()
    audit: tuple[ScenarioRun, ...] = ()
    initializer: tuple[ScenarioRun, ...] = ()
    coding: tuple[ScenarioRun, ...] = ()
    sync: tuple[ScenarioRun, ...] = ()
    verify: tuple[ScenarioRun, ...] = ()
    plan: tuple[ScenarioRun, ...] = ()
    build: tuple[ScenarioRun, ...] = ()
    judge: tuple[ScenarioRun, ...] = ()
    pm: tuple[ScenarioRun, ...] = ()
    """Sessions of the project manager in a chat."""

    def runs(self, role: str | None) -> tuple[ScenarioRun, ...]:
        """Return the runs of a role; an unknown role has none."""
        runs: tuple[ScenarioRun, ...] = getattr(self, role or "", ())
        return runs


def load_scenario(path: Path) -> Scenario:
    """Load the scenario from the file.

    Raises:
        ConfigError: the file is missing, is not TOML, or is not a scenario.
    """
    try:
        content = read_regular(path)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"scenario {path} cannot be read: {why}") from error
    try:
        raw: dict[str, Any] = tomllib.loads(content.decode("utf-8"))
        return Scenario.model_validate(raw)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"scenario {path} is not valid TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        message = first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"scenario {path}, {where or 'top'}: {message}") from error
