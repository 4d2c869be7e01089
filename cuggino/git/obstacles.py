"""Obstacles to committing with git: no identity, no signature, conflicts, a lock."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from cuggino.errors import NoAnswer, ProcessError, SpawnFailed
from cuggino.git.listings import STATUS_V2, UNMERGED, tracked_changes, unmerged_files
from cuggino.git.program import NONE, Git
from cuggino.git.settings import looking_environment, program_settings
from cuggino.git.signing import SIGNS
from cuggino.processes import Said
from cuggino.sandbox import outside_path

_SIGNERS = {"openpgp": ("gpg.openpgp.program", "gpg.program"), "x509": ("gpg.x509.program",)}
"""The settings that name the signing program of a format, and may open a dialog for a passphrase;
ssh cannot without a terminal."""
_SAID = "said"
"""The file with the standard error of the signing program."""
_NO_REPOSITORY = "not a git repository"
_CONSEQUENCE = "error: failed to write commit"
_SHOWN = 3
"""Maximum number of paths listed."""


class CommitObstacle(NamedTuple):
    """One reason why commits would fail."""

    what: str
    hint: str


def commit_obstacles(
    folder: Path, *, locks: bool = True, looking: bool = False
) -> Iterator[CommitObstacle]:
    """Yield the reasons why commits in this repository would fail, as far as they are known before.

    Checks git's identity, lock, conflicts and signing, and opens no dialog: a passphrase that would
    have to be typed is an obstacle. Hooks are not checked. `locks` is False where stale locks are
    removed anyway. With `looking`, no program that the repository names is started: neither its
    signing program nor those of its submodules.

    Nothing is yielded for a folder without a repository.
    """
    try:
        yield from _obstacles(folder, locks=locks, looking=looking)
    except NoAnswer as error:
        yield CommitObstacle(error.message, "try it by hand in the project")
    except SpawnFailed as error:
        yield CommitObstacle(error.message, "install it again")


def _obstacles(folder: Path, *, locks: bool, looking: bool) -> Iterator[CommitObstacle]:
    asked = _git(folder, "rev-parse", "--git-path", "index.lock")
    if asked.code != 0:
        if refused := _refusal(asked):
            yield CommitObstacle(
                f"git refuses the repository: {refused}", "see what `git status` says here"
            )
        return
    lock = os.fsdecode(asked.output.rstrip(b"\n"))
    if not os.access(place := (folder / lock).parent, os.W_OK | os.X_OK):
        yield CommitObstacle(
            f"{place} cannot be written", "check the owner and permissions of the folder"
        )
    if locks and (folder / lock).exists():
        yield CommitObstacle(
            f"the repository is locked ({lock})",
            "finish the other git command, or remove the file if none runs",
        )
    env = looking_environment(folder) if looking else {}
    if unmerged := unmerged_files(_git(folder, *UNMERGED, env=env).fields):
        yield CommitObstacle(
            f"unresolved merge conflicts in {_listed(unmerged)}",
            "resolve them and commit, or run `git merge --abort`",
        )
    if modules := [] if looking else _changed_modules(folder):
        yield CommitObstacle(
            f"uncommitted changes within {'a submodule' if len(modules) == 1 else 'submodules'}, "
            f"{_listed(modules)}",
            "commit them in there, or set submodule.NAME.ignore in git's configuration",
        )
    if not _has_identity(folder):
        yield CommitObstacle(
            "no user.name and user.email to commit with",
            "run `git config user.name NAME` and `git config user.email ADDRESS`",
        )
    elif refused := "" if looking and _has_own_signer(folder) else _unsigned(folder):
        yield CommitObstacle(
            f"commits cannot be signed: {refused}",
            "unlock the key (sign something once), or turn off commit.gpgSign here",
        )


def git_failure(folder: Path) -> str | None:
    """Return why git itself does not work; None if it does.

    No git in the folder is started.
    """
    if shutil.which("git", path=outside_path(folder, os.environ.get("PATH", ""))) is None:
        return "git is not installed"
    try:
        code = Git(cwd=folder).now("version").code
    except ProcessError as error:
        return error.message
    if code < 0:
        return f"git crashed (signal {-code})"
    return f"git version exited with code {code}" if code else None


def git_refusal(folder: Path) -> str:
    """Return why git refuses the repository around the folder, "" if it does not."""
    try:
        return _refusal(_git(folder, "rev-parse", "--git-dir"))
    except ProcessError:
        return ""


def _refusal(asked: Said) -> str:
    if asked.code == 0 or _NO_REPOSITORY in asked.errors:
        return ""
    first = asked.errors.partition("\n")[0]
    return first.removeprefix("fatal: ")


def has_work_tree(folder: Path) -> bool:
    """Return whether the folder is in the work tree of a git repository, even if git refuses it.

    `commit_obstacles` yields why.
    """
    try:
        asked = _git(folder, "rev-parse", "--is-inside-work-tree")
    except ProcessError:
        return True
    return bool(_refusal(asked)) or asked.output.strip() == b"true"


def _changed_modules(folder: Path) -> list[str]:
    """Return submodules with changes that no commit outside them can hold."""
    if not (folder / ".gitmodules").exists():
        return []
    changes = tracked_changes(_git(folder, *STATUS_V2, "--", ".").fields)
    return [change.path for change in changes if change.is_changed_within]


def _listed(paths: list[str]) -> str:
    rest = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return f"{', '.join(paths[:_SHOWN])}{rest}"


def _has_identity(folder: Path) -> bool:
    asked = (_git(folder, "var", who) for who in ("GIT_COMMITTER_IDENT", "GIT_AUTHOR_IDENT"))
    return all(answer.code == 0 for answer in asked)


def _has_own_signer(folder: Path) -> bool:
    return any(name.startswith("gpg.") for name, _ in program_settings(folder))


def _unsigned(folder: Path) -> str:
    """Return why a commit cannot be signed, "" if it can or need not be.

    Signs an empty commit and stores it in a temporary folder, so that the repository stays as it
    is.
    """
    if _git(folder, *SIGNS).text != "true":
        return ""
    with ExitStack() as stack:
        scratch = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="cuggino-session-signing-"))
        )
        env = {"GIT_OBJECT_DIRECTORY": str(scratch)}
        tree = _git(folder, "mktree", env=env).output.decode().strip()
        silent = _without_dialog(folder, scratch)
        done = _git(folder, *silent, "commit-tree", "-S", "-m", "signature", tree, env=env)
        said = scratch / _SAID
        reason = said.read_bytes() if said.exists() else done.errors.encode()
    return "" if done.code == 0 else _last_line(reason)


def _without_dialog(folder: Path, scratch: Path) -> tuple[str, ...]:
    """Return the options with which git's signing program fails instead of opening a dialog."""
    chosen = _git(folder, "config", "--get", "gpg.format").output.decode().strip() or "openpgp"
    options: list[str] = []
    settings = _SIGNERS.get(chosen, ())
    if settings:
        named = (_git(folder, "config", "--type=path", "--get", name).output for name in settings)
        default = b"gpg" if chosen == "openpgp" else b"gpgsm"
        program = os.fsdecode(next((name.strip() for name in named if name.strip()), default))
        wrapper = scratch / "sign"
        # git reads the program's status from standard error, and keeps its reasons to itself.
        script = (
            f"{shlex.quote(program)} --batch --no-tty --pinentry-mode error \"$@\" 2>'{_SAID}'\n"
            f"code=$?\ncat '{_SAID}' >&2\nexit $code\n"
        ).replace(f"'{_SAID}'", shlex.quote(str(scratch / _SAID)))
        wrapper.write_text(f"#!/bin/sh\n{script}", encoding="utf-8", errors="surrogateescape")
        wrapper.chmod(0o700)
        options += ["-c", f"{settings[0]}={wrapper}"]
    return tuple(options)


def _last_line(said: bytes) -> str:
    """Return the last reason that git or its signing program gave."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines()]
    told = [line for line in lines if line and not line.startswith(("[GNUPG:]", _CONSEQUENCE))]
    text = told[-1] if told else "git gives no reason"
    return text.removeprefix("fatal: ").removeprefix("error: ")


def _git(folder: Path, *args: str, env: Mapping[str, str] = NONE) -> Said:
    return Git(cwd=folder).now(*args, env=env)
