"""The settings of a project and of each loop, each declared once (CUG-070, CUG-071)."""

import os
from collections.abc import Callable
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)
from pydantic.alias_generators import to_camel

from cuggino.config.agents import (
    AcpPrograms,
    AttemptChoice,
    Attempts,
    FallbackAgents,
    RoleAgents,
)
from cuggino.config.chatting import ChatSettings
from cuggino.config.cluster import Cluster, ClusterSettings
from cuggino.config.forges import BacklogSources, Hooks
from cuggino.config.notifying import Notify, NotifySettings
from cuggino.config.pull_requests import PullRequests, PullRequestSettings
from cuggino.domain import check_approval, parse_duration, parse_every, parse_window
from cuggino.edited_files import matching
from cuggino.guard import UnknownProfile, chosen_profiles


def _known_profile(name: str) -> str:
    try:
        chosen_profiles([name])
    except UnknownProfile as error:
        raise ValueError(f"{error}; {error.hint}") from error
    return name


def _checked(parse: Callable[[str], object]) -> Callable[[str], str]:
    """Return a validator of texts that this function must accept."""

    def check(text: str) -> str:
        parse(text)
        return text

    return check


def _sandbox_of_old(value: object) -> object:
    return {True: "auto", False: "off"}[value] if isinstance(value, bool) else value


def _not_needed(path: str) -> str:
    if os.path.normpath(path).lstrip("/") in _NEEDED:
        raise ValueError("cannot be hidden, as every program reads it")
    return path


Name: TypeAlias = Annotated[
    str,
    matching(r"[^\s/]+", 'must be a plain name such as "make", without a path or arguments'),
]
Names: TypeAlias = list[Name] | dict[Literal["base", "run", "sync"], list[Name]]
"""One list, or one per kind of session."""
Profile: TypeAlias = Annotated[str, AfterValidator(_known_profile)]
Profiles: TypeAlias = Profile | list[Profile] | None
"""Languages whose programs are allowed; None for all."""
_Path: TypeAlias = Annotated[
    str,
    matching(r"(/|~/)([\s\S]*\S)?", 'must be a whole path such as "~/.ssh" or "/srv/keys"'),
]
# An agent that rejects one host ignores its whole settings file.
_Host: TypeAlias = Annotated[
    str,
    matching(
        r"(\*\.)?([A-Za-z0-9-]+\.)+[A-Za-z0-9-]+|localhost",
        'must be a host such as "example.com" or "*.example.com"',
    ),
]
# No URL: each push shows it, and it may contain a password.
_RemoteBranch: TypeAlias = Annotated[
    str,
    matching(
        r"[^/\s:-][^/\s:]*/[^/\s:+-][^\s:]*", 'must be "remote/branch", such as "origin/main"'
    ),
]
_Folder: TypeAlias = Annotated[str, matching(r"[^\0]*[^\0\s][^\0]*", "must name a folder")]
_Command: TypeAlias = Annotated[
    Annotated[str, matching(r"[^\0]*", "must not contain NUL")] | None,
    AfterValidator(lambda text: (text or "").strip() or None),
]
"""A shell command; blank means none."""
_Every: TypeAlias = Annotated[str, AfterValidator(_checked(parse_every))]
_Hours: TypeAlias = Annotated[str, AfterValidator(_checked(parse_window))]
_Approval: TypeAlias = Annotated[str, AfterValidator(check_approval)]
_Within: TypeAlias = Annotated[str, AfterValidator(_checked(parse_duration))]
_NEEDED = frozenset(["", *["bin", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "usr"]])
"""Folders that every program reads."""
_LONGEST = 366 * 24 * 3600.0
"""Seconds; the longest limit that timers support."""
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=_LONGEST)]


class _Settings(BaseModel):
    # Most groups of settings are only inherited, and need no schema of their own.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, allow_inf_nan=False)


