"""A trial of the check command on a clean checkout of HEAD, as `gate: clean` runs it."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from reactivex import Observable, timer

from cuggino.config import Config
from cuggino.edges import run
from cuggino.errors import ConfigError, ProcessError
from cuggino.events import CommandOutputEvent, SetupCommandOutput
from cuggino.git import commit_of
from cuggino.operators import Flow, ask, emit, flow, interrupt_when
from cuggino.sandbox import top_of, views_of
from cuggino.stages import clean_check_stage, missing_ignored

MOST_NAMED = 5
"""Ignored files that are named at most."""


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
    """Run the setup and check commands on a checkout of HEAD (`clean_check_stage`); and wait.

    `limit`: the seconds that all of it may take. The project is not changed.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cuggino-clean-") as place:
        told = run(flow(lambda: _tried(folder, Path(place).resolve() / "check", config, limit)))
    seconds = time.monotonic() - began
    reason, missing = told or ("", ())
    return CleanTrial(not reason, seconds, reason, missing)


def _tried(folder: Path, checkout: Path, config: Config, limit: float) -> Flow[None]:
    """Emit why the commands fail there, "" if they pass, and what may be missing."""
    commit = commit_of(folder)
    if commit is None:
        yield from emit(("there is no commit", ()))
        return
    views = views_of(config)
    stage: Observable[Any] = clean_check_stage(
        folder,
        commit=commit,
        check_command=config.check_command or "true",
        setup_command=config.setup_command,
        folder=checkout,
        views=views,
        specs=config.specs_path,
    )
    missing: tuple[str, ...] = ()
    try:
        output = yield from ask(stage.pipe(interrupt_when(timer(limit), None)))
        reason = _why(output, limit)
        inside = checkout / folder.resolve().relative_to(top_of(folder))
        if output is not None and not inside.is_dir():
            reason = "the folder is not committed"
        elif reason:
            lacking = yield from missing_ignored(folder, checkout, views=views)
            wanted = (name for name in lacking if not name.endswith(".log"))
            missing = tuple(sorted(wanted, key=lambda name: (name.count("/"), name))[:MOST_NAMED])
    except (ConfigError, ProcessError) as error:
        reason = error.message
    yield from emit((reason, missing))


def _why(output: object, limit: float) -> str:
    if not isinstance(output, CommandOutputEvent):
        return f"it takes more than {limit:g} s"
    name = "setup" if isinstance(output, SetupCommandOutput) else "check"
    return "" if output.exit_code == 0 else f"the {name} command exits with {output.exit_code}"
