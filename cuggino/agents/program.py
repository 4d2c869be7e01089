"""An agent's program on this machine: found, asked for its version, given a terminal."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from cuggino.errors import AgentNotFound, AgentTooOld, StorageError


def absolute(path: str | os.PathLike[str]) -> str:
    """The path as it is meant now; a bare name stays one, and is looked up on PATH.

    Sessions run in folders of their own, from where a relative path would mean another file.
    """
    name = os.fspath(path)
    return str(Path.cwd() / name) if os.sep in name else name


def find_program(path: str, *, env: Mapping[str, str], install: str) -> str:
    """Where the program is; `install` says how to come by it.

    Raises:
        AgentNotFound: it is not there.
    """
    program = shutil.which(path, path=env.get("PATH"))
    if program is None:
        raise AgentNotFound(f"the agent program {path} was not found", hint=install)
    return program


def ask_version(
    path: str,
    *,
    name: str,
    pattern: str,
    least: tuple[int, ...],
    env: Mapping[str, str],
    install: str,
    update: str,
    stranger: str = "--version names no version",
    timeout: float = 60.0,
) -> str:
    """The version that the program tells with `--version`: the first group of `pattern`.

    `name` is the agent's; `install` and `update` say how to come by the program, or a newer one;
    `stranger` what is wrong with one whose words do not fit; `timeout` is in seconds.

    Raises:
        AgentNotFound: it is not there, does not run, is another program; `AgentTooOld`: older than
            `least`.
    """
    program = find_program(path, env=env, install=install)
    try:
        said = subprocess.run(
            [program, "--version"],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=True,
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError) as error:
        raise AgentNotFound(f"{program} --version failed: {error}", hint=install) from error
    found = re.search(pattern, said)
    if found is None:
        raise AgentNotFound(f"{program} {stranger}", hint=install)
    check_version(found[1], name=name, least=least, hint=update)
    return found[1]


def check_version(version: str, *, name: str, least: tuple[int, ...], hint: str) -> None:
    """Whether the version is not older than `least`.

    Raises:
        AgentTooOld: it is older.
    """
    if version_numbers(version) < least:
        raise AgentTooOld(
            f"{name} {version} is too old, at least {'.'.join(map(str, least))} is needed",
            hint=hint,
        )


def version_numbers(version: str) -> tuple[int, ...]:
    """The first three numbers of a version, to be compared."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def converse(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> int:
    """Hand the terminal to the program until the person leaves it; gives its exit code."""
    with subprocess.Popen(argv, cwd=cwd, env=dict(env)) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue  # Ctrl-C is meant for the program, which knows what to do with it
            except BaseException:
                process.terminate()
                raise


def encodable(text: str) -> str:
    """Without halves of surrogate pairs (from a command line that is no UTF-8)."""
    return text.encode("utf-8", "replace").decode("utf-8")


def write_private(text: str, *, suffix: str = ".md") -> Path:
    """A new temporary file with this text, which its user alone can read.

    Raises:
        StorageError: it cannot be written.
    """
    path: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix="cuggino-", suffix=suffix)
        path = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        if path is not None:
            path.unlink(missing_ok=True)
        raise StorageError(
            "write private file",
            f"no temporary file for what the agent is told: {error.strerror or error}",
            hint="check the folder for temporary files (TMPDIR)",
        ) from error
    return path
