"""The error types of cuggino, as one tree.

CugginoError
├── ConfigError                 an invalid configuration or option
│   └── CassetteError           an unreadable recording, or a file it would overwrite
├── StorageError                a workspace file that cannot be read or written
│   ├── FileChanged             one that has changed since a person saw it
│   └── SessionError            ... of the running session
├── WorkspaceLocked             another process uses this folder
├── ProcessError                a failed child process
│   ├── SpawnFailed             could not be started
│   ├── ProcessFailed           exited with a code other than 0
│   ├── LineTooLong             printed a line above the limit
│   └── WorkNotCommitted        git refused the commit that the result needs
├── LlmSessionError             a failed agent session
│   ├── AgentNotFound           a missing agent program
│   │   └── AgentTooOld         an outdated one
│   ├── NotLoggedIn             an agent program without a login
│   ├── AgentFailed             the agent reported an error
│   ├── GuardNotLive            the agent could have used tools unguarded
│   ├── AgentStalled            the agent was silent for too long
│   ├── RoleViolation           it changed what its role may not write
│   ├── QuotaExceeded           a usage limit
│   └── BudgetExceeded          a budget is used up
├── ReplayDiverged              a replayed run differs from the recorded one
├── ForgeError                  a failed call to a forge, such as GitHub
│   ├── ForgeLimited            too many requests; lifted at a known time, or soon
│   ├── ForgeUnreachable        no connection, or an error of the forge itself
│   ├── ForgeLoginMissing       no login, or one that is not accepted
│   └── ForgeRefused            not found, not allowed, or not valid
├── ChatError                   a failed call to a chat service
├── PlaceGone                   the worker of an attempt is gone
│   └── Fenced                  another attempt has taken its item over
├── ClusterLost                 no worker can be reached any more
├── CheckUnusable               the check fails where agents work, whatever they do
├── LoopError                   a failed stage of a loop, with its cause
├── RunNotFound                 an id matches no recorded run, or several
├── Interrupted                 a person interrupted the run
└── RunNotResumable             a run that cannot be resumed

A failure that must stop a loop is one of these, in the error channel; any other is an event
(`CommitFailed`). `hint` is advice for the user; `exit_code` is that of the command.
"""

from __future__ import annotations

import errno
import shlex
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Literal, TypeVar

E = TypeVar("E", bound=Exception)

AgentFailure = Literal[
    "aborted",
    "auth",
    "bad_request",
    "billing",
    "connection",
    "crash",
    "max_turns",
    "overloaded",
    "prompt_too_long",
    "rate_limit",
    "server",
    "unknown",
]
"""The reason of a failed agent session, as reported by the agent."""


def install_extra(extra: str) -> str:
    """Return the command that installs an extra of cuggino for the Python that runs this."""
    return f"{shlex.quote(sys.executable)} -m pip install 'cuggino[{extra}]'"


