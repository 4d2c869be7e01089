"""Everything that can go wrong, as one tree.

CugginoError
├── ConfigError                 a configuration or an option that cannot be used
│   └── CassetteError           a recording that cannot be read, or would overwrite a file
├── StorageError                a file of the workspace that cannot be read or written
│   └── SessionError            ... of the running session
├── WorkspaceLocked             another cuggino works in this folder
├── ProcessError                a child process, as seen by `cuggino.sources`
│   ├── SpawnFailed             it could not be started
│   ├── ProcessFailed           it ended with another exit code than 0
│   └── LineTooLong             it printed a line above the limit
├── LlmSessionError             an agent session that failed
│   ├── AgentNotFound           the agent's program is missing
│   │   └── AgentTooOld         it is there, but too old to be driven or guarded
│   ├── AgentFailed             the agent ended with an error of its own
│   ├── GuardNotLive            the agent could have used tools without being held to its policy
│   ├── AgentStalled            the agent was silent for too long
│   ├── QuotaExceeded           a usage limit, with the time it is lifted when known
│   └── BudgetExceeded          the money or turns allowed are spent
├── ReplayDiverged              a replayed run is not the recorded one
├── LoopError                   a stage of a loop that failed; its cause is the reason
└── RunNotResumable             a journal with which no run can go on

What must stop a loop is one of these and travels in the error channel; what must not is an event
(`CommitFailed`). `hint` says what a person can do; `exit_code` is what a loop command ends with.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

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
"""Why an agent session failed, as far as the agent said."""


class CugginoError(Exception):
    """Base of all errors of cuggino: one sentence, an optional hint, an exit code."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def code(self) -> int:
        """The exit code of a command that ends with this error."""
        return self.exit_code


class ConfigError(CugginoError):
    """A configuration, an option or a project that cannot be used as it is."""

    exit_code = 2


class CassetteError(ConfigError):
    """A cassette that is missing, broken, or of a newer version; or one that is in the way."""


class StorageError(CugginoError):
    """A workspace file that cannot be read or written; `operation` names what was tried."""

    def __init__(self, operation: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.operation = operation


class SessionError(StorageError):
    """A file of the running session that is missing or unreadable (CUG-062)."""

    def __init__(self, operation: str, session_id: str, *, hint: str | None = None) -> None:
        message = f"Session {operation} failed (session: {session_id})"
        super().__init__(operation, message, hint=hint)
        self.session_id = session_id


class WorkspaceLocked(CugginoError):
    """Another process works in this workspace: which, with what command, since when, if known."""

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
            hint="wait until it has ended, or end it, then start again",
        )
        self.pid = pid
        self.since = since
        self.command = command


class ProcessError(CugginoError):
    """Something about a child process; `argv0` is the program."""

    def __init__(self, argv0: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.argv0 = argv0


class SpawnFailed(ProcessError):
    """The program could not be started."""

    def __init__(self, argv0: str, cause: OSError) -> None:
        super().__init__(argv0, f"cannot start {argv0}: {cause.strerror or cause}")
        self.errno = cause.errno


class ProcessFailed(ProcessError):
    """The program ended with `exit_code_of_child` (negative: ended by that signal)."""

    def __init__(self, argv0: str, child_exit_code: int, stderr_tail: str) -> None:
        ending = (
            f"was ended by signal {-child_exit_code}"
            if child_exit_code < 0
            else f"exited with code {child_exit_code}"
        )
        last = stderr_tail.strip().splitlines()[-1:] or [""]
        super().__init__(argv0, f"{argv0} {ending}" + (f": {last[0]}" if last[0] else ""))
        self.child_exit_code = child_exit_code
        self.stderr_tail = stderr_tail


class LineTooLong(ProcessError):
    """The program printed a line longer than `limit` bytes."""

    def __init__(self, argv0: str, limit: int) -> None:
        mib = limit / (1024 * 1024)
        size = f"{mib:g} MiB" if mib >= 1 else f"{limit} bytes"
        super().__init__(argv0, f"{argv0} printed a line longer than {size}")
        self.limit = limit


class LlmSessionError(CugginoError):
    """An agent session that failed."""


class AgentNotFound(LlmSessionError):
    """The agent's program is not there, or is too old to be driven."""

    exit_code = 2


class AgentTooOld(AgentNotFound):
    """The agent's program is there, and has to be updated before it can be driven or guarded."""


class AgentFailed(LlmSessionError):
    """The agent ended with an error of its own; `reason` classifies it."""

    def __init__(self, message: str, *, reason: AgentFailure, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class GuardNotLive(LlmSessionError):
    """The session was not held to its policy, or could not be: none of its tools may run."""

    exit_code = 2


class AgentStalled(LlmSessionError):
    """The agent was silent for longer than allowed."""

    exit_code = 14


class QuotaExceeded(LlmSessionError):
    """A usage limit was met; `resets_at` is when it is lifted, if the agent said so."""

    exit_code = 12

    def __init__(self, message: str, *, resets_at: datetime | None = None) -> None:
        hint = "start again later"
        if resets_at is not None:
            hint = f"start again after {resets_at:%Y-%m-%d %H:%M %Z}".rstrip()
        super().__init__(message, hint=hint)
        self.resets_at = resets_at


class BudgetExceeded(LlmSessionError):
    """The money, the tokens or the time allowed are spent."""

    exit_code = 13


class LoopError(CugginoError):
    """A stage of a loop failed. `phase` names it; the cause, if any, is chained."""

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


class ReplayDiverged(CugginoError):
    """The run is not the recorded one: another prompt, another policy, another session.

    It ends a loop at once, with exit code 1; no session is tried again.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        usual = "record it anew if that is meant to be so, else take the change back"
        super().__init__(f"the replay diverges: {message}", hint=hint or usual)


class RunNotResumable(CugginoError):
    """There is no such run, it has ended, or its journal does not fit this version."""

    exit_code = 2
