"""Checks before a run, and its options: nothing is started or written yet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from errno import ENOENT
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel
from reactivex import Observable, abc, never, operators as ops, throw
from reactivex.subject import AsyncSubject

from cuggino.agents import LlmAgent, Role
from cuggino.config import CONFIG_FILE, Config, SupervisionSettings
from cuggino.domain import Pricing, budget_unenforceable
from cuggino.edited_files import InvalidFile, validated
from cuggino.errors import ConfigError, Interrupted, ProcessError, SpawnFailed
from cuggino.git import Git, commit_obstacles, has_work_tree, view_obstacles
from cuggino.operators import Flow, ask, flow, forward, interrupt_when, on_loop
from cuggino.operators.on_loop import within_loop
from cuggino.sandbox import views_of
from cuggino.stages import act, lane, unpriceable
from cuggino.storage import (
    WORKSPACE_FOLDER,
    Workspace,
    check_specs,
    check_specs_not_empty,
    find_run,
)

T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)

GIT_LIMIT = 10.0
"""Seconds in which git must report its version."""
_CODING: tuple[Role, ...] = ("planning", "implementing", "reviewing")
"""The roles of the coding loop."""


def check_project(
    cwd: Path, config: Config, agent: LlmAgent, *, watch: bool = False, resume: bool = False
) -> None:
    """Check that the coding loop, or with `watch` the watch, can work in this folder.

    With `resume`, and for a watch, a lock on the repository is no obstacle: that of a process that
    was killed is removed by the run itself.

    Raises:
        ConfigError: the specs folder is missing or holds no
            specification, there is no repository while
            `commit` is on, commits would fail (`commit_obstacles`), git is not installed, or the
            workspace folder cannot be written; and as `check_agents`.
        AgentNotFound: as `check_agents`.
    """
    specs = cwd / config.specs_path
    check_specs(specs)
    if config.commit and specs.resolve() == cwd.resolve():
        raise ConfigError(
            "specsPath is the project itself, and specs are never committed, but commit is on",
            hint=f"give the specifications a folder of their own in {CONFIG_FILE}",
        )
    check_specs_not_empty(specs)
    if config.commit:
        check_commits(cwd, locks=not (watch or resume))
    check_views(cwd, config)
    roles = (*_CODING, "audit") if watch and config.audit else _CODING
    check_agents(agent, roles, guarded=config.guard != "off")
    check_writable(cwd)


def check_agents(agent: LlmAgent, roles: Iterable[Role], *, guarded: bool) -> None:
    """Check that each role has an agent; with `guarded`, that no fallback is unguarded.

    The only agent of a role may lack a guard; an agent that others fall back to may not.

    Raises:
        AgentNotFound: the only agent of a role, or all of them, are missing or too old.
        ConfigError: one of several agents of a role has no guard.
    """
    agent.check_roles(roles, guarded=guarded)


def check_budget(
    agent: LlmAgent, roles: Iterable[Role], settings: SupervisionSettings, *, model: str | None
) -> None:
    """Check that a budget in dollars can hold, as far as is known before the agents start.

    Raises:
        ConfigError: the price of `price_as` is unknown, or that of an agent's model.
    """
    pricing = Pricing(settings.price_as)
    pricing.check()
    if settings.budget is None:
        return
    for unknown in unpriceable(agent, roles, model=model, pricing=pricing):
        error = budget_unenforceable(unknown, settings.budget)
        raise ConfigError(error.message, hint=error.hint)


def check_writable(cwd: Path) -> None:
    """Check that the workspace of the project can be created and written.

    A link in its place may be the user's own, but not one that came with the repository: it could
    lead to the files of another program.

    Raises:
        ConfigError: it cannot.
    """
    place = cwd / WORKSPACE_FOLDER
    if place.is_symlink() and Git(cwd=cwd).now("ls-files", "-z", "--", WORKSPACE_FOLDER).output:
        raise ConfigError(
            f"{WORKSPACE_FOLDER} is a link to {place.readlink()}, and part of the repository",
            hint=f"git rm --cached {WORKSPACE_FOLDER}, and ignore it, if the link is yours",
        )
    existing = place if place.exists() else cwd
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise ConfigError(
            f"{existing} cannot be written", hint="check the owner and permissions of the folder"
        )


def check_commits(cwd: Path, *, locks: bool = True) -> None:
    """Check that commits can be made; `locks` as in `commit_obstacles`.

    Raises:
        ConfigError: they cannot.
    """
    off = f'set "commit" to false in {CONFIG_FILE}'
    if not has_work_tree(cwd):
        hint = f"run `git init`, or {off}"
        raise ConfigError(f"{cwd} is in no git repository, but commit is on", hint=hint)
    for obstacle in commit_obstacles(cwd, locks=locks):
        raise ConfigError(f"{obstacle.what}, but commit is on", hint=f"{obstacle.hint}, or {off}")


def check_views(cwd: Path, config: Config) -> None:
    """Check that git, and the program of the check command, work in the views of a run.

    Raises:
        ConfigError: they do not.
    """
    for obstacle in view_obstacles(cwd, views_of(config), check_command=config.check_command):
        raise ConfigError(obstacle.what, hint=obstacle.hint)


def configured(model: type[Model], config: Config, given: dict[str, Any]) -> Model:
    """Return the options of a loop: the settings that it uses, and those that are given.

    Raises:
        ConfigError: a given one cannot be used, or is not an option of the loop.
    """
    shared = model.model_fields.keys() & Config.model_fields.keys()
    settings = {name: getattr(config, name) for name in shared}
    try:
        return validated(model, {**settings, **given})
    except InvalidFile as error:
        raise ConfigError(str(error), hint=error.hint) from error


def resumed_agent(
    cwd: str | os.PathLike[str] = ".",
    run_id: str | None = None,
    *,
    kind: Literal["run", "deliver", "loop"] = "run",
    given: str | None = None,
) -> str | None:
    """Return the agent to resume a run with: the given one, else that of its start.

    For `Runtime.live`, before `resume`, `resume_delivery` or `resume_plan_build` of the run::

        runtime = Runtime.live(cwd=cwd, agent=resumed_agent(cwd))
        run(runtime.resume(), print)

    `run_id` and `kind` are as in `find_run`: without an id it is the latest unfinished run of that
    loop in the project at `cwd`. None when its journal names no agent; then it is the configured
    one. When an agent is given, nothing is read.

    Raises:
        RunNotResumable: the run is unknown.
    """
    if given is not None:
        return given
    return find_run(Workspace(Path(cwd)).journal, run_id, kind=kind).started.agent or None


def git_answers(interrupt: Observable[object] | None) -> Flow[None]:
    """Wait until git has told its version, for at most `GIT_LIMIT` seconds.

    Raises:
        ConfigError: it has not, or it failed; commits need it.
        Interrupted: a person did not want to wait.
    """
    off = f'or set "commit" to false in {CONFIG_FILE}'
    hint = f"install it (again), {off}"
    try:
        version = Git(cwd=Path.cwd(), limit=GIT_LIMIT).must("version")
        yield from ask_unless(interrupt, flow(lambda: version))
    except ProcessError as error:
        missing = isinstance(error, SpawnFailed) and error.errno == ENOENT
        told = "git is not installed" if missing else error.message
        advice = f"{error.hint}, {off}" if error.hint else hint
        raise ConfigError(f"{told}, but commit is on", hint=advice) from error


def ask_unless(interrupt: Observable[object] | None, stream: Observable[T]) -> Flow[T | None]:
    """Run the stream without emitting its events, as `ask`.

    Raises:
        Interrupted: a person did not want to wait.
    """
    here = yield from ask(lane())
    assert here is not None
    asked = (interrupt or never()).pipe(ops.observe_on(here))
    end = asked.pipe(ops.flat_map(lambda _: throw(Interrupted("interrupted"))))
    return (yield from ask(stream.pipe(interrupt_when(end))))


@contextmanager
def running(work: Observable[T], lane: abc.SchedulerBase) -> Iterator[Observable[T]]:
    """Run the work within the block, and yield a stream of its last event.

    What the block does on the lane meanwhile does not hold up a process that the work has started.
    """
    outcome: AsyncSubject[T] = AsyncSubject()
    subscription = work.subscribe(outcome, scheduler=lane)
    try:
        yield outcome
    finally:
        subscription.dispose()


def after(prepare: Callable[[], T], start: Callable[[T], Observable[Any]]) -> Observable[Any]:
    """Run `prepare` at subscription, then the stream that `start` makes of it."""

    def story() -> Flow[None]:
        prepared = yield from ask(act(prepare))
        assert prepared is not None
        yield from forward(within_loop(start(prepared)))

    return on_loop(flow(story))
