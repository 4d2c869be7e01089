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


def login_key(
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
