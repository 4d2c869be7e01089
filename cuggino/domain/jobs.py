"""Jobs of a project, with their status and order (LOP-054, LOP-071, LOP-072, LOP-075).

Agents write the jobs file, in one of two shapes: an object with a list `jobs`, or a bare list whose
jobs use other keys. Invalid entries are kept unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

MOST_JOBS = 100
"""Recommended maximum of jobs; more are reported, never cut."""

IN_PROGRESS = "in-progress"
BLOCKED = "blocked"
_DONE = ("done", "complete", "completed")

PARTIAL = ("partialImplementation", "notes")
"""The same field in both shapes; if a job has both, the first non-empty one counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A unit of work that implements a requirement."""

    id: str
    """The id in the file, or `#3` for a third job without one."""
    requirement_code: str = ""
    description: str = ""
    status: str = ""
    """The status in the file, where agents write any text; empty if missing."""
    partial_implementation: str = ""
    """A description of the existing implementation and its defects."""
    priority: float | None = None
    """The smallest comes first, None last."""
    place: int = 0
    """The index in the file."""
    fields: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The object to write: its shape's keys, unknown ones, in the original order."""

    @property
    def is_done(self) -> bool:
        """Return whether its status is `done`, `complete` or `completed`, in any case."""
        return self.status.strip().lower() in _DONE

    @property
    def is_blocked(self) -> bool:
        """Return whether it is blocked and not done."""
        return self.status.strip().lower() == BLOCKED

    def with_status(self, status: str) -> Job:
        return replace(self, status=status, fields={**self.fields, "status": status})

    def noted(self, text: str) -> Job:
        """Return the job with the text appended to its partial implementation, once."""
        if text in self.partial_implementation:
            return self
        is_bare = "requirement" in self.fields and "requirementCode" not in self.fields
        shape = "notes" if is_bare else "partialImplementation"
        key = next((key for key in PARTIAL if key in self.fields), shape)
        before = self.fields.get(key)
        after: object
        match before:
            case None | "":
                after = text
            case str():
                after = f"{before}\n{text}"
            case list():
                after = [*before, text]
            case _:  # keep whatever an agent wrote
                after = [before, text]
        joined = "\n".join(part for part in (self.partial_implementation, text) if part)
        return replace(self, partial_implementation=joined, fields={**self.fields, key: after})


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """All jobs of a project in the order of the file; each change returns a new value."""

    items: tuple[Job, ...] = ()
    entries: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    """The list as in the file, including invalid entries."""
    fields: Mapping[str, Any] | None = field(default_factory=dict, compare=False, repr=False)
    """The object around the list; None for a bare list."""

    @property
    def count_done(self) -> int:
        return sum(job.is_done for job in self.items)

    @property
    def count_open(self) -> int:
        """Return the number of jobs that are not done, including blocked ones."""
        return len(self.items) - self.count_done

    @property
    def count_blocked(self) -> int:
        return len(self.blocked)

    @property
    def blocked(self) -> tuple[Job, ...]:
        return tuple(job for job in self.items if job.is_blocked)

    @property
    def workable(self) -> tuple[Job, ...]:
        """Return the jobs that are neither done nor blocked, by priority."""
        found = [job for job in self.items if not job.is_done and not job.is_blocked]
        return tuple(sorted(found, key=_rank))

    @property
    def next_open(self) -> Job | None:
        """Return the next job to work on, or None."""
        return next(iter(self.workable), None)

    @property
    def is_too_many(self) -> bool:
        """Return whether there are more jobs than there should be."""
        return len(self.items) > MOST_JOBS

    def get(self, job_id: str) -> Job | None:
        """Return the first job with this id, or None."""
        return next((job for job in self.items if job.id == job_id), None)

    def with_status(self, job_id: str, status: str) -> Jobs:
        """Return the jobs with this status for that one; the same object if nothing changes.

        Raises:
            KeyError: the job does not exist.
        """
        return self._changed(
            job_id, lambda job: job if job.status == status else job.with_status(status)
        )

    def noted(self, job_id: str, text: str) -> Jobs:
        """Return the jobs with the text appended to that one, as `Job.noted` does.

        Raises:
            KeyError: the job does not exist.
        """
        return self._changed(job_id, lambda job: job.noted(text))

    @property
    def content(self) -> object:
        """Return the JSON value to write, in the shape that was read; an object for a new file."""
        entries = list(self.entries)
        for job in self.items:
            entries[job.place] = job.fields
        return entries if self.fields is None else {**self.fields, "jobs": entries}

    def _changed(self, job_id: str, change: Callable[[Job], Job]) -> Jobs:
        if self.get(job_id) is None:
            raise KeyError(job_id)
        # Agents may use an id twice; the change applies to all of them.
        items = tuple(change(job) if job.id == job_id else job for job in self.items)
        same = all(new is old for new, old in zip(items, self.items, strict=True))
        return self if same else replace(self, items=items)


def _rank(job: Job) -> tuple[bool, float]:
    return job.priority is None, job.priority or 0
