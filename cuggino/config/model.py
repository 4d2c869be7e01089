"""The settings of a project and of each loop, each declared once (CUG-070, CUG-071)."""

import os
import re
from typing import Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel

from cuggino.config.agents import AcpPrograms, FallbackAgents, RoleAgents
from cuggino.config.cluster import Cluster, ClusterSettings
from cuggino.config.forges import BacklogSources, Hooks
from cuggino.config.notifying import Notify, NotifySettings
from cuggino.config.pull_requests import PullRequests, PullRequestSettings
from cuggino.guard import UnknownProfile, allowed_commands, chosen_profiles

Names: TypeAlias = list[str] | dict[Literal["base", "run", "sync"], list[str]]
"""One list, or one per kind of session."""
_NEEDED = frozenset(["", *["bin", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "usr"]])
"""Folders that every program reads."""
_LONGEST = 366 * 24 * 3600.0
"""Seconds; the longest limit that timers support."""


class _Settings(BaseModel):
    # Most groups of settings are only inherited, and need no schema of their own.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class SupervisionSettings(_Settings):
    """Limits, waits and retries."""

    budget: float | None = Field(default=None, gt=0)
    """US dollars that all agents of a run may spend together; default: no limit."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens that all agents of a run may use together; default: no limit."""
    max_duration: float | None = Field(default=None, gt=0, le=_LONGEST)
    """Seconds that a run may take, waits included; default: no limit."""
    wait_for_quota: bool = False
    """Wait until a usage limit is lifted, instead of ending the run."""
    max_quota_waits: int | None = Field(default=20, ge=1)
    """Maximum waits for a usage limit in one stage of an agent; then the run ends with exit code
    12."""
    max_quota_wait: float = Field(default=86_400.0, gt=0, le=_LONGEST)
    """Seconds that these waits may take together; if the limit resets later, the run ends at
    once."""
    max_retries: int = Field(default=0, ge=0)
    """Maximum consecutive retries of an agent after transient failures (overload, lost
    connection)."""
    idle_timeout: float | None = Field(default=None, gt=0, le=_LONGEST)
    """Seconds that an agent may be silent while no tool runs."""
    tool_timeout: float | None = Field(default=None, gt=0, le=_LONGEST)
    """Seconds that an agent may be silent while a tool runs."""
    stage_timeout: float | None = Field(default=None, gt=0, le=_LONGEST)
    """Seconds that the whole stage of one agent may take."""
    repetition_limit: int | None = Field(default=None, ge=2)
    """Identical tool calls with identical results in a row before an agent is nudged, then
    replaced."""
    progress_patience: int | None = Field(default=None, ge=1)
    """Implementing agents in a row without a change before the work is planned again; the second
    time, the run ends."""


class ReviewSettings(_Settings):
    """The limit on repeated reviews."""

    review_patience: int | None = Field(default=None, ge=1)
    """Reviews in a row with the same findings before the run ends."""


class CommandSettings(_Settings):
    """The limit on the commands that a loop runs."""

    command_timeout: float | None = Field(default=None, gt=0, le=_LONGEST)
    """Seconds that a setup, check or verification command may take."""


class CommitSettings(_Settings):
    """What a loop commits."""

    dirty: Literal["keep", "commit", "refuse"] = "keep"
    """Files with uncommitted changes at the start of a run: `keep` leaves them out of commits until
    they change again, `commit` commits them with the first task, `refuse` ends the run."""


class JournalSettings(_Settings):
    """The journals of runs."""

    journal: bool = False
    """Record each run, so that it can be resumed and reported."""
    journal_days: int = Field(default=30, ge=1)
    """Days after which the journal of an ended run is removed."""
    journal_runs: int = Field(default=100, ge=1)
    """Maximum number of journals of ended runs to keep."""


class SnapshotSettings(_Settings):
    """The snapshots of the work tree."""

    snapshot_days: int = Field(default=14, ge=1)
    """Days after which the snapshots of an ended run are removed."""


