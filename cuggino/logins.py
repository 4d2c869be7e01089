"""The logins of agents, asked before a run starts; a positive answer holds for an hour."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from reactivex import Observable, abc, concat, defer, just, operators as ops, throw, timer

from cuggino.agents import LlmAgent, LoginCheck, Role
from cuggino.errors import NotLoggedIn, ProcessError, ProcessFailed
from cuggino.operators import interrupt_when
from cuggino.operators.merge_now import merge_now
from cuggino.processes import process_output, run_bounded

ANSWER_SECONDS = 10.0
"""Seconds in which a program must report its login; after that, the login is unknown."""

REMEMBERED = timedelta(hours=1)
"""Time for which a positive answer is valid."""

_FOLDER = "logins"


class Login(NamedTuple):
    """The login of one agent."""

    agent: LlmAgent
    is_known: bool | None
    """None if its program cannot report it."""
    hint: str = ""


class LoginMemory:
    """Positive answers, as empty files in the user's state folder; None remembers nothing.

    The name of a file is the digest of what the answer depends on, its time that of the answer.
    """

    def __init__(self, state: Path | None) -> None:
        self._folder = state / _FOLDER if state is not None else None

    def holds(self, key: str, now: datetime) -> bool:
        """Return whether the login was seen within the last hour."""
        if self._folder is None:
            return False
        with suppress(OSError):
            age = now.timestamp() - (self._folder / key).stat().st_mtime
            return 0 <= age < REMEMBERED.total_seconds()
        return False

    def add(self, key: str, now: datetime) -> None:
        """Remember the login, and forget older ones; a folder that cannot be written is ignored."""
        if self._folder is None:
            return
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for path in self._folder.iterdir():
                if not self.holds(path.name, now):
                    path.unlink(missing_ok=True)
            path = self._folder / key
            path.touch(mode=0o600)
            os.utime(path, (now.timestamp(), now.timestamp()))


def logins_of(
    agents: Iterable[LlmAgent], *, cwd: Path, memory: LoginMemory
) -> Observable[list[Login]]:
    """Emit the logins of the agents for sessions in `cwd`, all asked at the same time.

    It never fails: what cannot be asked, or does not answer in time, is unknown.
    """
    each = {id(agent): agent for agent in agents}.values()
    asked = [_login_of(agent, cwd, memory) for agent in each]
    return merge_now(*asked).pipe(ops.to_list()) if asked else just([])


def check_logins(agent: LlmAgent, roles: Iterable[Role], logins: Sequence[Login]) -> None:
    """Check that each role has an agent that may be logged in.

    Raises:
        NotLoggedIn: no agent of a role is.
    """
    missing = {id(login.agent): login for login in logins if login.is_known is False}
    for role in roles:
        chain = agent.agents_for(role)
        if chain and all(id(one) in missing for one in chain):
            raise _not_logged_in(missing[id(chain[0])])


def login_answer(check: LoginCheck) -> bool | None:
    """Return the answer of the command, None without one, on a thread that may wait for it."""
    try:
        ended = run_bounded(check.argv, seconds=ANSWER_SECONDS, cwd=Path("/"), env=check.env)
    except ProcessError:
        return None
    return check.read(ended.code, ended.words)


def _not_logged_in(login: Login) -> NotLoggedIn:
    return NotLoggedIn(
        f"{login.agent.name} is not logged in",
        hint=f"{login.hint}; `--no-login-check` starts without asking",
    )


def _login_of(agent: LlmAgent, cwd: Path, memory: LoginMemory) -> Observable[Login]:
    def ask(scheduler: abc.SchedulerBase) -> Observable[Login]:
        check = agent.login_check(cwd)
        if check is None:
            return just(Login(agent, None))
        if check.is_given or memory.holds(check.key, scheduler.now):
            return just(Login(agent, True, check.hint))

        def seen(answer: bool | None) -> Login:
            if answer:
                memory.add(check.key, scheduler.now)
            return Login(agent, answer, check.hint)

        return _asked(check).pipe(ops.map(seen))

    return defer(ask)


def _asked(check: LoginCheck) -> Observable[bool | None]:
    """Run the command and emit its answer, None without one; the command is ended when it is late.

    It runs in the root folder: nothing of a project is read or started.
    """
    printed: list[bytes] = []

    def read(code: int) -> bool | None:
        return check.read(code, b"".join(printed).decode("utf-8", "replace"))

    def failed(error: Exception, _source: object) -> Observable[bool | None]:
        if isinstance(error, ProcessFailed):
            return just(read(error.child_exit_code))
        return just(None) if isinstance(error, ProcessError) else throw(error)

    output = process_output(check.argv, cwd="/", env=check.env, merge_stderr=True)
    ended: Observable[Any] = output.pipe(ops.do_action(printed.append), ops.ignore_elements())
    answer: Observable[bool | None] = concat(ended, defer(lambda _: just(read(0))))
    late: tuple[bool | None] = (None,)
    return answer.pipe(ops.catch(failed), interrupt_when(timer(ANSWER_SECONDS), *late))