class SupervisionSettings(_Settings):
    """Limits, waits and retries."""

    budget: float | None = Field(default=None, gt=0)
    """US dollars that all agents of a run may spend together, estimated where an agent reports
    none; default: no limit."""
    price_as: str | None = Field(default=None, pattern=r"\S", examples=["claude-sonnet-4-5"])
    """The model whose input price is used for models without a known price, with the weights of
    `countTokens`. Default: none, so that an unknown price ends a run that has a budget."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens that all agents of a run may use together, counted as `countTokens`; default: no
    limit."""
    count_tokens: Literal["weighted", "plain"] = "weighted"
    """How `maxTokens` counts. `weighted`: by price, an input token as 1, a cache read as 0.1, a
    cache write as 1.25 and an output token as 5; `plain`: input, output and cache writes as 1,
    without cache reads."""
    max_duration: Seconds | None = None
    """Seconds that a run may take, waits included; default: no limit."""
    wait_for_quota: bool = False
    """Wait until a usage limit is lifted, instead of ending the run."""
    max_quota_waits: int | None = Field(default=20, ge=1)
    """Maximum waits for a usage limit in one stage of an agent; then the run ends with exit code
    12."""
    max_quota_wait: Seconds = 86_400.0
    """Seconds that these waits may take together; if the limit resets later, the run ends at
    once."""
    max_wait: Seconds = 86_400.0
    """Seconds that an agent may wait for CI, a process, a file, a time or a person (`<WAITING>`);
    then it is resumed, and told that nothing has happened."""
    approve: list[_Approval] = Field(default=[], examples=[["plan", "landing", "spend:20"]])
    """What waits for your approval: `plan` before the first implementing agent, `landing` before
    approved work counts, `spend:20` before an agent starts once 20 US dollars are spent. `deliver`
    and `loop` know sums only. Default: nothing."""
    approve_within: _Within | None = Field(default=None, examples=["8h"])
    """The longest wait for an approval, such as `8h`; default: no limit."""
    approve_else: Literal["approve", "reject"] = "reject"
    """What happens then: `approve` goes on, `reject` ends the run."""
    quota_reserve: float = Field(default=0.0, ge=0, lt=1)
    """The share (below 1) of each usage window that is kept for you. With 0.2, no new session of an
    agent starts once 80 % of one is used: its fallback takes over, or that is a usage limit until
    the window resets."""
    overage: Literal["pay", "stop"] = "pay"
    """Beyond a usage limit, where the account pays for extra usage: `pay` goes on, `stop` treats it
    as a usage limit."""
    max_retries: int = Field(default=0, ge=0)
    """Maximum consecutive retries of an agent after transient failures (overload, lost
    connection)."""
    idle_timeout: Seconds | None = None
    """Seconds that an agent may be silent while no tool runs."""
    tool_timeout: Seconds | None = None
    """Seconds that an agent may be silent while a tool runs."""
    stage_timeout: Seconds | None = None
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

    command_timeout: Seconds | None = None
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

    specs_path: str = Field(default=".specs", pattern=r"\S")
    """The folder with the specifications, relative to the project."""
    guard: Literal["roles", "full", "off"] = "roles"
    """`roles` lets any program run, `full` only listed ones; `off` turns the guard off."""
    profile: Profiles = None
    """Languages whose programs `full` allows; default: all."""
    allow_commands: Names = Field(default=[])
    """Additional programs that `full` allows: one list, or one per kind of session."""
    allow_pkill_targets: list[Name] = Field(default=[])
    """Additional processes, by name, that agents may end with `pkill`."""
    allow_destructive: bool = False
    """Let agents push, publish and discard work with git, and use `rm` and `mv` under `full`."""
    sandbox: Annotated[Literal["auto", "require", "off"], BeforeValidator(_sandbox_of_old)] = "auto"
    """Give each role its own view of the project, enforced by the system: `auto` where supported,
    `require` refuses to start elsewhere; `true` and `false` mean `auto` and `off`."""
    sandbox_hide: list[Annotated[_Path, AfterValidator(_not_needed)]] = Field(default=[])
    """Paths that agents and their commands cannot read, such as `~/.ssh`; needs bubblewrap."""
    sandbox_show: list[_Path] = Field(default=[])
    """Paths that the sandbox would hide but that agents and their commands need, such as
    `/run/docker.sock` (whoever can reach Docker can write anywhere) or `~/.config/gh` (which gives
    them your login to `gh`)."""
    sandbox_domains: list[_Host] = Field(default=[])
    """Additional hosts that sandboxed commands may connect to, such as `*.example.com`."""


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
    setup_command: _Command = None
    """A shell command to run after each planning. Blank means none."""
    check_command: _Command = None
    """A shell command to run before each implementing agent and each review. Blank means none."""
    setup_strict: bool = False
    """End the run when the setup command fails."""
    setup_keeps_running: bool = False
    """Leave what the setup command starts in the background running until the run ends."""
    gate: Literal["context", "block", "clean"] = "context"
    """`context`: the check command's output informs agents, and an approval counts without it.
    `block`: an approval counts only if the check command before that review exited with 0, and the
    check itself is unchanged, unless the focus or a specification asks for the change. `clean`: the
    same, and the last check runs on a clean checkout of HEAD."""
    baseline: Literal["run", "skip", "must-pass"] = "run"
    """The check command before the first agent: `run` reports what fails already, which then blocks
    no approval; `skip` leaves it out; `must-pass` ends the run if it fails."""
    gate_paths: list[str] = Field(default=[])
    """Additional files that the check depends on, as paths or globs in the project: `tests/**`."""
    slot_folder: _Folder | None = None
    """The folder of clean checkouts and of slots, outside the project; default:
    `../<project>.cuggino-slots`."""
    commit: bool = False
    """Commit after each task, without the specifications and `.cuggino/`."""
    push: _RemoteBranch | None = None
    """Push to this `remote/branch` after each commit, never with force; default: no push."""
    attempts: Attempts = Field(
        default=1,
        examples=[[{"agent": "codex"}, {"model": "opus", "hint": "write the test first"}]],
    )
    """Attempts at a run, at an item of `watch`, or with `hands` at each task of a plan, side by
    side, each in its own clone: how many, or the agent, model or hint of each (`cuggino help
    attempts`); more than one requires `commit` and `checkCommand`."""
    choose: Literal["first", "best"] = "first"
    """The attempt that lands: the `first` that passes check and review, which ends the others, or
    the `best` of all that do, as a judge compares them without their names."""

    @model_validator(mode="after")
    def _gate_needs_a_check(self) -> Self:
        if self.check_command is None:
            if self.gate != "context":
                raise ValueError(f'"gate": "{self.gate}" requires a "checkCommand"')
            if self.baseline == "must-pass":
                raise ValueError('"baseline": "must-pass" requires a "checkCommand"')
        return self

    @property
    def choices(self) -> tuple[AttemptChoice, ...]:
        """What each of the attempts differs in."""
        given = self.attempts
        return (AttemptChoice(),) * given if isinstance(given, int) else tuple(given)

    def attempts_at(self, count: int | None) -> Attempts:
        """Return the configured attempts, or `count`: the first ones differ as configured."""
        if count is None or isinstance(self.attempts, int):
            return count or self.attempts
        return [*self.attempts, *(AttemptChoice(),) * count][:count]

    @property
    def wrong_with_attempts(self) -> str | None:
        """Why there cannot be several attempts; None if there can, or if there is one."""
        if len(self.choices) == 1:
            return None
        if (missing := missing_for_landing(self)) is not None:
            return f"more than one attempt requires {missing}"
        if self.push is not None:
            return '"push" requires a single attempt: only what has landed may be pushed'
        return None

    @model_validator(mode="after")
    def _attempts_need_a_gate(self) -> Self:
        if (wrong := self.wrong_with_attempts) is not None:
            raise ValueError(wrong)
        return self