class GuardSettings(_Settings):
    """What agents may do."""

    specs_path: str = ".specs"
    """The folder with the specifications, relative to the project."""
    guard: Literal["roles", "full", "off"] = "roles"
    """`roles` lets any program run, `full` only listed ones; `off` turns the guard off."""
    profile: str | list[str] | None = None
    """Languages whose programs `full` allows; default: all."""
    allow_commands: Names = Field(default=[])
    """Additional programs that `full` allows: one list, or one per kind of session."""
    allow_pkill_targets: list[str] = Field(default=[])
    """Additional processes, by name, that agents may end with `pkill`."""
    allow_destructive: bool = False
    """Let agents push, publish and discard work with git, and use `rm` and `mv` under `full`."""
    sandbox: Literal["auto", "require", "off"] = "auto"
    """Give each role its own view of the project, enforced by the system: `auto` where supported,
    `require` refuses to start elsewhere; `true` and `false` mean `auto` and `off`."""
    sandbox_hide: list[str] = Field(default=[])
    """Paths that agents and their commands cannot read, such as `~/.ssh`; needs bubblewrap."""
    sandbox_show: list[str] = Field(default=[])
    """Paths that the sandbox would hide but that agents and their commands need, such as
    `/run/docker.sock` (whoever can reach Docker can write anywhere) or `~/.config/gh` (which gives
    them your login to `gh`)."""
    sandbox_domains: list[str] = Field(default=[])
    """Additional hosts that sandboxed commands may connect to, such as `*.example.com`."""

    @field_validator("specs_path", mode="after")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
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
                raise ValueError('must be plain names such as "make", without a path or arguments')
        return value

    @field_validator("sandbox", mode="before")
    @classmethod
    def _as_of_old(cls, value: object) -> object:
        return {True: "auto", False: "off"}[value] if isinstance(value, bool) else value

    @field_validator("sandbox_hide", "sandbox_show", mode="after")
    @classmethod
    def _whole_paths(cls, value: list[str]) -> list[str]:
        for path in value:
            if not path.startswith(("/", "~/")) or path != path.strip():
                raise ValueError('must be whole paths such as "~/.ssh" or "/srv/keys"')
        return value

    @field_validator("sandbox_hide", mode="after")
    @classmethod
    def _not_needed(cls, value: list[str]) -> list[str]:
        for path in value:
            if os.path.normpath(path).lstrip("/") in _NEEDED:
                raise ValueError(f"{path} cannot be hidden, as every program reads it")
        return value

    @field_validator("sandbox_domains", mode="after")
    @classmethod
    def _hosts(cls, value: list[str]) -> list[str]:
        # An agent that rejects one host ignores its whole settings file.
        for host in value:
            if not re.fullmatch(r"(\*\.)?([A-Za-z0-9-]+\.)+[A-Za-z0-9-]+|localhost", host):
                raise ValueError('must be hosts such as "example.com" or "*.example.com"')
        return value


class RunSettings(SupervisionSettings, JournalSettings, SnapshotSettings, GuardSettings):
    """The settings of every loop."""

    model: str | None = None
    """The agent's model; default: the agent's own."""


class LoopSettings(_Settings):
    """The settings of the coding loop, besides those that it shares with others."""

    max_iterations: int = Field(default=10, ge=1)
    """Maximum iterations of a run; each goes from planning to review."""
    max_tasks_per_plan: int = Field(default=50, ge=1)
    """Maximum implementing agents per plan; then the work is reviewed, finished or not."""
    setup_command: str | None = None
    """A shell command to run after each planning. Blank means none."""
    check_command: str | None = None
    """A shell command to run before each implementing agent and each review. Blank means none."""
    setup_strict: bool = False
    """End the run when the setup command fails."""
    setup_keeps_running: bool = False
    """Leave what the setup command starts in the background running until the run ends."""
    gate: Literal["context", "block"] = "context"
    """`block`: an approval counts only if the check command before that review exited with 0, and
    the check itself is unchanged, unless the focus or a specification asks for the change."""
    gate_paths: list[str] = Field(default=[])
    """Additional files that the check depends on, as paths or globs in the project: `tests/**`."""
    commit: bool = False
    """Commit after each task, without the specifications and `.cuggino/`."""
    push: str | None = None
    """Push to this `remote/branch` after each commit, never with force; default: no push."""

    @field_validator("setup_command", "check_command", mode="after")
    @classmethod
    def _blank_is_absent(cls, value: str | None) -> str | None:
        return (value or "").strip() or None

    @field_validator("push", mode="after")
    @classmethod
    def _remote_and_branch(cls, value: str | None) -> str | None:
        # No URL: each push shows it, and it may contain a password.
        if value is not None and not re.fullmatch(r"[^/\s:-][^/\s:]*/[^/\s:+-][^\s:]*", value):
            raise ValueError('must be "remote/branch", such as "origin/main"')
        return value

    @model_validator(mode="after")
    def _gate_needs_a_check(self) -> Self:
        if self.gate == "block" and self.check_command is None:
            raise ValueError('"gate": "block" requires a "checkCommand"')
        return self


