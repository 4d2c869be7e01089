"""Stages of the project beside its agents: setup, check, commit, push and snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from reactivex import Observable, concat, defer, empty, of, operators as ops

from cuggino.events import (
    CheckCommandOutput,
    CheckCommandStarted,
    Checked,
    CommandOutputEvent,
    Event,
    PushFailed,
    PushPerformed,
    SetupCommandOutput,
    SetupCommandStarted,
    SnapshotFailed,
    SnapshotTaken,
)
from cuggino.gate import GitWork, State
from cuggino.operators import Flow, ask, emit, flow, forward
from cuggino.operators.mistakes import require_text
from cuggino.processes import KeptProcesses
from cuggino.sandbox import ViewRole
from cuggino.stages.command import Shell, command_stage, keeping_shell, must_succeed
from cuggino.stages.repository import commit_to, push_to
from cuggino.stages.verification import verified, verified_commit
from cuggino.stages.workplace import Workplace, require_place

Output = TypeVar("Output", SetupCommandOutput, CheckCommandOutput)

_NONE: Mapping[str, str] = MappingProxyType({})


def setup_stage(
    place: Workplace,
    command: str | None,
    *,
    iteration: int = 1,
    strict: bool = False,
    is_first: bool = False,
    kept: KeptProcesses | None = None,
) -> Observable[Event]:
    """Run the setup command, and remember one that has succeeded.

    ::

        command:         --x-|
        setup_stage:     S---(O|)

    Emits `SetupCommandStarted`, and last `SetupCommandOutput` with the exit code (`command_stage`);
    `RoleViolated` in between names protected paths that the command changed, which are restored.
    Without a command nothing is emitted.

    The command gets the implementer's view of the project, as it runs what agents have written.
    `is_first` tells that no agent has written anything yet: then it has no view until it has
    succeeded once in this project, as it is the user's own and may write git's hooks and
    configuration. With `kept` it has no view either, and what it leaves running in the background
    runs until `kept.end()`; otherwise that ends with the command.

    Errors: `LoopError` with `strict` after another exit code than 0; `StorageError`.
    """
    require_place(place)
    if not command:
        return empty()
    require_text("command", command)

    def remember(event: Event) -> None:
        workspace = place.services.workspace
        succeeded = isinstance(event, SetupCommandOutput) and event.exit_code == 0
        if succeeded and not workspace.knows_setup(command):
            workspace.remember_setup(command)

    def start(_scheduler: object) -> Observable[Any]:
        is_own = is_first and not place.services.workspace.knows_setup(command)
        shell = place.plain_shell if is_own else place.shell
        if kept is not None:
            shell = keeping_shell(kept, place.options.env, place.options.sandbox_show)
        stage = _command(place, SetupCommandOutput, command, iteration, shell)
        if not is_own:
            stage = _verified(place, stage, "setup", enclosed=kept is None)
        return stage.pipe(ops.do_action(remember))

    stage: Observable[Any] = defer(start)
    started = of(SetupCommandStarted(iteration=iteration, command=command))
    return concat(started, must_succeed(stage) if strict else stage)


def check_stage(place: Workplace, command: str | None, *, iteration: int = 1) -> Observable[Event]:
    """Run the check command; its outcome is for the next agent.

    ::

        command:         --x-|
        check_stage:     S---(O|)

    Emits `CheckCommandStarted`, and last `CheckCommandOutput` with the exit code, of which another
    than 0 is no error (`command_stage`); `RoleViolated` in between as in `setup_stage`. Without a
    command nothing is emitted.

    Errors: `StorageError`.
    """
    require_place(place)
    if not command:
        return empty()
    require_text("command", command)

    def start(_scheduler: object) -> Observable[Any]:
        stage = _command(place, CheckCommandOutput, command, iteration, place.shell)
        return _verified(place, stage, "check", enclosed=True)

    started = of(CheckCommandStarted(iteration=iteration, command=command))
    return concat(started, defer(start))


def copy_check_stage(
    place: Workplace,
    command: str,
    start: State,
    paths: Sequence[str] = (),
    *,
    iteration: int = 1,
) -> Observable[Event]:
    """Run the check command in a copy of the project, where `paths` are as at the start.

    ::

        command:           --x-|
        copy_check_stage:  S---(O|)

    Emits `CheckCommandStarted` and `CheckCommandOutput`, as `check_stage`, with `on="start"`, or
    `on="copy"` without paths. What the command writes vanishes: the copy is the reviewer's view if
    that is copy-on-write, otherwise a temporary folder. Nothing is emitted where no copy can be
    made, as with a shell of one's own.

    Errors: `StorageError`.
    """
    on: Checked = "start" if paths else "copy"

    def run() -> Flow[None]:
        shell: Shell | None = None
        work = place.services.work
        if place.is_verified or not isinstance(work, GitWork):
            shell = yield from ask(work.copy(start, paths, env=place.options.env))
        if shell is None:
            return
        place.prepare()
        yield from emit(CheckCommandStarted(iteration=iteration, command=command, on=on))
        stage = command_stage(
            CheckCommandOutput,
            command,
            shell=shell,
            cwd=place.options.cwd,
            iteration=iteration,
            output_file=place.session.copy_check_file,
            timeout=place.command_timeout,
        )
        in_time: Observable[Any] = place.supervision.in_time(stage)
        told: Observable[Any] = in_time.pipe(ops.map(lambda event: _on(event, on)))
        yield from forward(_verified(place, told, "check", enclosed=True))

    return flow(run)


def commit_stage(
    place: Workplace,
    message: str,
    *,
    iteration: int = 1,
    base: str | None = None,
    exclude: tuple[Path, ...] | None = None,
    dirty: Mapping[str, str] = _NONE,
    role: ViewRole = "implementing",
) -> Observable[Event]:
    """Commit the work of a task, without the specifications unless `exclude` says otherwise.

    ::

        git:              --(k|)
        commit_stage:     --(K|)

    Emits what `commit_to` emits, `CommitPerformed` last, or `CommitFailed`, or nothing without
    changes. What git's hooks change without permission is restored first (`verified_commit`);
    `role` is the one that works in the loop. A failure is an event, never an error.
    """
    require_place(place)
    require_text("message", message)

    def start(_scheduler: object) -> Observable[Any]:
        committed = commit_to(
            place.services.repository,
            message,
            iteration=iteration,
            base=base,
            exclude=(Path(place.options.specs_path),) if exclude is None else exclude,
            dirty=dirty,
        )
        return committed.pipe(verified_commit(place.protected("commit", role=role)))

    return defer(start)


def push_stage(
    place: Workplace, target: str, commit_hash: str, *, iteration: int = 1
) -> Observable[Event]:
    """Push the current branch to `target`, such as `origin/main`.

    ::

        git:            --|
        push_stage:     --(P|)

    Emits `PushPerformed` last, with the `commit_hash`, or `PushFailed`. What git's hooks change
    without permission is restored first, with `RoleViolated`. A failure is an event, never an
    error: the next push includes the commit.
    """
    require_place(place)
    require_text("target", target)
    if not all(target.partition("/")):
        raise ValueError(f"target must be a remote and a branch, as origin/main, not {target!r}")

    def start(_scheduler: object) -> Observable[Any]:
        pushed = push_to(place.services.repository, target, commit_hash, iteration=iteration)
        hooks = verified(
            place.protected("push"),
            is_last=lambda e: isinstance(e, PushPerformed | PushFailed),
            voids=False,
        )
        return pushed.pipe(hooks)

    return defer(start)


def snapshot_stage(place: Workplace, stage: str) -> Observable[SnapshotTaken | SnapshotFailed]:
    """Keep the files of the project as they are, as `<session>/<stage>`, for `cuggino undo`.

    Emits `SnapshotTaken` or `SnapshotFailed`, never an error: work continues without a snapshot.
    Nothing is emitted without a git repository.
    """
    require_place(place)
    require_text("stage", stage)
    return place.services.snapshots.take(place.session.id, stage)


def _on(event: Any, on: Checked) -> Any:
    return event.model_copy(update={"on": on}) if isinstance(event, CheckCommandOutput) else event


def _command(
    place: Workplace, kind: type[Output], command: str, iteration: int, shell: Shell
) -> Observable[Any]:
    """Run the command, cut off when the time of the whole run is up."""
    place.prepare()
    session = place.session
    is_setup = kind is SetupCommandOutput
    return place.supervision.in_time(
        command_stage(
            kind,
            command,
            shell=shell,
            cwd=place.options.cwd,
            iteration=iteration,
            output_file=session.setup_file if is_setup else session.check_file,
            timeout=place.command_timeout,
        )
    )


def _verified(
    place: Workplace, command: Observable[Any], stage: str, *, enclosed: bool
) -> Observable[Any]:
    """Restore what the command changes without permission."""
    if not place.is_verified:
        return command
    protected = place.protected(stage, enclosed=enclosed)
    return command.pipe(
        verified(protected, is_last=lambda e: isinstance(e, CommandOutputEvent), voids=False)
    )
