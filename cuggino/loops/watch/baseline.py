"""The check before the first agent of a watch with slots: in an untouched slot, and in the project.

A check that passes only in the project would fail in each slot and at each landing, whatever agents
do, so nothing is begun.
"""

from __future__ import annotations

from functools import partial

from reactivex import Observable, operators as ops

from cuggino.errors import CheckUnusable
from cuggino.events import (
    Baseline,
    CheckCommandOutput,
    CheckCommandStarted,
    Checked,
    CommandOutputEvent,
    Event,
    SetupCommandOutput,
)
from cuggino.gate import CheckResult
from cuggino.git import STATUS, Git, changed_files
from cuggino.loops.watch.options import WatchRunOptions
from cuggino.operators import Flow, ask, emit, flow, forward
from cuggino.sandbox import views_of
from cuggino.stages import (
    Services,
    Shell,
    clock,
    command_stage,
    commands_shell,
    missing_ignored,
    shell_lines,
)
from cuggino.stages.slots import Gate

_MOST = 10
"""The files that a message names."""


def baseline_stage(
    services: Services, options: WatchRunOptions, gate: Gate, commit: str
) -> Observable[Event]:
    """Run the check on a clean checkout of the commit, as in an untouched slot; in the gate tree.

    ::

        [setup] check [check] Baseline

    A check that fails runs in a copy of the project, too. If it fails there as well, its failures
    are the `baseline` of the gate.

    Errors: `CheckUnusable` if it passes in the project only, if the setup fails, or if the check
    must pass (`baseline`) and does not.
    """
    return flow(lambda: _measured(services, options, gate, commit))


def _measured(services: Services, options: WatchRunOptions, gate: Gate, commit: str) -> Flow[None]:
    began = yield from ask(clock())
    output = yield from gate.settled(commit)
    ended = yield from ask(clock())
    assert began is not None
    assert ended is not None
    if isinstance(output, SetupCommandOutput) and output.exit_code != 0:
        raise CheckUnusable(
            f"the setup command fails in a slot {_reason(output)}",
            hint="each item begins with it; make it work in a new clone of the project",
        )
    result = CheckResult.of(output.exit_code, output.output)
    if not result.passed:
        yield from _compare_with_project(services, options, gate, output)
    seconds = round((ended - began).total_seconds(), 3)
    yield from emit(
        Baseline(iteration=1, exit_code=result.exit_code, failing=result.failing, seconds=seconds)
    )
    if not result.passed and options.baseline == "must-pass":
        raise CheckUnusable(f"the check fails before the first agent {_reason(output)}")
    gate.baseline = result


def _compare_with_project(
    services: Services, options: WatchRunOptions, gate: Gate, output: CommandOutputEvent
) -> Flow[None]:
    """Run the check in a copy of the project, or else in the project itself.

    Raises:
        CheckUnusable: it passes there.
    """
    place, tree = yield from gate.located()
    copied: Shell | None = None
    state = yield from ask(services.work.state())
    if state is not None and services.shell is shell_lines:
        copied = yield from ask(services.work.copy(state, (), env=options.env))
    on: Checked = "work" if copied is None else "copy"
    yield from emit(CheckCommandStarted(iteration=1, command=gate.check_command, on=on))
    check = command_stage(
        CheckCommandOutput,
        gate.check_command,
        shell=copied or commands_shell(services.shell, options),
        cwd=options.cwd,
        iteration=1,
        output_file=tree.folder / ".git" / "cuggino-check-in-project",
        timeout=options.command_timeout,
    )
    here = yield from forward(check.pipe(ops.map(partial(_on, on))))
    if here is None or here.exit_code != 0:
        return
    views = views_of(options)
    folder = tree.folder / place.layout.prefix
    missing = yield from missing_ignored(options.cwd, folder, views=views)
    listed = yield from Git(cwd=options.cwd, views=views).must(*STATUS, "--", ".")
    changed = [entry.path for entry in changed_files(listed.fields)]
    raise CheckUnusable(
        f"the check passes in the project, but fails in a slot {_reason(output)}"
        f"{_named('Slots lack these ignored files', missing)}"
        f"{_named('Slots lack these uncommitted changes', changed)}",
        hint=_hint(missing),
    )


def _on(on: Checked, output: CheckCommandOutput) -> CheckCommandOutput:
    return output.model_copy(update={"on": on})


def _reason(output: CommandOutputEvent) -> str:
    lines = [line.strip() for line in output.output.splitlines() if line.strip()]
    return f"(exit code {output.exit_code}): {lines[-1].rstrip('.') if lines else 'no output'}"


def _named(what: str, paths: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(paths) - _MOST} more" if len(paths) > _MOST else ""
    return f". {what}: {', '.join(paths[:_MOST])}{more}" if paths else ""


def _hint(missing: tuple[str, ...]) -> str:
    anyway = 'to begin all the same, set "baseline" to "skip"'
    if not missing:
        return f"commit what the check needs; {anyway}"
    return (
        "name what the check needs in .worktreeinclude, one pattern a line as in .gitignore, or "
        f"let the setup command make it; {anyway}"
    )
