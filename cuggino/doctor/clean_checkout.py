"""A trial of the check command on a clean checkout of HEAD, as `gate: clean` runs it."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from cuggino.config import Config
from cuggino.errors import NoAnswer, ProcessError
from cuggino.git import Git
from cuggino.processes import run_bounded
from cuggino.sandbox import views_of, without_logins

MOST_NAMED = 5
"""Ignored files that are named at most."""

_CACHES = frozenset(
    {
        *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".coverage"),
        *("coverage", "htmlcov", "dist", "build", "target", ".DS_Store", ".cuggino", ".git"),
        *(".idea", ".vscode", ".eggs"),
    }
)
"""Ignored files and folders that a check makes, or does not need."""


class CleanTrial(NamedTuple):
    """The result of the trial."""

    passed: bool
    seconds: float
    """The duration of the checkout, the setup command and the check command."""
    reason: str = ""
    """Why it did not pass, as a clause."""
    missing: tuple[str, ...] = ()
    """Ignored files of the project that the checkout lacks, if that may be the reason."""


def try_clean_checkout(folder: Path, config: Config, *, limit: float) -> CleanTrial:
    """Run the setup and check commands on a clone of HEAD, in the view of commands; and wait.

    `limit`: the seconds that all of it may take. The project is not changed.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cuggino-clean-") as place:
        try:
            reason = _why_it_fails(folder, Path(place).resolve() / "checkout", config, limit)
        except NoAnswer:
            reason = f"it takes more than {limit:g} s"
        except ProcessError as error:
            reason = error.message
    seconds = time.monotonic() - began
    if not reason:
        return CleanTrial(passed=True, seconds=seconds)
    return CleanTrial(False, seconds, reason, _missing(folder))


def _why_it_fails(folder: Path, checkout: Path, config: Config, limit: float) -> str:
    began = time.monotonic()
    git = Git(cwd=folder)
    top = git.now("rev-parse", "--show-toplevel")
    prefix = git.now("rev-parse", "--show-prefix")
    if top.code or git.now("rev-parse", "--verify", "--quiet", "HEAD").code:
        return "there is no commit"
    words = ("clone", "--quiet", "--no-hardlinks", "--", top.text, os.fspath(checkout))
    cloned = git.at(checkout.parent).now(*words, limit=limit)
    if cloned.code:
        return f"the clone failed: {cloned.words.strip()}"
    inside = checkout / prefix.text
    if not inside.is_dir():
        return "the folder is not committed"
    views = views_of(config)
    for name, command in (("setup", config.setup_command), ("check", config.check_command)):
        if not command:
            continue
        said = run_bounded(
            ("/bin/sh", "-c", command),
            seconds=max(0.1, limit - (time.monotonic() - began)),
            cwd=inside,
            env=without_logins(os.environ, config.sandbox_show),
            enclosure=None if views is None else views.of_commands(inside),
        )
        if said.code:
            return f"the {name} command exits with {said.code}"
    return ""


def _missing(folder: Path) -> tuple[str, ...]:
    """Return the ignored files and folders of the project, without caches."""
    listing = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    try:
        found = Git(cwd=folder).now(*listing)
    except ProcessError:
        return ()
    names = [name for name in found.fields if _CACHES.isdisjoint(name.rstrip("/").split("/"))]
    wanted = [name for name in names if not name.endswith((".pyc", ".log", ".egg-info/"))]
    return tuple(sorted(wanted, key=lambda name: (name.count("/"), name))[:MOST_NAMED])
