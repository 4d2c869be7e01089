"""git in slots and in the user's repository: runs no hook, leaves nothing running."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from reactivex import Observable, operators as ops

from cuggino.errors import ProcessError, ProcessFailed
from cuggino.operators import Flow, ask, emit, flow
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


def git_text(
    *args: str,
    cwd: Path,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    sweep: bool = False,
) -> Observable[str]:
    """Emit the output of a git command without its last line end.

    Use `sweep=True` for one that may start other programs, such as filters.

    Errors: `ProcessFailed` with the command and the gist of its words; `SpawnFailed`.
    """

    def run() -> Flow[None]:
        said: list[bytes] = []
        output = git_output(
            *PLAIN, *args, cwd=cwd, stdin=stdin, env=env, sweep=sweep, merge_stderr=False
        )
        try:
            yield from ask(output.pipe(ops.do_action(said.append)))
        except ProcessFailed as error:
            raise _failure(args, error, said) from error
        yield from emit(os.fsdecode(b"".join(said).removesuffix(b"\n")))

    return flow(run)


def _failure(args: tuple[str, ...], error: ProcessFailed, said: list[bytes]) -> ProcessError:
    told = b"".join(said).decode("utf-8", "replace")
    failure = ProcessFailed("git", error.child_exit_code, f"{told}\n{error.stderr_tail}")
    words = gist(error.stderr_tail) or gist(told)
    command = next((word for word in args if not word.startswith("-")), "")
    failure.message = f"git {command} exited with code {error.child_exit_code}"
    failure.message += f": {words}" if words else ""
    failure.args = (failure.message,)
    return failure
