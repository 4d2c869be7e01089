"""The gate: a clean checkout of merged work, and the commands that check it there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeVar

from reactivex import Observable, operators as ops

from cuggino.errors import ConfigError, ProcessError
from cuggino.events import (
    CheckCommandOutput,
    CheckCommandStarted,
    CommandOutputEvent,
    Event,
    SetupCommandOutput,
    SetupCommandStarted,
    WatchCandidate,
    WatchSentBack,
)
from cuggino.files import storing
from cuggino.gate import CheckResult, judge_check
from cuggino.operators import Flow, ask, emit, flow, forward, pause
from cuggino.sandbox import Views
from cuggino.stages.acts import act
from cuggino.stages.command import TIMED_OUT, Shell, command_stage, enclosed_shell, shell_with
from cuggino.stages.flakes import flake_stage
from cuggino.stages.repository import commit_message
from cuggino.stages.slots.folder import Slot
from cuggino.stages.slots.gate_tree import GateTree, Merged, NotMerged
from cuggino.stages.slots.position import Place, commit_named, place_of
from cuggino.stages.slots.refs import candidate_ref
from cuggino.storage import WorkspaceLock

ITEM = "Item"
"""The trailer of a landing's commit that names its item."""
_BRANCHES = 100
"""Maximum number of branches of one item."""
_NONE: Mapping[str, str] = MappingProxyType({})

Output = TypeVar("Output", SetupCommandOutput, CheckCommandOutput)


class Red(NamedTuple):
    """The reason why merged work does not land."""

    reason: Literal["conflict", "check", "setup", "changed-files"]
    output: str
    paths: tuple[str, ...] = ()

    @classmethod
    def of(cls, refused: NotMerged) -> Red:
        """Return the reason for a candidate that cannot be merged."""
        return cls("conflict" if refused.is_conflict else "check", refused.output, refused.paths)

    def sent_back(self, item: str, returns: int) -> WatchSentBack:
        """Return the event of an item that was sent back `returns` times before."""
        return WatchSentBack(
            filename=item,
            reason=self.reason,
            output=self.output,
            paths=self.paths,
            returns=returns + 1,
        )


