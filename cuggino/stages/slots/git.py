"""git in slots and in the user's repository: runs no hook, leaves nothing running."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from reactivex import Observable, operators as ops, throw, timer

from cuggino.errors import ProcessError, ProcessFailed
from cuggino.operators import Flow, ask, interrupt_when
from cuggino.sandbox import Enclosure
from cuggino.sources import git_output
from cuggino.stages.repository import gist

_SETTINGS: Mapping[str, str] = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.filesRefLockTimeout": "10000",
    "core.packedRefsTimeout": "10000",
    "core.quotePath": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.version": "2",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "advice.detachedHead": "false",
}
"""Settings of every command: slots share the user's repository, which others use meanwhile."""
PLAIN = tuple(word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}"))
_OFF = PLAIN.index(f"core.hooksPath={os.devnull}")
HOOKS = PLAIN[: _OFF - 1] + PLAIN[_OFF + 1 :]
"""`PLAIN` for a command whose hooks run."""
IDENTITY: Mapping[str, str] = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "cuggino"), ("EMAIL", "cuggino@localhost"))
}
"""Variables that make cuggino the author and committer of a commit."""
STALE = re.compile(
    r"stale info|is at \w+ but expected|reference already exists|incorrect old value"
)
"""Git's messages when a push with a lease finds another commit."""


class Said(NamedTuple):
    """The output of a git command, and its exit code."""

    code: int
    output: bytes
    errors: str

    @property
    def text(self) -> str:
        """The output without its last line end."""
        return os.fsdecode(self.output.removesuffix(b"\n"))

    @property
    def fields(self) -> list[str]:
        """The output of a command with `-z`."""
        return [os.fsdecode(field) for field in self.output.split(b"\0") if field]


def run_git(
    *args: str,
    cwd: Path,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    merge_stderr: bool = False,
    sweep: bool = False,
    enclosure: Enclosure | None = None,
    timeout: float | None = None,
) -> Flow[Said]:
    """Run a git command with exactly these arguments; return its output, even if it fails.

    `sweep` is True for one that may start programs of the user, such as hooks and filters.

    Raises:
        ProcessError: git cannot be started, or runs longer than `timeout` seconds.
    """
    printed: list[bytes] = []
    stream: Observable[bytes] = git_output(
        *args,
        cwd=cwd,
        stdin=stdin,
        env=env,
        merge_stderr=merge_stderr,
        sweep=sweep,
        enclosure=enclosure,
    ).pipe(ops.do_action(printed.append))
    if timeout is not None:
        late = ProcessError("git", f"git {command_of(args)} was ended after {timeout:g} s")
        alarm = timer(timeout).pipe(ops.flat_map(lambda _tick: throw(late)))
        stream = stream.pipe(interrupt_when(alarm))
    try:
        yield from ask(stream)
    except ProcessFailed as error:
        return Said(error.child_exit_code, b"".join(printed), error.stderr_tail)
    return Said(0, b"".join(printed), "")


def must(
    *args: str,
    cwd: Path,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    sweep: bool = False,
    timeout: float | None = None,
) -> Flow[Said]:
    """Run a plain git command that has to succeed.

    Raises:
        ProcessError: it failed.
    """
    said = yield from run_git(
        *PLAIN, *args, cwd=cwd, stdin=stdin, env=env, sweep=sweep, timeout=timeout
    )
    if said.code:
        raise failure(said, args)
    return said


def failure(said: Said, args: Iterable[str]) -> ProcessFailed:
    """Return the error of a failed command, with the gist of its output."""
    words = f"{said.output.decode('utf-8', 'replace')}\n{said.errors}"
    error = ProcessFailed("git", said.code, words)
    told = gist(words)
    error.message = f"git {command_of(args)} exited with code {said.code}"
    error.message += f": {told}" if told else ""
    error.args = (error.message,)
    return error


def fetch(source: str | Path, *specs: str, into: Path, prune: bool = False) -> Flow[None]:
    """Fetch refs from another repository, and nothing else.

    Raises:
        ProcessError: it cannot be reached, or does not have them.
    """
    words = ("--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--quiet")
    more = ("--prune",) if prune else ()
    yield from must("fetch", *words, *more, os.fspath(source), *specs, cwd=into)


def command_of(args: Iterable[str]) -> str:
    """Return the name of the command among the arguments of git."""
    return next((word for word in args if not word.startswith("-") and "=" not in word), "")


def joined(paths: Iterable[str]) -> bytes:
    """Return paths as a command with `-z` reads them."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)
