"""The one way in which cuggino starts git."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypedDict, Unpack

from reactivex import Observable, operators as ops, throw, timer

from cuggino.errors import ProcessError, ProcessFailed
from cuggino.git.messages import command_of, failed
from cuggino.operators import Flow, ask, interrupt_when, pause
from cuggino.processes import Said, process_lines, process_output, run_bounded
from cuggino.sandbox import (
    OTHER_REPOSITORY,
    Enclosure,
    Views,
    holds_commands,
    outside_environment,
)

LIMIT_S = 600.0
"""Seconds that a command may take: one that runs hooks or filters, or reaches a remote."""
ANSWER_S = 15.0
"""Seconds for the answer to a question before a run."""
_PATIENCE_S = 10.0
_FINISH_S = 60.0
"""Seconds that disposal leaves to a command that must not be interrupted."""
_TURN_S = 0.25
_OTHERS = (".lock': File exists", "bad object refs/")
"""What git reports that meets another git: its lock, and a ref that it has just removed."""

NONE: Mapping[str, str] = MappingProxyType({})

_QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "GCM_INTERACTIVE": "never",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM": "1",
    "LC_ALL": "C",
}
"""No editor, no password prompt, English output, as git runs unattended; and a repository is found
although a view mounts its parts."""

_ELSEWHERE = (*OTHER_REPOSITORY, "GPG_TTY")

_EVERY = {
    "core.fsmonitor": "false",
    "core.quotePath": "false",
    "core.filesRefLockTimeout": "10000",
    "core.packedRefsTimeout": "10000",
    "log.showSignature": "false",
    "protocol.version": "2",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "advice.detachedHead": "false",
    "advice.addEmbeddedRepo": "false",
}
"""Settings of every command: no program on the side, and patience with locks of references."""

_PLAIN = {
    **_EVERY,
    "core.hooksPath": os.devnull,
    "gc.auto": "0",
    "maintenance.auto": "false",
}
"""Settings of a command that runs no hooks and no housekeeping."""

_APART = frozenset(
    {
        *("cat-file", "commit-tree", "diff-tree", "ls-tree", "mktree", "read-tree", "write-tree"),
        *("cherry", "for-each-ref", "log", "merge-base", "rev-list", "rev-parse", "symbolic-ref"),
        *("clone", "config", "fetch", "init", "ls-remote", "push", "remote", "update-ref", "var"),
        *("version", "worktree", "ls-files", "check-attr", "check-ignore"),
    }
)
"""Commands that read and write objects, references and settings, and read no file of the work tree
but those with rules: they start no program that an agent has named. All others run in a view."""

IDENTITY: Mapping[str, str] = MappingProxyType(
    {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "cuggino"), ("EMAIL", "cuggino@localhost"))
    }
)
"""Variables that make cuggino the author and committer of a commit."""

_LEAVING = frozenset({"clone", "commit-tree", "fetch", "ls-remote", "push"})
"""Those of them that may leave a process behind."""


class _Options(TypedDict, total=False):
    """The options of `Git.run`."""

    stdin: bytes | None
    env: Mapping[str, str]
    merge_stderr: bool
    hooks: bool
    reads: Sequence[Path]
    writes: Sequence[Path]


class _Call(NamedTuple):
    argv: tuple[str, ...]
    env: dict[str, str]
    enclosure: Enclosure | None
    sweep: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """git in one folder.

    A command that reads or writes files of the work tree, or the index, may start programs that an
    agent has named: filters, hooks, a file monitor, those of a repository within this one. It runs
    in a view (`Views.of_git`), where nothing outside of the repository can be written, and leaves
    no process behind. Others, which only know objects and references, run outside, as do those that
    need the logins and keys of the user.

    No command prompts, opens an editor, or runs a hook, unless it is asked to. Another git that
    is in the way is waited for, for some seconds. What takes longer than `limit` seconds is ended.
    """

    cwd: Path
    views: Views | None = None
    limit: float = LIMIT_S
    patience: float = _PATIENCE_S
    """Seconds that another git in the way is waited for."""

    def at(self, cwd: Path) -> Git:
        """Return git in another folder, otherwise like this one."""
        return replace(self, cwd=cwd)

    @property
    def is_enclosed(self) -> bool:
        """True if commands that read or write files run in a view."""
        return self.views is not None and holds_commands(self.cwd)

    def run(
        self,
        *args: str,
        stdin: bytes | None = None,
        env: Mapping[str, str] = NONE,
        merge_stderr: bool = False,
        hooks: bool = False,
        reads: Sequence[Path] = (),
        writes: Sequence[Path] = (),
    ) -> Flow[Said]:
        """Run a command and return its output, even if it fails.

        `env` is added to the environment. With `hooks` the command runs those of the project, in
        the view of its commands, and git's housekeeping. `reads` and `writes` are paths that the
        view has to show, besides the repository.

        Raises:
            ProcessError: git cannot be started, or takes too long.
        """
        waited = 0.0
        while True:
            call = self._call(args, env, hooks=hooks, reads=reads, writes=writes)
            said = yield from self._said(call, args, stdin, merge_stderr=merge_stderr)
            has_met_another = said.code and any(words in said.words for words in _OTHERS)
            if not has_met_another or waited >= self.patience:
                return said
            yield from pause(_TURN_S)
            waited += _TURN_S

    def must(self, *args: str, **options: Unpack[_Options]) -> Flow[Said]:
        """Run a command like `run`, which has to succeed.

        Raises:
            ProcessError: it failed.
        """
        said = yield from self.run(*args, **options)
        if said.code:
            raise failed(args, said.code, said.words)
        return said

    def fetch(self, source: str | Path, *specs: str, prune: bool = False) -> Flow[None]:
        """Fetch refs from another repository, and nothing else.

        Raises:
            ProcessError: it cannot be reached, or does not have them.
        """
        words = ("--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--quiet")
        more = ("--prune",) if prune else ()
        yield from self.must("fetch", *words, *more, os.fspath(source), *specs)

    def lines(
        self, *args: str, stdin: bytes | None = None, env: Mapping[str, str] = NONE
    ) -> Observable[bytes]:
        """Run a command and emit the lines of its output, as `process_lines`."""
        call = self._call(args, env)
        return process_lines(
            call.argv,
            cwd=self.cwd,
            env=call.env,
            stdin=stdin,
            sweep=call.sweep,
            enclosure=call.enclosure,
        )

    def hook(self, program: Path, *args: str, stdin: bytes = b"") -> Flow[Said]:
        """Run a hook as git would, in the view of commands.

        As with git, the shell also runs a script without a first line.

        Raises:
            ProcessError: it cannot be started, or takes too long.
        """
        call = _Call(
            argv=("/bin/sh", "-c", 'exec "$0" "$@"', os.fspath(program), *args),
            env=git_environment(),
            enclosure=None if self.views is None else self.views.of_commands(self.cwd),
            sweep=True,
        )
        return (yield from self._said(call, (program.name,), stdin, merge_stderr=True))

    def to_end(self, *args: str) -> Flow[Said]:
        """Run a command that must not be interrupted halfway, and return its output.

        Disposal waits for it. If this process dies, it still runs to its end.

        Raises:
            ProcessError: git cannot be started.
        """
        call = self._call(args, NONE)
        stream = process_output(
            call.argv,
            cwd=self.cwd,
            env=call.env,
            merge_stderr=True,
            uninterrupted=True,
            grace=_FINISH_S,
            enclosure=call.enclosure,
        )
        return (yield from _answer(stream))

    def now(
        self, *args: str, env: Mapping[str, str] = NONE, stdin: bytes = b"", limit: float = ANSWER_S
    ) -> Said:
        """Run a command that answers soon, and wait for it.

        Raises:
            SpawnFailed: git cannot be started.
            NoAnswer: it has not answered after `limit` seconds.
        """
        call = self._call(args, {"SSH_ASKPASS_REQUIRE": "never", **env})
        return run_bounded(
            call.argv,
            seconds=limit,
            cwd=self.cwd,
            env=call.env,
            stdin=stdin,
            enclosure=call.enclosure,
        )

    def _call(
        self,
        args: Sequence[str],
        env: Mapping[str, str],
        *,
        hooks: bool = False,
        reads: Sequence[Path] = (),
        writes: Sequence[Path] = (),
    ) -> _Call:
        command = command_of(args)
        is_apart = _is_apart(command, args, env)
        enclosure: Enclosure | None = None
        if self.views is not None and not is_apart:
            if hooks:
                enclosure = self.views.of_commands(self.cwd, reads=reads)
            else:
                enclosure = self.views.of_git(
                    self.cwd, writes=writes, configures=command == "submodule"
                )
        settings = _EVERY if hooks else _PLAIN
        words = (word for name, value in settings.items() for word in ("-c", f"{name}={value}"))
        return _Call(
            argv=("git", *words, *args),
            env=outside_environment(self.cwd, git_environment(env)),
            enclosure=enclosure,
            sweep=not is_apart or command in _LEAVING,
        )

    def _said(
        self, call: _Call, args: Sequence[str], stdin: bytes | None, *, merge_stderr: bool
    ) -> Flow[Said]:
        late = ProcessError("git", f"git {command_of(args)} was ended after {self.limit:g} s")
        # A notifier that fails ends the stream with its error.
        alarm = timer(self.limit).pipe(ops.flat_map(lambda _tick: throw(late)))
        stream = process_output(
            call.argv,
            cwd=self.cwd,
            env=call.env,
            stdin=stdin,
            merge_stderr=merge_stderr,
            sweep=call.sweep,
            enclosure=call.enclosure,
        )
        return (yield from _answer(stream.pipe(interrupt_when(alarm))))


def _answer(stream: Observable[bytes]) -> Flow[Said]:
    """Return what a program printed, whatever its exit code."""
    printed: list[bytes] = []
    try:
        yield from ask(stream.pipe(ops.do_action(printed.append)))
    except ProcessFailed as error:
        return Said(error.child_exit_code, b"".join(printed), error.stderr_tail)
    return Said(0, b"".join(printed))


def _is_apart(command: str, args: Sequence[str], env: Mapping[str, str]) -> bool:
    """Return whether the command looks at no file of the work tree, and starts no filter.

    Writing the index of a work tree compares files that changed at the same time, by their filters.
    """
    if command == "update-index":
        return "--index-info" in args and "GIT_INDEX_FILE" in env
    return command in _APART and "--filters" not in args


def git_environment(more: Mapping[str, str] = NONE) -> dict[str, str]:
    """Return this process's environment for a git that never prompts, with `more` added."""
    whole = dict(os.environ)
    for name in _ELSEWHERE:
        whole.pop(name, None)
    return {**whole, **_QUIET, **more}


SSH_COMMAND = ("config", "--get", "core.sshCommand")
"""Asks how the user has configured git to call ssh."""


def ssh_environment(configured: Said) -> Mapping[str, str]:
    """Return the variables with which ssh never asks for a password or a host key.

    Empty if the user has configured how git calls ssh; `configured` answers `SSH_COMMAND`.
    """
    named = os.environ.get("GIT_SSH_COMMAND") or os.environ.get("GIT_SSH")
    is_own = named or configured.code == 0
    return NONE if is_own else {"GIT_SSH_COMMAND": "ssh -o BatchMode=yes"}