class Gate:
    """The gate tree of a project, and the commands that have to pass in it.

    `gate_folder` has no other use. Commands run with `shell`; without one, in the view of commands
    if there are `views`, with the variables of slot 0 and `env`. The project's hooks run when
    candidates are merged, in that view, too.
    """

    def __init__(
        self,
        project: Path,
        gate_folder: Path,
        *,
        check_command: str,
        setup_command: str | None = None,
        shell: Shell | None = None,
        env: Mapping[str, str] = _NONE,
        specs: str | None = ".specs",
        timeout: float = 600.0,
        command_timeout: float | None = None,
        views: Views | None = None,
        flakes: Path | None = None,
    ) -> None:
        self._project = project.resolve()
        self._gate_folder = gate_folder
        self.check_command = check_command
        self._setup_command = setup_command
        self._shell = shell
        self._env = env
        self._specs = specs
        self._timeout = timeout
        self._command_timeout = command_timeout
        self._views = views
        self._flakes = flakes
        self._known: tuple[Place, GateTree] | None = None
        self._red: set[str] = set()
        """The trees on which the check has failed twice."""
        self.baseline: CheckResult | None = None
        """The check on what has landed: what fails there does not keep others from landing."""

    def located(self) -> Flow[tuple[Place, GateTree]]:
        """Return the repository and the gate tree, without creating it."""
        if self._known is None:
            place = yield from place_of(self._project, self._views)
            gate = GateTree(place, self._slot(place), timeout=self._timeout)
            self._known = place, gate
        return self._known

    def held(
        self, *, command: str, since: datetime | None = None
    ) -> Flow[AbstractContextManager[None]]:
        """Return a context that holds the trunk: one process at a time in a repository.

        Linked work trees share the trunk and the refs of candidates, so they exclude each other.

        Raises:
            WorkspaceLocked: on entering, if another process holds it.
        """
        place, _ = yield from self.located()
        return WorkspaceLock(place.layout.common / "cuggino").hold(command=command, since=since)

    def _slot(self, place: Place) -> Slot:
        root = self._gate_folder
        return Slot(
            number=0,
            root=root,
            folder=root / place.layout.prefix,
            project=self._project,
            views=self._views,
        )

    def check(self, commit: str, n: int = 1) -> Observable[Event]:
        """Run the setup and the check on a clean checkout of the commit (`clean_check_stage`)."""
        return flow(lambda: self._check(commit, n))

    def settled(self, commit: str, n: int = 1) -> Flow[CommandOutputEvent]:
        """Run the setup and the check; return the output that counts.

        A check that fails with other failures than the baseline runs once more, unless it has done
        so on the same tree. If it passes then, `CheckFlaky` is emitted.
        """
        output = yield from forward(self.check(commit, n), name="check")
        assert isinstance(output, CommandOutputEvent)
        _, gate = yield from self.located()
        is_final = isinstance(output, SetupCommandOutput) or output.exit_code == TIMED_OUT
        if is_final or self._counts(output):
            return output
        tree = yield from gate.tree_of(commit)
        if tree in self._red:
            return output
        again = yield from forward(self.check(commit, n), name="check")
        assert isinstance(again, CommandOutputEvent)
        if self._counts(again):
            yield from forward(
                flake_stage(
                    output.output,
                    command=self.check_command,
                    exit_code=output.exit_code,
                    ledger=self._flakes,
                    iteration=n,
                ),
                name="flake",
            )
        else:
            self._red.add(tree)
        return again

    def _counts(self, output: CommandOutputEvent) -> bool:
        """Return whether the command has passed, or has no failure that is new."""
        if output.exit_code == 0 or isinstance(output, SetupCommandOutput):
            return output.exit_code == 0
        result = CheckResult.of(output.exit_code, output.output)
        return judge_check(result, self.baseline) != "failed"

    def test(self, merged: Merged, n: int) -> Flow[Red | None]:
        """Run the setup and the check on the merged work; return why it does not land, or None."""
        output = yield from self.settled(merged.commit, n)
        if not self._counts(output):
            is_setup = isinstance(output, SetupCommandOutput)
            return Red("setup" if is_setup else "check", output.output)
        _, gate = yield from self.located()
        changed = yield from gate.changed(merged.commit)
        if not changed:
            self.baseline = CheckResult.of(output.exit_code, output.output)
            return None
        command = "setup or check command" if self._setup_command else "check command"
        words = (
            f"The {command} changes files that git tracks, so that what it tests is not what would "
            f"land: {', '.join(changed[:10])}. Commit what it writes, or let git ignore it."
        )
        return Red("changed-files", words, changed)

    def _check(self, commit: str, n: int) -> Flow[None]:
        place, gate = yield from self.located()
        yield from gate.take(commit)
        yield from gate.furnish()
        yield from self._copy_specs(place, gate)
        if self._setup_command:
            yield from emit(SetupCommandStarted(iteration=n, command=self._setup_command))
            setup = self._stage(SetupCommandOutput, self._setup_command, n, place)
            output = yield from forward(setup, name="setup")
            if output is not None and output.exit_code != 0:
                return
        yield from emit(CheckCommandStarted(iteration=n, command=self.check_command, on="commit"))
        check = self._stage(CheckCommandOutput, self.check_command, n, place)
        yield from forward(check.pipe(ops.map(_on_commit)), name="check")

    def _stage(self, kind: type[Output], command: str, n: int, place: Place) -> Observable[Output]:
        slot = self._slot(place)
        env = {**slot.env, **self._env}
        default = shell_with(env) if self._views is None else enclosed_shell(self._views, env)
        return command_stage(
            kind,
            command,
            shell=self._shell or default,
            cwd=slot.folder,
            iteration=n,
            output_file=slot.root / ".git" / f"cuggino-{kind.__name__}",
            timeout=self._command_timeout,
        )

    def _copy_specs(self, place: Place, gate: GateTree) -> Flow[None]:
        """Copy specifications that git does not have; those that it has are part of the commit."""
        if self._specs is None:
            return
        source = self._project / self._specs
        target = gate.folder / place.layout.prefix / self._specs
        if not target.resolve().is_relative_to(gate.folder.resolve()):
            return
        for folder, _, names in os.walk(source):
            there = target / Path(folder).relative_to(source)
            yield from ask(act(partial(_copy_missing, Path(folder), there, names)))
            yield from pause(0)


