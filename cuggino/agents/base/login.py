"""The check that an agent's program is logged in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cuggino.sandbox import home_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginCheck:
    """A command that reports an agent's login, and how to read its answer."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    read: Callable[[int, str], bool | None]
    """Return the answer from the exit code and all output; None if they do not contain it."""
    key: str
    """Digest of everything that the answer depends on; the key for remembering a positive one."""
    hint: str
    """Instructions for logging in."""
    is_given: bool = False
    """True if the environment contains a credential, so that no login is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """How a program reports its login."""

    command: tuple[str, ...]
    """Its arguments for that."""
    read: Callable[[int, str], bool | None]
    """Return the answer from the exit code and all output; None if they do not contain it."""
    variables: tuple[str, ...]
    """Prefixes of the names of variables that may contain a login."""
    credentials: tuple[str, ...] = ()
    """Variables that contain a login themselves."""
    folders: tuple[str, ...] = ()
    """Variables that name a folder in which a login is stored."""
    hint: str
    """Instructions for logging in."""
    elsewhere: Callable[[Path, Mapping[str, str]], bool] = lambda _cwd, _env: False
    """Return whether sessions in a folder may use a login that the command does not know."""

    def check(self, program: str, cwd: Path, env: Mapping[str, str]) -> LoginCheck:
        """Return the check of this program's login for sessions in a folder.

        Raises:
            OSError: the program is missing.
        """

        def read(code: int, output: str) -> bool | None:
            answer = self.read(code, output)
            return None if answer is False and self.elsewhere(cwd, env) else answer

        return LoginCheck(
            argv=(program, *self.command),
            env=env,
            read=read,
            key=_key(program, env, prefixes=self.variables, values=self.folders),
            hint=self.hint,
            is_given=any(env.get(name) for name in self.credentials),
        )


def _key(
    program: str, env: Mapping[str, str], *, prefixes: tuple[str, ...], values: Iterable[str]
) -> str:
    """Return the digest of a program, its version, and the environment that decides its login.

    For variables with one of `prefixes` only the names are included, as their values may be
    credentials. For `values` and the home folder the values are included too. The size and time of
    the program file represent its version, so that nothing has to be started.

    Raises:
        OSError: the program is missing.
    """
    path = Path(program).resolve(strict=True)
    found = path.stat()
    named = sorted(name for name, value in env.items() if value and name.startswith(prefixes))
    told = {name: env.get(name) for name in values}
    parts = [str(path), str(home_of(env)), found.st_size, found.st_mtime_ns, named, told]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