class CugginoError(Exception):
    """Base of all errors of cuggino: one sentence, an optional hint, an exit code."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def code(self) -> int:
        """Return the exit code of a command that ends with this error."""
        return self.exit_code


class ConfigError(CugginoError):
    """An invalid configuration, option or project."""

    exit_code = 2


class CassetteError(ConfigError):
    """A cassette that is missing, broken or too new, or a file that it would overwrite."""


class StorageError(CugginoError):
    """A workspace file that cannot be read or written during `operation`."""

    def __init__(self, operation: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.operation = operation


class FileChanged(StorageError):
    """A file that has changed since a person saw it, and was not overwritten."""


class SessionError(StorageError):
    """A missing or unreadable file of the running session (CUG-062)."""

    def __init__(self, operation: str, session_id: str, *, hint: str | None = None) -> None:
        message = f"Session {operation} failed (session: {session_id})"
        super().__init__(operation, message, hint=hint)
        self.session_id = session_id


class WorkspaceLocked(CugginoError):
    """A workspace in use by another process; its id, command and start are included if known."""

    exit_code = 2

    def __init__(
        self,
        folder: str,
        pid: int | None,
        *,
        since: datetime | None = None,
        command: str | None = None,
    ) -> None:
        owner = f"process {pid}" if pid is not None else "another process"
        known = [command] if command else []
        if since is not None:
            known.append(f"since {since:%Y-%m-%d %H:%M:%S %Z}".rstrip())
        if known:
            owner += f" ({', '.join(known)})"
        super().__init__(
            f"{folder} is in use by {owner}",
            hint="wait until it ends or stop it, then try again",
        )
        self.pid = pid
        self.since = since
        self.command = command


class ProcessError(CugginoError):
    """A failed child process; `argv0` is the program."""

    def __init__(self, argv0: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.argv0 = argv0


_EXHAUSTED: Mapping[int | None, str] = {
    errno.EMFILE: "raise the limit on open files, for example with `ulimit -n 1024`",
    errno.ENFILE: "the system has too many open files: close other programs",
    errno.EAGAIN: "close other programs, or raise the limit on processes (`ulimit -u`)",
    errno.ENOMEM: "close other programs, or raise the limit on memory (`ulimit -v`)",
}
"""Advice where a program may well be installed, by the error of the system."""


class SpawnFailed(ProcessError):
    """A program that could not be started."""

    def __init__(self, argv0: str, cause: OSError) -> None:
        super().__init__(
            argv0,
            f"cannot start {argv0}: {cause.strerror or cause}",
            hint=_EXHAUSTED.get(cause.errno),
        )
        self.errno = cause.errno


class ProcessFailed(ProcessError):
    """A program that exited with a code other than 0 (negative: killed by that signal)."""

    def __init__(
        self, argv0: str, child_exit_code: int, stderr_tail: str, *, stdout_tail: str = ""
    ) -> None:
        ending = (
            f"was killed by signal {-child_exit_code}"
            if child_exit_code < 0
            else f"exited with code {child_exit_code}"
        )
        lines = (stderr_tail.strip() or stdout_tail.strip()).splitlines()
        super().__init__(argv0, f"{argv0} {ending}" + (f": {lines[-1]}" if lines else ""))
        self.child_exit_code = child_exit_code
        self.stderr_tail = stderr_tail
        self.stdout_tail = stdout_tail


class NoAnswer(ProcessError):
    """A program that has not answered in time, and was killed."""

    def __init__(self, argv0: str, seconds: float) -> None:
        super().__init__(argv0, f"{argv0} did not answer within {seconds:g} s")


class LineTooLong(ProcessError):
    """A line of output longer than `limit` bytes."""

    def __init__(self, argv0: str, limit: int) -> None:
        mib = limit / (1024 * 1024)
        size = f"{mib:g} MiB" if mib >= 1 else f"{limit} bytes"
        super().__init__(argv0, f"{argv0} printed a line longer than {size}")
        self.limit = limit


class WorkNotCommitted(ProcessError):
    """Work that a result depends on and git did not commit: a hook, a signature, a lock.

    Exit code 1. The run stays resumable: resumed, it commits first.
    """

    def __init__(self, message: str) -> None:
        super().__init__(
            "git",
            f"the work is not committed: {message}",
            hint="mend the cause, then resume the run: it commits and ends, without another agent",
        )


class LlmSessionError(CugginoError):
    """A failed agent session."""


class AgentNotFound(LlmSessionError):
    """A missing or outdated agent program."""

    exit_code = 2


class AgentTooOld(AgentNotFound):
    """An agent program that must be updated before it can be driven or guarded."""


class NotLoggedIn(LlmSessionError):
    """An agent program that reports, before a run starts, that nobody is logged in."""

    exit_code = 2


class AgentFailed(LlmSessionError):
    """An agent that reported an error; `reason` classifies it.

    `retry_at` is the time before which another try is pointless, if the agent reported one.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: AgentFailure,
        hint: str | None = None,
        retry_at: datetime | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason
        self.retry_at = retry_at


class GuardNotLive(LlmSessionError):
    """A session without a working guard; none of its tools may run."""

    exit_code = 2


class AgentStalled(LlmSessionError):
    """An agent that was silent for too long."""

    exit_code = 14


class RoleViolation(LlmSessionError):
    """A session that changed `paths` which its role may not write; they were put back."""

    exit_code = 14

    def __init__(self, role: str, paths: tuple[str, ...], *, kept: str | None = None) -> None:
        shown = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
        super().__init__(
            f"the agent changed what the role {role} may not write: {shown}",
            hint=f"what it wrote is kept in {kept}" if kept else None,
        )
        self.role = role
        self.paths = paths
        self.kept = kept