def _on_commit(output: CheckCommandOutput) -> CheckCommandOutput:
    return output.model_copy(update={"on": "commit"})


def clean_check_stage(
    project: Path,
    *,
    commit: str,
    check_command: str,
    folder: Path,
    setup_command: str | None = None,
    shell: Shell | None = None,
    env: Mapping[str, str] = _NONE,
    views: Views | None = None,
    specs: str | None = ".specs",
    iteration: int = 1,
    command_timeout: float | None = None,
) -> Observable[Event]:
    """Run the setup and the check on a clean checkout of a commit of the project. Cold.

    ::

        [SetupCommandStarted SetupCommandOutput] CheckCommandStarted CheckCommandOutput|

    The last event is the `CheckCommandOutput`, or the `SetupCommandOutput` of a setup that fails.
    Any commit object will do; it needs no ref.

    `folder` is a gate tree (`GateTree`, `check_folder`) that nothing else uses at that time. It is
    a repository of its own that shares the project's objects, without remotes and branches. What a
    killed process has left there is repaired. It gets the submodules, the files that
    `.worktreeinclude` names, and the specifications that git does not have. It stays, with the
    ignored files of the commands, as their caches make the next check quick; `cuggino slots clean`
    removes it.

    Commands run with `shell`; without one, in the view of commands if there are `views`.

    Errors: `ConfigError` without a repository, or if the folder is in other use; `ProcessError`
    and `StorageError` if the commit cannot be checked out.
    """
    gate = Gate(
        project,
        folder,
        check_command=check_command,
        setup_command=setup_command,
        shell=shell,
        env=env,
        specs=specs,
        command_timeout=command_timeout,
        views=views,
    )
    return gate.check(commit, iteration)


def _copy_missing(source: Path, target: Path, names: list[str]) -> None:
    for name in names:
        if not os.path.lexists(target / name):
            with storing("copy", source / name):
                target.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source / name, target / name, follow_symlinks=False)


def check_candidate(candidate: WatchCandidate, place: Place) -> Flow[None]:
    """Check that the candidate is approved, and that the repository has it.

    Raises:
        ConfigError: it is not approved.
        ProcessError: it is missing.
    """
    if not candidate.approved:
        raise ConfigError(
            f"the work on {candidate.filename} is not approved, so it cannot land",
            hint=f"see it with: git diff {candidate.base[:12]} {candidate.commit[:12]}",
        )
    if not (yield from commit_named(candidate.commit, place.git)):
        raise ProcessError(
            "git", f"the candidate of {candidate.filename} is gone: {candidate.commit}"
        )


def landing_message(filename: str, title: str) -> str:
    """Return the message of the commit that lands an item."""
    text = commit_message(title.strip() or Path(filename).stem)
    return f"{text.rstrip()}\n\n{ITEM}: {one_line(filename)}\n"


def one_line(text: str) -> str:
    """Return the text with each run of whitespace as a single space."""
    return " ".join(text.split())


def branch_names(filename: str) -> list[str]:
    """Return the names that the branch of an item can have, the best first."""
    name = candidate_ref(Path(filename).stem).rpartition("/")[2]
    names = [f"cuggino/{name}", *(f"cuggino/{name}-{n}" for n in range(2, _BRANCHES))]
    return [*names, f"cuggino-{name}"]