def missing_for_landing(settings: LoopSettings) -> str | None:
    """Return the settings without which nothing can land from a clone, None if there are all."""
    missing = ['"commit": true'] * (not settings.commit)
    missing += ['a "checkCommand"'] * (settings.check_command is None)
    if not missing:
        return None
    return f"{' and '.join(missing)}, as what lands are commits that passed the check"


class HandsSettings(LoopSettings):
    """The settings of a run whose tasks are done side by side."""

    hands: int = Field(default=1, ge=1, le=16)
    """The tasks of a plan that `run` works on at once, each in its own clone (`cuggino help
    hands`); more than one requires `commit` and `checkCommand`."""

    @model_validator(mode="after")
    def _hands_need_a_gate(self) -> Self:
        if self.hands > 1 and (missing := missing_for_landing(self)) is not None:
            raise ValueError(f"more than one hand requires {missing}")
        return self

    @property
    def wrong_with_attempts(self) -> str | None:
        # With several hands they are attempts at tasks, and the run pushes once, at the end.
        return None if self.hands > 1 else super().wrong_with_attempts


class WatchSettings(LoopSettings):
    """The settings of the watch, besides those of the coding loop."""

    audit: bool = False
    """Run the audit agent while `watch` is idle."""
    audit_every: _Every | None = Field(default=None, examples=["6h"])
    """Run it again and again while `watch` is idle, at most once in this time, such as `6h`, or
    whenever a cron expression is due, such as `0 3 * * * Europe/Rome`; default: once each time."""
    hours: _Hours | list[_Hours] | None = Field(default=None, examples=["22:00-07:00"])
    """The hours in which `watch` begins items and their stages, such as `22:00-07:00`, in your time
    zone or the one that follows: `22-7 Europe/Rome`. A cron expression such as `* 9-17 * * 1-5`
    means the minutes at which it is due. Default: around the clock."""
    settle_seconds: Seconds = 30.0
    """Seconds without a change before `watch` lists a folder again."""
    max_attempts: int = Field(default=3, ge=1)
    """Attempts at a failing backlog item before it is parked."""
    retry_seconds: Seconds = 60.0
    """Seconds before the second attempt; doubled for each further one, up to an hour."""
    on_max_iterations: Literal["complete", "park"] = "park"
    """Without an approval after the last iteration, `park` parks the item, `complete` archives it;
    from slots only approved work lands, so that the item is always parked."""
    slots: int = Field(default=1, ge=1, le=400)
    """The number of items that `watch` works on at once, each in its own clone; more than one
    requires `commit` and `checkCommand`."""
    land_on: Literal["follow", "branch", "pr"] = "follow"
    """The destination of items that passed the check: `follow` fast-forwards your branch, `branch`
    makes a branch per item, and `pr` a pull request per item; the last two require more than one
    slot."""

    @model_validator(mode="after")
    def _audits_are_on(self) -> Self:
        if self.audit_every is not None and not self.audit:
            raise ValueError('"auditEvery" requires "audit": true')
        return self

    @model_validator(mode="after")
    def _slots_need_a_gate(self) -> Self:
        if self.slots > 1:
            if (missing := missing_for_landing(self)) is not None:
                raise ValueError(f"more than one slot requires {missing}")
            if self.push is not None:
                raise ValueError(
                    '"push" requires a single slot: with more, only what has landed may be pushed'
                )
        elif self.land_on != "follow":
            raise ValueError(f'"landOn": "{self.land_on}" requires more than one slot')
        return self