class QuotaExceeded(LlmSessionError):
    """A usage limit; `resets_at` is when it is lifted, if the agent reported it.

    A `planned` one is set by the configuration (`quotaReserve`, `overage`): the agent would work.
    """

    exit_code = 12

    def __init__(
        self, message: str, *, resets_at: datetime | None = None, planned: bool = False
    ) -> None:
        hint = "start again later"
        if resets_at is not None:
            hint = f"start again after {resets_at:%Y-%m-%d %H:%M %Z}".rstrip()
        super().__init__(message, hint=hint)
        self.resets_at = resets_at
        self.planned = planned


class BudgetExceeded(LlmSessionError):
    """A budget of money, tokens or time that is used up."""

    exit_code = 13


class CheckUnusable(CugginoError):
    """A check that no agent could make pass, so that none was started."""

    exit_code = 14


class LoopError(CugginoError):
    """A failed stage of a loop: its `phase`, and the `cause` if known."""

    def __init__(self, phase: str, message: str, *, cause: CugginoError | None = None) -> None:
        super().__init__(
            f"Loop error in {phase} phase: {message}", hint=cause.hint if cause else None
        )
        self.phase = phase
        self.cause = cause
        self.__cause__ = cause

    @property
    def code(self) -> int:
        return self.cause.code if self.cause else self.exit_code


def cause_of(error: E) -> E | CugginoError:
    """Return the failure that ended a stage of a loop; any other error itself."""
    return error.cause or error if isinstance(error, LoopError) else error


def error_outcome(error: Exception) -> Literal["failed", "quota", "budget", "interrupted"]:
    """Return the outcome of a run that ended with this error."""
    match cause_of(error):
        case QuotaExceeded():
            return "quota"
        case BudgetExceeded():
            return "budget"
        case Interrupted():
            return "interrupted"
        case _:
            return "failed"


class ForgeError(CugginoError):
    """A failed call to a forge."""


class ForgeLimited(ForgeError):
    """A limit on requests is reached."""

    def __init__(
        self, message: str, *, until: datetime | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.until = until


class ForgeUnreachable(ForgeError):
    """The forge cannot be reached, or fails itself; the same call may succeed later."""


class ForgeLoginMissing(ForgeError):
    """Nobody is logged in, or the login is no longer accepted."""


class ForgeRefused(ForgeError):
    """The forge does not know what was asked for, or does not allow it."""

    def __init__(self, message: str, *, status: int = 0, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class ChatError(CugginoError):
    """A failed call to a chat service.

    A call that failed in passing may succeed after `retry_in` seconds, if the service named them.
    """

    def __init__(
        self,
        message: str,
        *,
        transient: bool = True,
        retry_in: float | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.transient = transient
        self.retry_in = retry_in


class PlaceGone(CugginoError):
    """The worker of an attempt has died or cannot be reached; the attempt can be resumed."""


class ClusterLost(CugginoError):
    """A cluster whose scheduler cannot be reached any more."""


class Fenced(PlaceGone):
    """Another attempt has taken the item over: this one must not write any more."""


class ReplayDiverged(CugginoError):
    """A replayed run that differs from the recorded one: another prompt, policy or session.

    It ends a loop with exit code 1 and is never retried.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        usual = "record the run again if the change is intended, otherwise revert it"
        super().__init__(f"the replay diverges: {message}", hint=hint or usual)


class Interrupted(CugginoError):
    """A run interrupted by a person; it can be resumed."""

    exit_code = 130


class ItemSkipped(CugginoError):
    """A backlog item that a person has skipped while it was worked on."""

    def __init__(self) -> None:
        super().__init__("skipped by a person")


class NothingRuns(CugginoError):
    """A command to a run where none works."""

    exit_code = 3

    def __init__(self, folder: str) -> None:
        super().__init__(f"nothing runs in {folder}", hint="see `cuggino status`")


class RunNotResumable(CugginoError):
    """A run that is missing, has ended, or was recorded by an incompatible version."""

    exit_code = 2


class RunNotFound(CugginoError):
    """An id that matches no recorded run, or several."""

    exit_code = 2
