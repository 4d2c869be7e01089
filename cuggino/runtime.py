"""The runtime: the services of a project, made from a folder, a configuration and an agent.

Names that only some loops need are read from their packages, which load them on first use.
"""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, cast, get_args

from reactivex import Observable, just

from cuggino import doctor, events, guard_audit, loops, notify, project_manager, runs
from cuggino.agents import AgentLike, LlmAgent, configured_agent
from cuggino.agents.cassettes import record_to, with_speed, without_secrets
from cuggino.chat import (
    Channel,
    ChatStore,
    IssueInbox,
    NtfyChannel,
    Talk,
    channels_of,
    conversation,
    reachable,
    secrets_of,
    withhold_secrets,
)
from cuggino.config import AttemptChoice, Config, load_config
from cuggino.control import check_receiver, control_folder
from cuggino.doctor import CheckResult
from cuggino.domain import TOOLS_OF, agent_tool, title_of
from cuggino.errors import ConfigError
from cuggino.events import Event, LoopEvent
from cuggino.files import state_folder
from cuggino.forge import (
    Look,
    ProjectCi,
    Source,
    beside_watch,
    import_once,
    landing_of,
    redacting,
    sources_of,
)
from cuggino.gate import GitWork
from cuggino.guard import Level, Role
from cuggino.guard_audit import JudgedCall
from cuggino.logins import Login, LoginMemory, check_logins, logins_of
from cuggino.loops import (
    AttemptsService,
    LoopRunOptions,
    LoopService,
    RunOptions,
    Services,
    resumed_options,
)
from cuggino.operators import Flow, ask, flow, forward, on_loop
from cuggino.operators.merge_now import merge_now
from cuggino.operators.on_loop import within_loop
from cuggino.preflight import (
    after,
    ask_unless,
    check_agents,
    check_budget,
    check_project,
    check_writable,
    configured,
    git_answers,
    running,
)
from cuggino.project_manager import PlanSession
from cuggino.prompts import Prompts, load_instruction
from cuggino.runs import RecordedRun, UnreadableRun
from cuggino.sandbox import home_of, views_of
from cuggino.stages import (
    GitRepository,
    GitSnapshots,
    SlotListing,
    SlotsCleaned,
    Snapshot,
    StageOptions,
    Undone,
    UndoPlan,
    Workplace,
    act,
    clean_slots,
    control_commands,
    find_snapshot,
    fingerprint_stage,
    lane,
    list_slots,
    trace_stage,
    undo_plan,
    undo_stage,
    work_left,
)
from cuggino.storage import (
    WORKSPACE_FOLDER,
    JournalFile,
    Workspace,
    find_run,
    read_focus,
    served_page,
)
from cuggino.telemetry import AgentIdentity, with_telemetry
from cuggino.wakefulness import awake, keeping_awake

_Options = TypeVar("_Options", bound=RunOptions)
_T = TypeVar("_T")


