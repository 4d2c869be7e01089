"""The files of the plan/build loop: jobs, requirements, the done file (LOP-070 to 076, LOP-094).

Agents write them. The loop writes only between sessions.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from cuggino.domain import MOST_JOBS, PARTIAL, Job, Jobs, VerificationResult
from cuggino.edited_files import (
    CORRECT,
    InvalidFile,
    matching,
    parse_content,
    read_content,
    usable,
)
from cuggino.errors import ConfigError, StorageError
from cuggino.files import parse_json, read_regular, render_json, storing, write_atomic

REQUIREMENTS_FOLDER = "docs/requirements"
"""The folder of specifications, research and jobs in a project."""

JOBS_FILE = f"{REQUIREMENTS_FOLDER}/jobs-to-be-done.json"
"""The agent's plan for the current job; the loop never reads it."""

DONE_FILE = "lopen.loop.done"
"""Created by an agent when nothing is left to do."""


class LoadedJobs(NamedTuple):
    """The contents of the jobs file."""

    jobs: Jobs
    """Empty without a usable file."""
    warnings: tuple[str, ...] = ()
    """One sentence per invalid value; for a broken file one, `broken`."""
    broken: str | None = None
    """The reason why an existing file is unusable; the jobs are then unknown (LOP-073)."""


class JobStore:
    """The jobs of the project at `root`. Creating one does not touch the disk."""

    def __init__(self, root: Path) -> None:
        self.path = root / JOBS_FILE

    def load(self) -> LoadedJobs:
        """Return the contents of the file; a missing or broken one is not an error."""
        return self._read()[0]

    def change(self, step: Callable[[Jobs], Jobs]) -> Jobs:
        """Read the jobs, pass them through `step`, and write the result.

        If `step` returns the same object, nothing is written. Shape, unknown keys and order are
        kept.

        Raises:
            StorageError: it cannot be written, or is broken; the file is unchanged. Also whatever
                `step` raises; then nothing was written.
        """
        loaded, ending = self._read()
        if loaded.broken is not None:
            raise StorageError("change jobs", loaded.broken, hint="correct the file")
        jobs = step(loaded.jobs)
        if jobs is not loaded.jobs:
            with storing("write jobs", self.path):
                write_atomic(self.path, render_json(jobs.content) + ending, follow_links=True)
        return jobs

    def check(self) -> None:
        """Check that the file is usable, if it is there.

        Raises:
            ConfigError: it is broken.
        """
        broken = self.load().broken
        if broken is not None:
            raise ConfigError(broken, hint=CORRECT)

    def _read(self) -> tuple[LoadedJobs, str]:
        """Return the contents, and the text after the last bracket."""
        try:
            content = read_content(self.path)
            if content is None:
                return LoadedJobs(Jobs()), "\n"
            jobs, odd = jobs_of(parse_content(content))
        except InvalidFile as error:
            broken = f"{JOBS_FILE} is broken: {error}"
            return LoadedJobs(Jobs(), (broken,), broken), ""
        warnings = tuple(f"{JOBS_FILE}: {sentence}" for sentence in odd)
        return LoadedJobs(jobs, warnings), "\n" if content.endswith(b"\n") else ""


class _Entry(BaseModel):
    """A job in either shape of the file; unknown keys are kept."""

    model_config = ConfigDict(strict=True, alias_generator=to_camel, allow_inf_nan=False)

    id: int | str | None = None
    requirement_code: str | None = None
    requirement: str | None = None
    description: str | None = None
    status: str | None = None
    priority: float | Annotated[str, matching(r"\s*\d{1,19}\s*", "must be a number")] | None = None

    @property
    def code(self) -> str:
        """The requirement's code, as either shape calls it."""
        codes = ((code or "").strip() for code in (self.requirement_code, self.requirement))
        return next(filter(None, codes), "")


