"""The setup and check commands of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from reactivex import Observable, defer, of, operators as ops

from cuggino.events import (
    CheckCommandOutput,
    CheckCommandStarted,
    CommandOutputEvent,
    CommandStartedEvent,
    Event,
    SetupCommandOutput,
    SetupCommandStarted,
)
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.frame.run import Run
from cuggino.loops.frame.spawning import commands_shell, plain_shell, protected_from_commands
from cuggino.operators import Flow, ask, forward
from cuggino.stages import (
    KeptProcesses,
    command_stage,
    keeping_shell,
    must_succeed,
    shell_lines,
    verified,
)
from cuggino.storage import finished_stages

Output = TypeVar("Output", "SetupCommandOutput", "CheckCommandOutput")


def _started(kind: type[CommandOutputEvent]) -> tuple[str, type[CommandStartedEvent]]:
    """Return the name of the stage of a command, and the event that announces it."""
    if kind is SetupCommandOutput:
        return "setup", SetupCommandStarted
    return "check", CheckCommandStarted


class Commands:
    """The commands of one run; each method runs one and returns the outcome, or None without it.

    Commands run what agents have written, so they get the implementer's view of the project. The
    setup command is the user's own the first time, as it may write git's hooks and configuration:
    until it has succeeded in this project, the first setup of each run has no view, unless the run
    begins with the work of agents. Neither has a setup that keeps services running.
    """

    def __init__(self, run: Run, options: LoopRunOptions) -> None:
        self._plain = plain_shell(run.services.shell, options)
        self._shell = commands_shell(run.services.shell, options)
        self._is_verified = run.services.shell is shell_lines
        self._workspace = run.services.workspace
        self._kept = KeptProcesses()
        self._resumed = run.resumed
        self._session = run.session
        self._options = options
        self._supervision = run.supervision

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Terminate what the setup command has left running when the block is left."""
        try:
            yield
        finally:
            self._kept.end()

    def resume(self) -> Flow[None]:
        """Start again what the setup command keeps running; it ended with the earlier process."""
        options, resumed = self._options, self._resumed
        if resumed is None or not options.setup_keeps_running or not options.setup_command:
            return
        if all(stage.name != "setup" for stage in finished_stages(resumed)):
            return
        stage = self._stage(SetupCommandOutput, options.setup_command, 1, self._session.setup_file)
        try:
            yield from ask(stage)
        except BaseException:
            self._kept.end()
            raise

    def setup(self, n: int) -> Flow[SetupCommandOutput | None]:
        """Run the setup command; with `setup_strict` its failure ends the run."""
        command, file = self._options.setup_command, self._session.setup_file
        strict = self._options.setup_strict
        return (yield from self._run(SetupCommandOutput, command, n, file, strict=strict))

    def check(self, n: int) -> Flow[CheckCommandOutput | None]:
        """Run the check command; its output is for the next agent."""
        command, file = self._options.check_command, self._session.check_file
        return (yield from self._run(CheckCommandOutput, command, n, file))

    def _run(
        self,
        kind: type[Output],
        command: str | None,
        n: int,
        output_file: Path,
        *,
        strict: bool = False,
    ) -> Flow[Output | None]:
        if not command:
            return None
        stage = self._stage(kind, command, n, output_file)
        name, started = _started(kind)
        announced = of(started(iteration=n, command=command))
        outcome = yield from forward(
            announced.pipe(ops.concat(must_succeed(stage) if strict else stage)), name=name
        )
        assert isinstance(outcome, kind)
        return outcome

    def _stage(
        self, kind: type[CommandOutputEvent], command: str, n: int, output_file: Path
    ) -> Observable[Any]:
        def start() -> Observable[Any]:
            is_setup = kind is SetupCommandOutput
            is_first = n == 1 and self._options.merge is None
            is_own = is_setup and is_first and not self._workspace.knows_setup(command)
            keeps = is_setup and self._options.setup_keeps_running
            shell = self._plain if is_own else self._shell
            if keeps:
                options = self._options
                shell = keeping_shell(self._kept, options.env, options.sandbox_show)
            stage = self._supervision.in_time(
                command_stage(
                    kind,
                    command,
                    shell=shell,
                    cwd=self._options.cwd,
                    iteration=n,
                    output_file=output_file,
                    timeout=self._options.command_timeout,
                )
            )
            if not is_own and self._is_verified:
                protected = protected_from_commands(
                    self._options,
                    _started(kind)[0],
                    session=self._session,
                    enclosed=not keeps,
                )
                stage = stage.pipe(verified(protected, is_last=_is_output, voids=False))
            return stage.pipe(ops.do_action(self._remember)) if is_setup else stage

        return defer(lambda _: start())

    def _remember(self, setup: Event) -> None:
        """Remember a setup command that has succeeded."""
        command = self._options.setup_command
        succeeded = isinstance(setup, SetupCommandOutput) and setup.exit_code == 0
        if command and succeeded and not self._workspace.knows_setup(command):
            self._workspace.remember_setup(command)


def _is_output(event: object) -> bool:
    return isinstance(event, CommandOutputEvent)


class OwnReview(NamedTuple):
    """A review of the loop itself, after an approval that does not count."""

    content: str


def gate_review(check: CheckCommandOutput) -> OwnReview:
    """Return the review for the planning agent when an approval does not count."""
    return OwnReview(
        "The reviewer approved, but the check command failed "
        f"(exit code {check.exit_code}), so the approval does not count. "
        f"Make the check pass. Its output was:\n\n{check.output}"
    )