class WatchSettings(LoopSettings):
    """The settings of the watch, besides those of the coding loop."""

    audit: bool = False
    """Run the audit agent while `watch` is idle."""
    settle_seconds: float = Field(default=30.0, gt=0, le=_LONGEST)
    """Seconds without a change before `watch` lists a folder again."""
    max_attempts: int = Field(default=3, ge=1)
    """Attempts at a failing backlog item before it is parked."""
    retry_seconds: float = Field(default=60.0, gt=0, le=_LONGEST)
    """Seconds before the second attempt; doubled for each further one, up to an hour."""
    on_max_iterations: Literal["complete", "park"] = "complete"
    """Without an approval after the last iteration, `complete` archives the item, `park` parks
    it."""
    slots: int = Field(default=1, ge=1, le=400)
    """The number of items that `watch` works on at once, each in its own clone; more than one
    requires `commit` and `checkCommand`."""
    slot_folder: str | None = None
    """The folder of these clones, outside the project; default: `../<project>.cuggino-slots`."""
    land_on: Literal["follow", "branch", "pr"] = "follow"
    """The destination of items that passed the check: `follow` fast-forwards your branch, `branch`
    makes a branch per item, and `pr` a pull request per item; the last two require more than one
    slot."""

    @field_validator("slot_folder", mode="after")
    @classmethod
    def _names_a_folder(cls, value: str | None) -> str | None:
        if value is not None and (not value.strip() or "\0" in value):
            raise ValueError("must name a folder")
        return value

    @model_validator(mode="after")
    def _slots_need_a_gate(self) -> Self:
        if self.slots > 1:
            missing = ['"commit": true'] * (not self.commit)
            missing += ['a "checkCommand"'] * (self.check_command is None)
            if missing:
                raise ValueError(
                    f"more than one slot requires {' and '.join(missing)}, as what lands are "
                    "commits that passed the check"
                )
            if self.push is not None:
                raise ValueError(
                    '"push" requires a single slot: with more, only what has landed may be pushed'
                )
        elif self.land_on != "follow":
            raise ValueError(f'"landOn": "{self.land_on}" requires more than one slot')
        return self


class Config(WatchSettings, RunSettings, ReviewSettings, CommandSettings, CommitSettings):
    """The settings in `.cuggino.json`, whose keys are in camelCase."""

    model_config = ConfigDict(strict=True, alias_generator=to_camel, populate_by_name=True)

    max_retries: int = Field(default=3, ge=0)
    idle_timeout: float | None = Field(default=900.0, gt=0, le=_LONGEST)
    tool_timeout: float | None = Field(default=7200.0, gt=0, le=_LONGEST)
    stage_timeout: float | None = Field(default=10_800.0, gt=0, le=_LONGEST)
    repetition_limit: int | None = Field(default=20, ge=2)
    command_timeout: float | None = Field(default=1800.0, gt=0, le=_LONGEST)
    progress_patience: int | None = Field(default=3, ge=1)
    review_patience: int | None = Field(default=3, ge=1)
    journal: bool = True
    commit_timeout: float = Field(default=600.0, gt=0, le=_LONGEST)
    """Seconds that a commit, with its hooks and signature, or a push may take."""
    snapshot_max_file: float = Field(default=50.0, gt=0)
    """Megabytes of the largest file that snapshots hold; larger files are listed instead."""
    notify: Notify = "bell"
    """The notification method: `bell`, `none`, or one or more Apprise URLs; or an object with `to`,
    `command`, `on` and `at`."""
    agent: str = Field(default="claude", pattern=r"\S")
    """The agent: a name, `acp:NAME`, `scripted:FILE`, `replay:FILE`, or `package.module:Class`."""
    agent_path: str | None = None
    """The agent's program; default: found on PATH."""
    acp: AcpPrograms = Field(default={})
    """Additional programs that implement the Agent Client Protocol, by the name after `acp:`."""
    agents: RoleAgents = Field(default={})
    """Agents and models for individual roles."""
    fallback: FallbackAgents = Field(default=[])
    """Agents to fall back to, in order, after a usage limit or a permanent failure."""
    allow_sleep: bool = False
    """Let the machine sleep while a loop works."""
    cluster: Cluster = None
    """The Dask cluster that works on the items of `watch` (`cuggino help clusters`): its address,
    or an object with TLS files and more; default: this machine."""
    backlog_sources: BacklogSources = Field(default=[])
    """Sources of items for `watch`, besides `.cuggino/backlog/` (`cuggino help trackers`)."""
    pull_requests: PullRequests = Field(default=PullRequestSettings())
    """The pull requests of `"landOn": "pr"`."""
    hooks: Hooks = Field(default={})
    """Shell commands to run on events, by event name, such as `item.landed`; each gets the event as
    JSON on its standard input."""
    hook_timeout: float = Field(default=60.0, gt=0, le=3600)
    """Seconds that a hook's command may take."""
    login_check: bool = True
    """Ask the agent's program, before a run starts, whether you are logged in. A positive answer is
    remembered for an hour."""

    @property
    def cluster_settings(self) -> "ClusterSettings":
        """The settings of `cluster`, whichever way they are written."""
        given = self.cluster
        if isinstance(given, ClusterSettings):
            return given
        return ClusterSettings(address=given)

    @property
    def rings(self) -> bool:
        """Return whether the terminal's bell rings when a person is needed."""
        return "bell" in self._ways

    @property
    def sends(self) -> bool:
        """Return whether notifications are sent, besides the terminal's bell."""
        given = self.notify
        has_command = not isinstance(given, str | list) and given.command is not None
        return has_command or any("://" in way for way in self._ways)

    @property
    def _ways(self) -> list[str]:
        given = self.notify if isinstance(self.notify, str | list) else self.notify.to
        return [given] if isinstance(given, str) else given

    @property
    def notifications(self) -> "NotifySettings":
        """The settings of `notify`, whichever way they are written."""
        given = self.notify
        return given if isinstance(given, NotifySettings) else NotifySettings(to=given)
