"""What the settings of a project are: names, types, defaults, meaning (CUG-070, CUG-071)."""

from __future__ import annotations

import re
from typing import Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel

from cuggino.config.agents import FallbackAgent, RoleAgents
from cuggino.security.extensions import UnknownProfile, allowed_commands, chosen_profiles

Names: TypeAlias = list[str] | dict[Literal["base", "run", "sync"], list[str]]
"""A list, or one for each kind of session."""
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
    """Run once after each planning, by `/bin/sh`. Blank is absent."""
    check_command: str | None = None
    """Run before each implementing agent and each review, by `/bin/sh`. Blank is absent."""
    setup_strict: bool = False
    """End the run when the setup command fails."""
    command_timeout: float | None = Field(default=None, gt=0, le=_LONGEST)
    """Seconds that a setup or check command may take; absent means no limit."""
    gate: Literal["context", "block"] = "context"
    """`block`: an approval counts only if the check command before that review exited with 0."""
    commit: bool = False
    """Commit after each task; the specs and `.cuggino/` are left out."""
    push: str | None = None
    """Push after each commit, to `remote/branch`, never forced; absent means no push."""
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

    guard: Literal["roles", "full", "off"] = "roles"
    """What holds agents back: `roles` guards files by role, `full` allows only listed programs."""
    profile: str | list[str] | None = None
    """The languages whose programs `full` allows, one or several; absent means all."""
    allow_commands: Names = Field(default=[])
    """More programs that `full` allows; by kind of session, or all for those that do the work."""
    allow_pkill_targets: list[str] = Field(default=[])
    """More names of processes that agents may end with `pkill`."""
    allow_destructive: bool = False
    """Let agents use `rm` and `mv` within the project under `full`."""

    sandbox: bool = True
    """Run the commands of guarded agents in the system's sandbox, where machine and agent can."""
    sandbox_domains: list[str] = Field(default=[])
    """More hosts that commands in the sandbox may connect to, such as `*.example.com`."""

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

    @field_validator("profile", mode="after")
    @classmethod
    def _known_profile(cls, value: str | list[str] | None) -> str | list[str] | None:
        try:
            chosen_profiles(value)
        except UnknownProfile as error:
            raise ValueError(f"{error}; {error.hint}") from error
        return value

    @field_validator("allow_commands", mode="before")
    @classmethod
    def _tiers(cls, value: object) -> object:
        try:
            allowed_commands(value)
        except ValueError as error:
            raise ValueError(f"it is {error}") from error
        return value

    @field_validator("allow_commands", "allow_pkill_targets", mode="after")
    @classmethod
    def _plain_names(cls, value: Names) -> Names:
        tiers = value.values() if isinstance(value, dict) else [value]
        for name in (name for names in tiers for name in names):
            if not re.fullmatch(r"[^\s/]+", name):
                raise ValueError('must hold plain names, such as "make": no path, no argument')
        return value

    @field_validator("sandbox_domains", mode="after")
    @classmethod
    def _hosts(cls, value: list[str]) -> list[str]:
        # One that the agent's program refuses would take all its settings with it.
        for host in value:
            if not re.fullmatch(r"(\*\.)?([A-Za-z0-9-]+\.)+[A-Za-z0-9-]+|localhost", host):
                raise ValueError('must hold hosts such as "example.com" or "*.example.com"')
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
    """What becomes of an item that is not approved: `complete` archives it, `park` parks it."""
    notify: str | list[str] = "bell"
    """How `watch` calls a person: `bell`, `none`, or one or several Apprise URLs."""
    agent: str = Field(default="claude", pattern=r"\S")
    """The agent: a name, `scripted:FILE`, `replay:FILE`, or `package.module:Class`."""
    agent_path: str | None = None
    """The agent's program, if it is not the one found on PATH."""
    agents: RoleAgents = Field(default={})
    """The agents of roles that are to have another than `agent`, or another model."""
    fallback: list[FallbackAgent] = Field(default=[])
    """Who takes over when an agent has no usage left or fails for good, in that order."""

    @field_validator("notify", mode="after")
    @classmethod
    def _known_ways(cls, value: str | list[str]) -> str | list[str]:
        for way in [value] if isinstance(value, str) else value:
            if way not in ("bell", "none") and "://" not in way:
                raise ValueError('must be "bell", "none", or Apprise URLs such as "ntfy://topic"')
        return value
