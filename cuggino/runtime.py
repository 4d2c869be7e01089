"""The layer: services made from a folder, a configuration and an agent."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from reactivex import Observable

from cuggino.agents import LlmAgent, configured_agent
from cuggino.agents.cassettes import record_to, with_speed
from cuggino.agents.protocol import own_files_of
from cuggino.config import Config, LoopSettings, load_config
from cuggino.events import DeliverStreamEvent, LoopEvent, PlanBuildStreamEvent, WatchEvent
from cuggino.loops import (
    DeliverRunOptions,
    DeliverService,
    LoopRunOptions,
    LoopService,
    PlanBuildOptions,
    PlanBuildService,
    WatchRunOptions,
    WatchService,
)
from cuggino.loops.resuming import resumed_building, resumed_delivery, resumed_options
from cuggino.notify import make_notifier, with_notifications
from cuggino.operators import Flow, QuotaGate, ask, flow, forward, on_loop
from cuggino.preflight import after, check_agents, check_project, check_writable, configured
from cuggino.prompts import Prompts
from cuggino.stages import GitRepository, act
from cuggino.storage import WORKSPACE_FOLDER, JournalFile, Workspace, find_run, read_focus

_Options = TypeVar("_Options", DeliverRunOptions, PlanBuildOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Everything that a loop in one project needs. Made by `live`; every part can be replaced."""

    cwd: Path
    config: Config
    agent: LlmAgent
    workspace: Workspace
    loop: LoopService
    watcher: WatchService
    deliverer: DeliverService
    builder: PlanBuildService
    agent_name: str = ""
    """The agent as it was named, for the journal, where `cuggino.resumed_agent` finds it."""

    @classmethod
    def live(
        cls,
        *,
        cwd: str | os.PathLike[str] = ".",
        config: Config | None = None,
        agent: str | LlmAgent | None = None,
        record: str | os.PathLike[str] | None = None,
        speed: float | None = None,
    ) -> Runtime:
        """The services for the project at `cwd`. Nothing is started or written yet.

        `config` defaults to the project's `.cuggino.json`. `agent` is an agent, or a name such as
        `claude` or `scripted:FILE`; it defaults to the configured one. The configuration's `agents`
        and `fallback` come beside it (`configured_agent`).

        `record` is a new file, relative to `cwd`, to which all sessions of agents are recorded;
        `replay:FILE` plays them, at `speed` (`ReplayAgent`).

        Raises:
            ConfigError: the configuration or an agent's name cannot be used, nothing can be
                recorded to that file, or an agent has no speed.
        """
        folder = Path(cwd).resolve()
        config = config or load_config(folder)
        name = agent if isinstance(agent, str) else agent.name if agent else config.agent
        agent = configured_agent(config, cwd=folder, agent=agent)
        if speed is not None:
            agent = with_speed(agent, speed)
        # What is checked is the agent itself, what works is the one that is recorded.
        worker = agent if record is None else record_to(folder / record, agent)
        apart = (Path(WORKSPACE_FOLDER), *own_files_of(worker))
        workspace = Workspace(folder)
        repository = GitRepository(
            folder, exclude=(Path(config.specs_path), *apart), timeout=config.commit_timeout
        )
        prompts = Prompts(workspace.prompts)
        gate = QuotaGate()
        loop = LoopService(
            agent=worker, workspace=workspace, repository=repository, prompts=prompts, gate=gate
        )
        watcher = WatchService(
            agent=worker, workspace=workspace, loop=loop, prompts=prompts, gate=gate
        )
        return cls(
            cwd=folder,
            config=config,
            agent=agent,
            workspace=workspace,
            loop=loop,
            watcher=watcher,
            deliverer=DeliverService(agent=worker, workspace=workspace, gate=gate),
            builder=PlanBuildService(
                agent=worker,
                workspace=workspace,
                # All that its agents leave: what they plan is a part of the project.
                repository=GitRepository(folder, exclude=apart, timeout=config.commit_timeout),
                prompts=prompts,
                gate=gate,
            ),
            agent_name=name,
        )

    def loop_options(
        self, *, focus: str, review: str | None = None, slow: bool = False
    ) -> LoopRunOptions:
        """The options of a run by the configuration. `focus` is a text, or `@path` of a file.

        Raises:
            ConfigError: the focus is blank, or its file cannot be read.
        """
        settings = {name: getattr(self.config, name) for name in LoopSettings.model_fields}
        return LoopRunOptions(
            focus=read_focus(focus, self.cwd),
            cwd=self.cwd,
            review=review,
            slow=slow,
            agent=self.agent_name,
            **settings,
        )

    def run(
        self, *, focus: str, review: str | None = None, slow: bool = False
    ) -> Observable[LoopEvent]:
        """The coding loop, after a look whether it can work here (`check_project`).

        Emits what `LoopService.run` emits; a project that cannot be used is an error before
        anything is started or written.
        """

        def prepared() -> LoopRunOptions:
            options = self.loop_options(focus=focus, review=review, slow=slow)
            check_project(self.cwd, self.config, self.agent)
            self.loop.check()
            return options

        return after(prepared, self.loop.run)

    def resume(self, run_id: str | None = None) -> Observable[LoopEvent]:
        """Go on with an unfinished run: the latest, or the one whose id begins so.

        Emits `RunResumed`, then what `LoopService.run` emits from the first unfinished stage on.
        Focus and course are those of the run, limits and policies those of the configuration.

        Errors: `RunNotResumable`, before anything is started or written.
        """

        def prepared() -> tuple[JournalFile, LoopRunOptions]:
            journal = find_run(self.workspace.journal, run_id)
            check_project(self.cwd, self.config, self.agent)
            self.loop.check()
            current = self.loop_options(focus="the focus of the run")
            return journal, resumed_options(current, journal.started)

        return after(prepared, lambda found: self.loop.run(found[1], resume=found[0]))

    def watch(self, *, slow: bool = False) -> Observable[WatchEvent]:
        """The watch over the project's backlog, after a look whether it can work here.

        Emits what `WatchService.run` emits, and `NotificationFailed` when a person cannot be
        notified (`notify` in the configuration); never completes.
        """

        def story() -> Flow[None]:
            # First: a way to notify that is not installed is known before anything starts.
            notifier = yield from ask(act(lambda: make_notifier(self.config)))
            options = yield from ask(act(lambda: self._checked_watch(slow=slow)))
            assert options is not None
            assert notifier is not None
            yield from forward(
                self.watcher.run(options).pipe(with_notifications(notifier, project=self.cwd.name))
            )

        return on_loop(flow(story))

    def deliver_options(self, **given: Any) -> DeliverRunOptions:
        """The options of a deliverables run by the configuration, and those that are given.

        Raises:
            ConfigError: one of those given cannot be used.
        """
        return self._options(DeliverRunOptions, given)

    def deliver(
        self,
        options: DeliverRunOptions | None = None,
        *,
        interrupt: Observable[object] | None = None,
    ) -> Observable[DeliverStreamEvent]:
        """The deliverables loop, as `run`; emits what `DeliverService.run` emits."""
        return after(
            lambda: self._checked_delivery(options),
            lambda checked: self.deliverer.run(checked, interrupt=interrupt),
        )

    def resume_delivery(
        self,
        run_id: str | None = None,
        *,
        interrupt: Observable[object] | None = None,
        **given: Any,
    ) -> Observable[DeliverStreamEvent]:
        """Go on with an unfinished deliverables run: the latest, or the one whose id begins so.

        Emits `RunResumed`, then what `DeliverService.run` emits from the first unfinished session
        on. Course and workflow are those of the run, limits and policies those given now.

        Errors: `RunNotResumable`, before anything is started or written.
        """

        def prepared() -> tuple[JournalFile, DeliverRunOptions]:
            journal = find_run(self.workspace.journal, run_id, kind="deliver")
            options = resumed_delivery(self.deliver_options(**given), journal.started)
            return journal, self._checked_delivery(options)

        return after(
            prepared,
            lambda found: self.deliverer.run(found[1], interrupt=interrupt, resume=found[0]),
        )

    def plan_build_options(self, **given: Any) -> PlanBuildOptions:
        """The options of a plan/build run by the configuration, and those that are given.

        Raises:
            ConfigError: one of those given cannot be used.
        """
        return self._options(PlanBuildOptions, given)

    def plan_build(
        self,
        options: PlanBuildOptions | None = None,
        *,
        interrupt: Observable[object] | None = None,
    ) -> Observable[PlanBuildStreamEvent]:
        """The plan/build loop, after a look whether it can work here.

        Emits what `PlanBuildService.run` emits.
        """
        return after(
            lambda: self.checked_building(options or self.plan_build_options()),
            lambda checked: self.builder.run(checked, interrupt=interrupt),
        )

    def resume_plan_build(
        self,
        run_id: str | None = None,
        *,
        interrupt: Observable[object] | None = None,
        **given: Any,
    ) -> Observable[PlanBuildStreamEvent]:
        """Go on with an unfinished plan/build run, as `resume_delivery`."""

        def prepared() -> tuple[JournalFile, PlanBuildOptions]:
            journal = find_run(self.workspace.journal, run_id, kind="loop")
            options = resumed_building(self.plan_build_options(**given), journal.started)
            return journal, self.checked_building(options)

        return after(
            prepared,
            lambda found: self.builder.run(found[1], interrupt=interrupt, resume=found[0]),
        )

    def _options(self, model: type[_Options], given: dict[str, Any]) -> _Options:
        return configured(model, self.config, {"cwd": self.cwd, "agent": self.agent_name, **given})

    def _checked_delivery(self, options: DeliverRunOptions | None) -> DeliverRunOptions:
        options = options or self.deliver_options()
        self.deliverer.check()
        check_agents(self.agent, options.roles, guarded=options.guard != "off")
        check_writable(self.cwd)
        return options

    def checked_building(self, options: PlanBuildOptions) -> PlanBuildOptions:
        """The options, after a look whether the plan/build loop can work here; raises if not."""
        self.builder.check(options)
        check_agents(self.agent, options.roles, guarded=options.is_guarded)
        check_writable(self.cwd)
        return options

    def _checked_watch(self, *, slow: bool) -> WatchRunOptions:
        check_project(self.cwd, self.config, self.agent, watch=True)
        self.watcher.check()
        shared = WatchRunOptions.model_fields.keys() & type(self.config).model_fields.keys()
        shared -= {"agent"}
        settings = {name: getattr(self.config, name) for name in shared}
        return WatchRunOptions(cwd=self.cwd, slow=slow, agent=self.agent_name, **settings)