class Config(
    WatchSettings, HandsSettings, RunSettings, ReviewSettings, CommandSettings, CommitSettings
):
    """The settings in `.cuggino.json`, whose keys are in camelCase."""

    model_config = ConfigDict(strict=True, alias_generator=to_camel, populate_by_name=True)

    max_retries: int = Field(default=3, ge=0)
    idle_timeout: Seconds | None = 900.0
    tool_timeout: Seconds | None = 7200.0
    stage_timeout: Seconds | None = 10_800.0
    repetition_limit: int | None = Field(default=20, ge=2)
    command_timeout: Seconds | None = 1800.0
    progress_patience: int | None = Field(default=3, ge=1)
    review_patience: int | None = Field(default=3, ge=1)
    journal: bool = True
    commit_timeout: Seconds = 600.0
    """Seconds that a commit, with its hooks and signature, or a push may take."""
    snapshot_max_file: float = Field(default=50.0, gt=0)
    """Megabytes of the largest file that snapshots hold; larger files are listed instead."""
    notify: Notify = "bell"
    """The notification method: `bell`, `none`, or one or more Apprise URLs; or an object with `to`,
    `command`, `on` and `at`."""
    chat: ChatSettings = Field(
        default=ChatSettings(),
        examples=[{"telegram": {"token": "env:TELEGRAM_TOKEN", "chat": 42}}],
    )
    """Chat services that bring questions and reports to you, and your answers back (`cuggino help
    chat`): `telegram`, `ntfy`, or one of your `own`."""
    agent: str = Field(default="claude", pattern=r"\S")
    """The agent: a name, `acp:NAME`, `scripted:FILE`, `replay:FILE`, or `package.module:Class`."""
    agent_path: str | None = None
    """The agent's program; default: found on PATH."""
    acp: AcpPrograms = Field(default={}, examples=[{"mine": {"command": ["my-agent", "--acp"]}}])
    """Additional programs that implement the Agent Client Protocol, by the name after `acp:`."""
    agents: RoleAgents = Field(default={}, examples=[{"reviewing": "claude"}])
    """Agents and models for individual roles."""
    fallback: FallbackAgents = Field(default=[], examples=[["claude"]])
    """Agents to fall back to, in order, after a usage limit or a permanent failure."""
    allow_sleep: bool = False
    """Let the machine sleep while a loop works."""
    cluster: Cluster = None
    """The Dask cluster that works on the items of `watch`, on the tasks of `run` with several
    `hands`, and on several `attempts` (`cuggino help clusters`): its address, or an object with TLS
    files and more; default: this machine."""
    backlog_sources: BacklogSources = Field(default=[])
    """Sources of items for `watch`, besides `.cuggino/backlog/` (`cuggino help trackers`)."""
    pull_requests: PullRequests = Field(default=PullRequestSettings())
    """The pull requests of `"landOn": "pr"`."""
    hooks: Hooks = Field(default={})
    """Shell commands to run on events, by event name, such as `item.landed`; each gets the event as
    JSON on its standard input."""
    login_check: bool = True
    """Ask the agent's program, before a run starts, whether you are logged in. A positive answer is
    remembered for an hour."""

    def of_attempt(self, choice: AttemptChoice) -> Self:
        """Return the settings with the agent of an attempt; these, if it has none of its own."""
        if choice.agent is None and choice.path is None:
            return self
        agent = choice.agent or self.agent
        path = choice.path or (self.agent_path if agent == self.agent else None)
        return self.model_copy(update={"agent": agent, "agent_path": path})

    @property
    def cluster_settings(self) -> ClusterSettings:
        """The settings of `cluster`, whichever way they are written."""
        given = self.cluster
        return given if isinstance(given, ClusterSettings) else ClusterSettings(address=given)

    @property
    def notifications(self) -> NotifySettings:
        """The settings of `notify`, whichever way they are written."""
        given = self.notify
        return given if isinstance(given, NotifySettings) else NotifySettings(to=given)

    @property
    def rings(self) -> bool:
        """Return whether the terminal's bell rings when a person is needed."""
        return "bell" in self.notifications.targets

    @property
    def sends(self) -> bool:
        """Return whether notifications are sent, besides the terminal's bell."""
        settings = self.notifications
        return settings.command is not None or any("://" in to for to in settings.targets)