def jobs_of(raw: object) -> tuple[Jobs, tuple[str, ...]]:
    """Return the jobs in a JSON value of either shape, and a sentence per invalid value.

    An invalid value counts as missing, as agents write the file during a run. So such a job is
    never done: that takes a valid status.

    Raises:
        InvalidFile: it has neither of the two shapes.
    """
    fields = raw if isinstance(raw, dict) else None
    entries = fields.get("jobs") if fields is not None else raw
    if not isinstance(entries, list):
        raise InvalidFile('neither a list nor an object with a list "jobs"')
    warnings: list[str] = []
    items: list[Job] = []
    for place, entry in enumerate(entries):
        if not isinstance(entry, dict):
            warnings.append(f"jobs[{place}] is not an object; ignored")
            continue
        found, problems = usable(_Entry, entry)
        warnings += [f"jobs[{place}]: {problem}; ignored" for problem in problems]
        job_id = "" if found.id is None else str(found.id).strip()
        if not job_id:
            job_id = f"#{place + 1}"
            warnings.append(f'jobs[{place}] has no "id"; it is called {job_id}')
        items.append(
            Job(
                id=job_id,
                requirement_code=found.code,
                description=found.description or "",
                status=found.status or "",
                partial_implementation=_partial(entry),
                priority=int(found.priority) if isinstance(found.priority, str) else found.priority,
                place=place,
                fields=entry,
            )
        )
    jobs = Jobs(items=tuple(items), entries=tuple(entries), fields=fields)
    counted = Counter(job.id for job in items)
    warnings += [f'several jobs have the id "{job_id}"' for job_id, n in counted.items() if n > 1]
    if jobs.is_too_many:
        warnings.append(f"there are {len(items)} jobs; at most {MOST_JOBS} should be planned")
    return jobs, tuple(warnings)


def _partial(raw: Mapping[str, Any]) -> str:
    """Return the partial implementation, which agents write as text or as a list of texts."""
    for key in PARTIAL:
        match raw.get(key):
            case str() as value if value.strip():
                return value
            case list() as values if lines := [line for line in values if isinstance(line, str)]:
                return "\n".join(lines)
            case _:
                continue
    return ""


def is_done(root: Path) -> bool:
    """Return whether the done file exists; a folder of its name does not count."""
    return (root / DONE_FILE).is_file()


def remove_done(root: Path) -> bool:
    """Remove the done file; return whether it existed.

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
    """Write the done file with the `reason`, or the time.

    Raises:
        StorageError: it cannot be written.
    """
    path = root / DONE_FILE
    with storing("write done file", path):
        write_atomic(path, reason or f"Loop completed at {now.astimezone(UTC).isoformat()}")


class UnverifiedJobs:
    """A JSON file with the ids of the jobs that were not verified when a run last looked.

    A stopped or killed run may leave jobs marked as done but not verified. The next run verifies
    them because they are listed here, and finds jobs that were removed from the list before they
    were verified. Jobs that no run has seen are not listed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> frozenset[str]:
        """Return the ids; none without a valid file."""
        with suppress(OSError, ValueError):
            ids = parse_json(read_regular(self.path))
            if isinstance(ids, list):
                return frozenset(item for item in ids if isinstance(item, str))
        return frozenset()

    def write(self, ids: Iterable[str]) -> None:
        """Write the ids, unless the file has them already.

        Raises:
            StorageError: it cannot be written.
        """
        named = sorted(set(ids))
        if frozenset(named) == self.read() and self.path.exists():
            return
        with storing("write unverified jobs", self.path):
            write_atomic(self.path, json.dumps(named) + "\n")


SPECIFICATION_FILE = "SPECIFICATION.md"


def check_requirement(root: Path, code: str) -> VerificationResult:
    """Return whether a specification contains the code, as a whole word and in any case.

    `REQ-03` and `REQ-030-1` do not match `REQ-030`. No agent is involved.
    """
    code = code.strip()
    if not code:
        return VerificationResult.failed("The job names no requirement code")
    whole = re.compile(rf"(?<![\w])(?<!\w-){re.escape(code)}(?!\w|[-.]\d|-\w)", re.IGNORECASE)
    for path in _files(root / REQUIREMENTS_FOLDER):
        if path.name == SPECIFICATION_FILE:
            with suppress(OSError, ValueError):
                if whole.search(read_regular(path).decode("utf-8", "replace")):
                    return VerificationResult(complete=True, requirement_valid=True)
    message = f"Requirement code {code} not found in any {SPECIFICATION_FILE} file"
    return VerificationResult.failed(message)


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below the folder, in order, without following links to folders."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(place) / name for name in sorted(files))