class _Resumed(NamedTuple):
    """The run to resume."""

    run_id: str | None
    """The beginning of its id; default: the latest."""
    kind: Literal["run", "deliver", "loop"] = "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """The services of one project. Build them with `Runtime.live`, replace them with `replace`."""

    cwd: Path
    config: Config
    agent: LlmAgent
    """The agent to check; that of `services` may record its sessions."""
    services: Services
    agent_name: str = ""
    """The agent as it was named, for the journal, where `cuggino.resumed_agent` finds it."""

    @classmethod
    def live(
        cls,
        *,
        cwd: str | os.PathLike[str] = ".",
        config: Config | None = None,
        agent: str | AgentLike | None = None,
        record: str | os.PathLike[str] | None = None,
        speed: float | None = None,
        drafts: bool = True,
    ) -> Runtime:
        """Return the services of the project at `cwd`. Nothing is started or written yet.

        `config` defaults to the project's `.cuggino.json`. `agent` is an agent, or a name such as
        `claude` or `scripted:FILE`; it defaults to the configured one. The configuration's `agents`
        and `fallback` come beside it (`configured_agent`).

        `record` is a new file, relative to `cwd`, to which all sessions of agents are recorded;
        `replay:FILE` plays them, at `speed` (`ReplayAgent`). Without `drafts` messages need not be
        streamed while agents write them, which saves most of the work for an agent's output.

        Raises:
            ConfigError: the configuration or an agent's name cannot be used, nothing can be
                recorded to that file, or an agent has no speed.
        """
        if agent is not None and not isinstance(agent, str):
            _require_agent(agent)
        folder = Path(cwd).resolve()
        config = config or load_config(folder)
        withhold_secrets(config.chat)
        name = agent if isinstance(agent, str) else agent.name if agent else config.agent
        chosen = configured_agent(config, cwd=folder, agent=agent)
        if speed is not None:
            chosen = with_speed(chosen, speed)
        worker = chosen
        if record is not None:
            # What is checked is the agent itself, what works is the one that is recorded.
            worker = record_to(folder / record, chosen)
        workspace, timeout = Workspace(folder), config.commit_timeout
        control = control_folder(workspace)
        apart = (Path(WORKSPACE_FOLDER), *worker.own_files)
        views = views_of(config)
        services = Services(
            agent=worker,
            workspace=workspace,
            repository=GitRepository(folder, exclude=apart, timeout=timeout, views=views),
            prompts=Prompts(workspace.prompts),
            snapshots=_snapshots(folder, config),
            fingerprint=partial(fingerprint_stage, views=views),
            trace=partial(trace_stage, views=views),
            work=GitWork.of(folder, workspace.snapshots, views=views, hide=config.sandbox_hide),
            work_left=partial(work_left, views=views),
            control=control_commands(control),
            control_folder=control,
            shows_plans=True,
            drafts=drafts,
            ci=ProjectCi(folder, config.pull_requests),
        )
        return cls(cwd=folder, config=config, agent=chosen, services=services, agent_name=name)

    def replace(self, **services: Any) -> Runtime:
        """Return a runtime with other services, such as `shell`, `agent` or `fingerprint`.

        ::

            runtime = Runtime.live(cwd=cwd).replace(shell=my_shell)

        Raises:
            TypeError: no service has that name, or the agent is not one.
        """
        agent = services.get("agent", self.agent)
        _require_agent(agent)
        return dataclasses.replace(
            self, agent=agent, services=dataclasses.replace(self.services, **services)
        )

    @property
    def workspace(self) -> Workspace:
        """The `.cuggino` folder of the project."""
        return self.services.workspace

    @property
    def control(self) -> Observable[events.ControlEvent]:
        """What a person asks of a run while it works: the commands in `.cuggino/control/`.

        A program can feed a run with its own commands::

            commands: Subject[ControlEvent] = Subject()
            runtime = Runtime.live(cwd=cwd).replace(control=commands)
            commands.on_next(PauseAsked())  # on any thread, while a run works
        """
        return self.services.control

    def send(self, command: events.ControlEvent) -> None:
        """Send a command to the run that holds the project, in this process or another.

        Raises:
            NothingRuns: no run works in the project.
            ConfigError: the run has no items to skip, the message is empty or too long, or an
                agent or a command of a run calls this.
            StorageError: the command could not be written.
        """
        check_receiver(self.workspace, command)
        assert self.services.control_folder is not None
        self.services.control_folder.send(command)

    @property
    def loop(self) -> LoopService:
        """The coding loop, with one hand or several, once or as several attempts."""
        return AttemptsService(self.services, agent_of=self._agent_of)

    def _agent_of(self, choice: AttemptChoice) -> LlmAgent:
        """Return the agent of an attempt: the usual one, unless it has one of its own."""
        config = self.config.of_attempt(choice)
        usual = self.services.agent
        return usual if config is self.config else configured_agent(config, cwd=self.cwd)

    @property
    def watcher(self) -> loops.WatchService:
        """The watch."""
        return loops.WatchService(self.services, loop=self.loop)

    @property
    def deliverer(self) -> loops.DeliverService:
        """The deliver loop."""
        return loops.DeliverService(self.services)

    @property
    def builder(self) -> loops.PlanBuildService:
        """The plan/build loop."""
        return loops.PlanBuildService(self.services)

    def loop_options(
        self, *, focus: str, review: str | None = None, slow: bool = False
    ) -> LoopRunOptions:
        """Return the configured options of a run. `focus` is a text, or `@path` of a file.

        Raises:
            ConfigError: the focus is blank, or its file cannot be read.
        """
        given = {"focus": read_focus(focus, self.cwd), "review": review, "slow": slow}
        if self.config.hands > 1:
            given["command"] = f"cuggino run --hands {self.config.hands}"
        return self._options(LoopRunOptions, given)

    def workplace(self, *, focus: str, session: str | None = None) -> Workplace:
        """Return what the stages of a loop of one's own share (`cuggino.stages`).

        ::

            place = runtime.workplace(focus="the login page")
            plan = cuggino.run(planning_stage(place), print)

        Agents get the configured limits, retries, guard and sandbox, and share one budget. `focus`
        is a text, or `@path` of a file. Nothing is started or written yet; `Workplace.held` locks
        the project. With the name of a `session`, a later process finds the plan and the log of the
        one before it, as a `durable` loop needs them.

        Raises:
            ConfigError: the focus is blank, or its file cannot be read.
            ValueError: the session cannot have this name.
        """
        return Workplace.of(
            self.services,
            configured(StageOptions, self.config, {"cwd": self.cwd}),
            focus=read_focus(focus, self.cwd),
            command_timeout=self.config.command_timeout,
            session=session,
        )

    def run(
        self,
        *,
        focus: str,
        review: str | None = None,
        slow: bool = False,
        places: loops.PlacesOf | None = None,
        interrupt: Observable[object] | None = None,
    ) -> Observable[LoopEvent]:
        """Run the coding loop, after a check that it can work here (`check_project`).

        `places` makes those of several hands or attempts, such as
        `cuggino.placement.run_on_cluster` on the workers of a cluster.

        Emits what `LoopService.run` emits; a project that cannot be used is an error before
        anything is started or written.
        """
        return self._coding(
            lambda: self.loop_options(focus=focus, review=review, slow=slow), interrupt, places
        )

    def resume(
        self,
        run_id: str | None = None,
        *,
        places: loops.PlacesOf | None = None,
        interrupt: Observable[object] | None = None,
    ) -> Observable[LoopEvent]:
        """Resume an unfinished run: the latest, or the one whose id starts with `run_id`.

        Emits `RunResumed`, then what `LoopService.run` emits from the first unfinished stage on.
        Focus and course are those of the run, all other options those of the configuration.
        `places` is as in `run`.

        Errors: `RunNotResumable`, before anything is started or written.
        """
        options = partial(self.loop_options, focus="the focus of the run")
        return self._coding(options, interrupt, places, _Resumed(run_id))

    def _coding(
        self,
        options: Callable[[], LoopRunOptions],
        interrupt: Observable[object] | None,
        places: loops.PlacesOf | None = None,
        resumed: _Resumed | None = None,
    ) -> Observable[LoopEvent]:
        def check(chosen: LoopRunOptions) -> None:
            check_project(self.cwd, self.config, self.agent, resume=resumed is not None)
            if places is not None and chosen.hands == len(chosen.choices) == 1:
                message = "only several hands or attempts have places elsewhere"
                raise ConfigError(message, hint='set "hands" or "attempts"')
            self._check_attempts(chosen)
            service.check()

        def loop(options: LoopRunOptions, **given: Any) -> Observable[LoopEvent]:
            channels = channels_of(self.config.chat) if options.approve else ()
            chats = [self._companion(one, only_awaited=True) for one in channels]
            return service.run(options, companions=chats, **given)

        service = self.loop
        if places is not None:
            service = AttemptsService(self.services, agent_of=self._agent_of, places=places)
        return self._start(loop, options, check, interrupt, resumed, commits=self.config.commit)

    def _check_attempts(self, options: LoopRunOptions | loops.WatchRunOptions) -> None:
        """Check the agents of attempts that have one of their own.

        Raises:
            AgentNotFound: one is missing.
            ConfigError: one cannot be created.
        """
        for choice in options.choices:
            if (agent := self._agent_of(choice)) is not self.services.agent:
                check_agents(agent, options.roles, guarded=options.guard != "off")

    def watch(
        self,
        *,
        slots: int | None = None,
        placement: loops.Placement | None = None,
        landing: loops.Landing | None = None,
        sources: Sequence[Source | Look] = (),
        slow: bool = False,
        interrupt: Observable[object] | None = None,
    ) -> Observable[events.WatchEvent]:
        """Watch the project's backlog, after a check that the loop can work here.

        `slots` items are worked on at once, by default as many as configured; with more than one,
        each in a clone of its own, and all of them land through one gate. A `placement` has them
        worked on elsewhere, such as `cuggino.placement.Cluster` on the workers of a cluster. With a
        `landing`, such as `cuggino.forge.pull_requests` makes, they land through pull requests; by
        default if `"landOn"` is "pr". `sources` import items into the backlog, beside the
        configured `backlogSources`: a `cuggino.forge.Source`, or a function that returns an
        Observable of `SourceItem`.

        Emits what `WatchService.run` emits, and `NotificationFailed` when a person cannot be
        notified (`notify` in the configuration); never completes.
        """

        def prepared() -> tuple[loops.WatchRunOptions, None]:
            check_project(self.cwd, self.config, self.agent, watch=True)
            self.watcher.check()
            service[:] = [
                loops.WatchService(
                    self.services,
                    loop=self.loop,
                    placement=placement,
                    landing=landing or self._landing(),
                    **self._beside_watch(sources),
                )
            ]
            count = slots if placement is None else placement.slots
            chosen = self.watch_options(slots=count, slow=slow)
            self._check_budget(chosen)
            self._check_attempts(chosen)
            return chosen, None

        def start(options: loops.WatchRunOptions, **given: Any) -> Observable[events.WatchEvent]:
            return service[0].run(options, interrupt=interrupt)

        service: list[loops.WatchService] = []
        return self._begun(prepared, start, interrupt, commits=self.config.commit)

    def import_items(
        self, *, sources: Sequence[Source | Look] = ()
    ) -> Observable[events.WatchEvent]:
        """Import once from the configured `backlogSources` and the given sources (`watch`).

        Emits `WatchItemImported` for each change, and `WatchSourceFailed`.

        Errors: `ConfigError` without any source; `WorkspaceLocked` while a run works here, as a
        watch imports by itself.
        """

        def story() -> Flow[None]:
            views = views_of(self.config)
            found = sources_of(self.config, folder=self.cwd, views=views, more=sources)
            if not found:
                raise ConfigError(
                    "no source is configured",
                    hint='set "backlogSources"; see `cuggino help trackers`',
                )
            with self.workspace.lock(command="cuggino backlog import"):
                self.workspace.open()
                yield from forward(import_once(found, self.workspace))

        return on_loop(flow(story))

    def _beside_watch(self, sources: Sequence[Source | Look]) -> dict[str, Any]:
        """Return the companions of a watch and its claim of items, if it has any."""
        chats = tuple(self._companion(one) for one in channels_of(self.config.chat))
        if not (sources or self.config.backlog_sources or self.config.hooks):
            return {"companions": chats}

        beside = beside_watch(
            self.config,
            workspace=self.workspace,
            views=views_of(self.config),
            redact=self._redaction(),
            sources=sources,
        )
        return {"companions": (*beside.companions, *chats), "claim": beside.claim}

    def _companion(self, channel: Channel, *, only_awaited: bool = False) -> loops.Companion:
        talk = self._conversation(channel, only_awaited=only_awaited)
        return lambda _events: talk

    def _conversation(
        self, channel: Channel, talk: Talk | None = None, *, only_awaited: bool = False
    ) -> Observable[Event]:
        """Return the conversation about the spec issues of the project."""
        return conversation(
            channel,
            IssueInbox(
                self.workspace,
                specs=self.cwd / self.config.specs_path,
                only_awaited=only_awaited,
            ),
            store=ChatStore(state_folder(os.environ), project=self.cwd, channel=channel.name),
            project=self.cwd.name,
            mask=self._mask,
            talk=talk,
        )

    def _landing(self) -> loops.Landing | None:
        """Return the landing through pull requests, if they are configured."""
        if self.config.land_on != "pr":
            return None

        redact = self._redaction()
        return landing_of(self.config, folder=self.cwd, workspace=self.workspace, redact=redact)

    def _redaction(self) -> Callable[[str], str]:
        return redacting(*self._environments, home=home_of(os.environ), project=self.cwd)

    @property
    def _environments(self) -> tuple[Mapping[str, str], ...]:
        """The environments whose secrets are masked."""
        return (os.environ, secrets_of(self.config.chat), *self.agent.environments)

    def _mask(self, text: str) -> str:
        for env in self._environments:
            text = without_secrets(env)(text)
        return text

    def watch_options(
        self, *, slots: int | None = None, slow: bool = False
    ) -> loops.WatchRunOptions:
        """Return the options of a watch: the configured ones, and those that are given.

        Raises:
            ConfigError: more than one slot lacks `commit` or `check_command`.
        """
        given: dict[str, Any] = {"slow": slow} if slots is None else {"slow": slow, "slots": slots}
        given["limits_network"] = not all(one.network for one in self.config.backlog_sources)
        return self._options(loops.WatchRunOptions, given)

    def attempt(
        self,
        item: str,
        *,
        slot: int = 1,
        number: int = 1,
        returned: loops.Returned | None = None,
    ) -> Observable[events.WatchEvent]:
        """Work on an item of the backlog in a slot: the coding loop, in a clone of the project.

        ::

            WatchSlotPrepared [coding loop] WatchCandidate|

        For a watch of one's own: `cuggino.loops.pool` runs several, each in its own slot, and lands
        their candidates with `land`. Begins at what has landed. Ends with `WatchCandidate`, or with
        the `LoopTerminalEvent` of a run without a result. A candidate whose iterations were used up
        is not `approved`, and cannot land. `returned` is a candidate that was sent back, with the
        reason, and `number` counts the attempts of the item. An unfinished attempt is resumed.

        Errors: `ConfigError` without the item, `commit` and `check_command`; those of `run`.
        """

        def prepared() -> loops.WatchRunOptions:
            options = self.watch_options(slots=max(2, self.config.slots))
            check_project(self.cwd, self.config, self.agent, watch=True)
            self._check_budget(options)
            self.loop.check()
            return options

        return after(
            prepared,
            lambda options: loops.attempt_item(
                self.services, options, item, slot=slot, number=number, returned=returned
            ),
        )

    def land(
        self, candidate: events.WatchCandidate, *, returns: int = 0
    ) -> Observable[events.WatchEvent]:
        """Merge a candidate, check the result, and let the user's branch follow to it.

        ::

            WatchLanding [commands] WatchLanded WatchItemCompleted WatchFollowed|
            WatchLanding [commands] WatchSentBack|

        What was checked is the commit that lands. Land one candidate at a time. An item that has
        landed is archived, unless it was edited meanwhile; `returns` is how often it was sent back.

        Errors: `WorkspaceLocked` while a watch or another landing works here; `ProcessError`.
        """
        return after(
            lambda: self.watch_options(slots=max(2, self.config.slots)),
            lambda options: loops.land_item(self.services, options, candidate, returns=returns),
        )

    def deliver_options(self, **given: Any) -> loops.DeliverRunOptions:
        """Return the options of a deliver run: the configured ones, and those that are given.

        Raises:
            ConfigError: one of those given cannot be used.
        """
        return self._options(loops.DeliverRunOptions, given)

    def deliver_instruction(self, name: events.DeliverInstruction) -> str:
        """Return the prompt of a deliver session: the project's own text, or the built-in one."""
        tools: dict[str, str] = {tool: agent_tool(tool) for tool in TOOLS_OF[name]}
        return load_instruction(name, self.cwd, tools=tools).text

    def deliver(
        self,
        options: loops.DeliverRunOptions | None = None,
        *,
        interrupt: Observable[object] | None = None,
    ) -> Observable[events.DeliverStreamEvent]:
        """Run the deliver loop, as `run` does; emits what `DeliverService.run` emits."""
        return self._delivery(lambda: options or self.deliver_options(), interrupt)

    def resume_delivery(
        self,
        run_id: str | None = None,
        *,
        interrupt: Observable[object] | None = None,
        **given: Any,
    ) -> Observable[events.DeliverStreamEvent]:
        """Resume an unfinished deliver run: the latest, or the one whose id starts with `run_id`.

        Emits `RunResumed`, then what `DeliverService.run` emits from the first unfinished session
        on. Course and workflow are those of the run, all other options those given now.

        Errors: `RunNotResumable`, before anything is started or written.
        """
        resumed = _Resumed(run_id, "deliver")
        return self._delivery(lambda: self.deliver_options(**given), interrupt, resumed)

    def _delivery(
        self,
        options: Callable[[], loops.DeliverRunOptions],
        interrupt: Observable[object] | None,
        resumed: _Resumed | None = None,
    ) -> Observable[events.DeliverStreamEvent]:
        def check(chosen: loops.DeliverRunOptions) -> None:
            self.deliverer.check()
            check_agents(self.agent, chosen.roles, guarded=chosen.guard != "off")
            check_writable(self.cwd)

        return self._start(self.deliverer.run, options, check, interrupt, resumed)

    def plan_build_options(self, **given: Any) -> loops.PlanBuildOptions:
        """Return the options of a plan/build run: the configured ones, and those that are given.

        Raises:
            ConfigError: one of those given cannot be used.
        """
        return self._options(loops.PlanBuildOptions, given)

    def plan_build(
        self,
        options: loops.PlanBuildOptions | None = None,
        *,
        interrupt: Observable[object] | None = None,
    ) -> Observable[events.PlanBuildStreamEvent]:
        """Run the plan/build loop, after a check that it can work here.

        Emits what `PlanBuildService.run` emits.
        """
        return self._start(
            self.builder.run,
            lambda: options or self.plan_build_options(),
            self.checked_building,
            interrupt,
        )

    def resume_plan_build(
        self,
        run_id: str | None = None,
        *,
        interrupt: Observable[object] | None = None,
        **given: Any,
    ) -> Observable[events.PlanBuildStreamEvent]:
        """Resume an unfinished plan/build run, as `resume_delivery` does."""
        return self._start(
            self.builder.run,
            lambda: self.plan_build_options(**given),
            self.checked_building,
            interrupt,
            _Resumed(run_id, "loop"),
        )

    def telemetry(
        self, *, on_problem: Callable[[str], None] = warnings.warn
    ) -> Callable[[Observable[_T]], Observable[_T]]:
        """Return the operator that exports a run, if `OTEL_*` variables ask for it.

        ::

            cuggino.run(runtime.run(focus="add a login page").pipe(runtime.telemetry()), print)

        See `cuggino.telemetry.with_telemetry`, also for `on_problem`.
        """
        return with_telemetry(
            journals=self.workspace.journal, agent_of=self._identity_of, on_problem=on_problem
        )

    def _identity_of(self, role: str) -> AgentIdentity:
        name, model = self.agent.named_for(cast("Role", role), self.config.model)
        if not self.agent.is_router:
            name = self.agent_name or name
        return AgentIdentity(name=name, model=model)

    def runs(self) -> Observable[RecordedRun | UnreadableRun]:
        """Emit the recorded runs of the project, newest first."""
        return runs.list_runs(self.cwd)

    def replay(self, run_id: str | None = None, *, speed: float = 0) -> Observable[Event]:
        """Emit the events of a recorded run: the latest, or the one whose id starts with `run_id`.

        `speed` is that of `cuggino.runs.replay`.

        Errors: `RunNotFound`, `StorageError`.
        """
        return after(
            lambda: runs.Runs(self.cwd).path_of(run_id),
            lambda path: runs.replay(path, speed=speed),
        )

    def snapshots(self) -> Observable[list[Snapshot]]:
        """Emit the snapshots of the project, the oldest first."""
        return _snapshots(self.cwd, self.config).all()

    def undo_plan(self, name: str | None = None) -> Observable[UndoPlan]:
        """Emit what restoring the files before a run or stage would change (`find_snapshot`).

        Errors: `RunNotFound`, `ProcessError`, `OSError`.
        """

        def story() -> Flow[None]:
            snapshot = find_snapshot((yield from ask(self.snapshots())) or [], name)
            yield from forward(undo_plan(_snapshots(self.cwd, self.config), snapshot))

        return flow(story)

    def undo(self, plan: UndoPlan) -> Observable[Undone]:
        """Change the files as planned, after a snapshot of how they are now; emits the result.

        Errors: `WorkspaceLocked` while a run works here, and those of `undo_stage`.
        """

        def story() -> Flow[None]:
            with self.workspace.lock(command="cuggino undo"):
                yield from forward(undo_stage(_snapshots(self.cwd, self.config), plan))

        return flow(story)

    def slots(self) -> Observable[SlotListing]:
        """Emit the slots of the project and the work that they hold.

        While a run holds the project, its slots are not looked into.

        Errors: `ConfigError` for a slot folder that cannot be used, `ProcessError`.
        """
        return list_slots(
            self.cwd,
            self.config.slot_folder,
            specs=self.config.specs_path,
            busy=self.workspace.holder() is not None,
            views=views_of(self.config),
        )

    def clean_slots(self, *, dry_run: bool = False) -> Observable[SlotsCleaned]:
        """Remove the slots and refs that hold no unlanded work; emits what was removed.

        With `dry_run` nothing is removed.

        Errors: `WorkspaceLocked` while a run works here, and those of `slots`.
        """

        def story() -> Flow[None]:
            with self.workspace.lock(command="cuggino slots clean"):
                cleaned = clean_slots(
                    self.cwd,
                    self.config.slot_folder,
                    specs=self.config.specs_path,
                    dry_run=dry_run,
                    views=views_of(self.config),
                )
                yield from forward(cleaned)

        return flow(story)

    def doctor(self) -> Observable[CheckResult]:
        """Emit the results of all checks of the project and its `.cuggino.json`."""
        return doctor.doctor(self.cwd)

    def guard_audit(
        self, run_id: str | None = None, *, level: Level | None = None
    ) -> Observable[JudgedCall]:
        """Emit every tool call of a recorded run with the guard's current verdict on it.

        Errors: `RunNotFound`, and those of `cuggino.guard_audit.audit_run`.
        """
        return after(
            lambda: runs.Runs(self.cwd).path_of(run_id),
            lambda path: guard_audit.audit_run(
                path, project=self.cwd, config=self.config, level=level
            ),
        )

    def plan_session(self) -> PlanSession:
        """Prepare an interactive session with the project manager.

        Raises:
            AgentNotFound: the agent is missing or too old.
        """
        return project_manager.plan_session(self.cwd, self.config, self.agent)

    def plan_by_chat(self) -> Observable[Event]:
        """Talk with the project manager over the configured chat, until it is disposed.

        One session is resumed with each message; its answers are sent in parts that fit. Answers to
        open questions are taken, too. Emits the events of the agent and of the conversation.

        Errors: `ConfigError` without a chat whose service knows who writes, or if the agent cannot
        resume a session; `AgentNotFound`.
        """

        def story() -> Flow[None]:
            channels = channels_of(self.config.chat)
            known = [one for one in channels if not isinstance(one, NtfyChannel)]
            if not known:
                raise ConfigError(
                    "no chat is configured whose service knows who writes",
                    hint='set "chat" to a bot of Telegram; see `cuggino help chat`',
                )
            talk = self.plan_session().talk()
            yield from forward(merge_now(*(self._conversation(one, talk) for one in known)))

        return on_loop(flow(story))

    def _start(
        self,
        loop: Callable[..., Observable[Any]],
        options: Callable[[], _Options],
        check: Callable[[_Options], object],
        interrupt: Observable[object] | None,
        resumed: _Resumed | None = None,
        *,
        commits: bool = False,
    ) -> Observable[Any]:
        """Start a loop, or resume a run of it, once `check` has found that it can work here."""

        def prepared() -> tuple[_Options, JournalFile | None]:
            if resumed is None:
                journal, chosen = None, options()
            else:
                journal = find_run(self.workspace.journal, resumed.run_id, kind=resumed.kind)
                chosen = resumed_options(options(), journal.started)
            check(chosen)
            self._check_budget(chosen)
            return chosen, journal

        return self._begun(prepared, loop, interrupt, commits=commits)

    def _begun(
        self,
        prepare: Callable[[], tuple[_Options, JournalFile | None]],
        start: Callable[..., Observable[Any]],
        interrupt: Observable[object] | None,
        *,
        commits: bool = False,
    ) -> Observable[Any]:
        """Start a loop with the options, and the run to resume, that `prepare` returns.

        Login checks, and git if the loop commits, run concurrently with `prepare`.
        """

        def story() -> Flow[None]:
            here = yield from ask(lane())
            assert here is not None
            with running(self._logins(), here) as logins:
                if commits:
                    yield from git_answers(interrupt)
                # First: a way to notify that is not installed is known before anything starts.
                notifier = yield from ask(act(self._notifier))
                channels = yield from ask(act(lambda: channels_of(self.config.chat)))
                prepared = yield from ask(act(prepare))
                assert prepared is not None
                options, journal = prepared
                found = yield from ask_unless(interrupt, logins)
                if found:
                    check_logins(self.agent, options.roles, found)
            loop = start(options, interrupt=interrupt, resume=journal)
            given = self._notifications(options, interrupt)
            if notifier is not None:
                loop = loop.pipe(notify.with_notifications(notifier, **given))
            # In the conversation of a watch, or of a run with approvals, a person is asked already.
            if options.kind == "watch" or (options.kind == "run" and options.approve):
                given = {**given, "on": {*given["on"]} - {"spec_issue"}}
            for channel in channels or ():
                loop = loop.pipe(reachable(channel, **given))
            if not self.config.allow_sleep:
                loop = loop.pipe(keeping_awake(awake()))
            yield from forward(within_loop(loop))

        return on_loop(flow(story))

    def _notifier(self) -> notify.Notifier | None:
        if not self.config.sends:
            return None
        return notify.make_notifier(self.config, cwd=self.cwd, views=views_of(self.config))

    def _notifications(
        self, options: RunOptions, interrupt: Observable[object] | None
    ) -> dict[str, Any]:
        settings = self.config.notifications
        return {
            "project": self.cwd.name,
            "subject": title_of(getattr(options, "focus", "")),
            "on": settings.on,
            "at": settings.at if options.kind == "watch" else None,
            "page": lambda: served_page(self.cwd),
            "mask": self._mask,
            "interrupt": interrupt,
        }

    def _logins(self) -> Observable[list[Login]]:
        if not self.config.login_check:
            return just([])

        memory = LoginMemory(state_folder(os.environ))
        agents = [one for role in get_args(Role) for one in self.agent.agents_for(role)]
        return logins_of(agents, cwd=self.cwd, memory=memory)

    def _options(self, model: type[_Options], given: dict[str, Any]) -> _Options:
        return configured(model, self.config, {"cwd": self.cwd, "agent": self.agent_name, **given})

    def _check_budget(self, options: RunOptions) -> None:
        check_budget(self.agent, options.roles, options, model=options.model)

    def checked_building(self, options: loops.PlanBuildOptions) -> loops.PlanBuildOptions:
        """Return the options, after a check that the plan/build loop can work here."""
        self.builder.check(options)
        check_agents(self.agent, options.roles, guarded=options.is_guarded)
        self._check_budget(options)
        check_writable(self.cwd)
        return options


def _require_agent(agent: object) -> None:
    """Raise a TypeError unless this is an agent."""
    if isinstance(agent, type):
        raise TypeError(f"{agent.__name__} is a class: pass an agent, {agent.__name__}(...)")
    if not hasattr(agent, "spawn"):
        raise TypeError(
            f"{agent!r} is not an agent: make_agent makes one by its name, "
            "and one of your own has a `name` and `spawn`"
        )


def _snapshots(folder: Path, config: Config) -> GitSnapshots:
    limit = round(config.snapshot_max_file * 1e6)
    return GitSnapshots(folder, Workspace(folder).snapshots, max_file=limit, views=views_of(config))
