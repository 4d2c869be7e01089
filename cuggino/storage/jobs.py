"""The files of the plan/build loop: its jobs, and the file that says it is done (LOP-070 to 076).

Agents write both. The loop writes between their sessions alone.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cuggino.domain.jobs import Jobs, jobs_of
from cuggino.errors import StorageError
from cuggino.storage.atomic import storing, write_atomic
from cuggino.storage.reading import read_regular
from cuggino.storage.rewriting import rewrite
from cuggino.storage.status_json import parse_json, render_json

REQUIREMENTS_FOLDER = "docs/requirements"
"""Where specifications, research and jobs are in a project."""

JOBS_FILE = f"{REQUIREMENTS_FOLDER}/jobs-to-be-done.json"
PLAN_FILE = f"{REQUIREMENTS_FOLDER}/IMPLEMENTATION_PLAN.md"
"""What the agent of the present job intends; the loop never reads it."""

DONE_FILE = "lopen.loop.done"
"""Made by an agent when nothing is left to do."""


class LoadedJobs(NamedTuple):
    """What was read of the jobs file."""

    jobs: Jobs
    """None without a usable file."""
    warnings: tuple[str, ...] = ()
    """A sentence for each thing that is odd; of a broken file one, which is `broken`."""
    broken: str | None = None
    """Why a file that is there cannot be used: what jobs there are is unknown (LOP-073)."""


class JobStore:
    """The jobs of the project at `root`. Making one touches no disk."""

    def __init__(self, root: Path) -> None:
        self.path = root / JOBS_FILE

    def load(self) -> LoadedJobs:
        """What the file says; a missing or broken one is no error, and there are no jobs then."""
        return self._read()[0]

    def change(self, step: Callable[[Jobs], Jobs]) -> Jobs:
        """Read, let `step` make new jobs of what is there, and write them (LOP-076).

        The very same object back means that there is nothing to write. Shape, unknown keys and the
        order of all are kept.

        Raises:
            StorageError: it cannot be written; or it is broken, and then stays as it is. Also what
                `step` raises; then nothing was written.
        """
        loaded, ending = self._read()
        if loaded.broken is not None:
            raise StorageError("change jobs", loaded.broken, hint="correct the file")
        jobs = step(loaded.jobs)
        if jobs is not loaded.jobs:
            with storing("write jobs", self.path):
                rewrite(self.path, render_json(jobs.content) + ending)
        return jobs

    def _read(self) -> tuple[LoadedJobs, str]:
        """What was read, and what the file ends with behind its last bracket."""
        try:
            content = read_regular(self.path)
            jobs, odd = jobs_of(parse_json(content))
        except (FileNotFoundError, NotADirectoryError):
            return LoadedJobs(Jobs()), "\n"
        except OSError as error:
            why = f"it cannot be read ({error.strerror or error})"
        except ValueError as error:
            why = str(error)
        else:
            warnings = tuple(f"{JOBS_FILE}: {sentence}" for sentence in odd)
            return LoadedJobs(jobs, warnings), "\n" if content.endswith(b"\n") else ""
        broken = f"{JOBS_FILE} is broken: {why}"
        return LoadedJobs(Jobs(), (broken,), broken), ""


def is_done(root: Path) -> bool:
    """Whether the done file is there, whatever it holds; a folder of its name is none (LOP-074)."""
    return (root / DONE_FILE).is_file()


def remove_done(root: Path) -> bool:
    """Remove the done file; gives whether there was one.

    Raises:
        StorageError: it cannot be removed.
    """
    path = root / DONE_FILE
    if not path.is_file():
        return False
    with storing("remove done file", path):
        path.unlink(missing_ok=True)
    return True


def write_done(root: Path, *, now: datetime, reason: str | None = None) -> None:
    """Write the done file: the `reason`, or when it was (LOP-074).

    Raises:
        StorageError: it cannot be written.
    """
    path = root / DONE_FILE
    with storing("write done file", path):
        write_atomic(path, reason or f"Loop completed at {now.astimezone(UTC).isoformat()}")


def research_file(module: str) -> str:
    """Where the research on a module is."""
    return f"{REQUIREMENTS_FOLDER}/{module}/RESEARCH.md"
