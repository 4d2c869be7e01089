"""Jobs: what is to be built next, and how far it is (LOP-054, LOP-071, LOP-072, LOP-075).

The file of the jobs is written by agents, in one of two shapes: an object with a list `jobs`, or
the bare list, whose jobs name the same things otherwise. Whatever is odd in it is kept as it is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

MOST_JOBS = 100
"""How many jobs there should be at most; more are told, never cut."""

IN_PROGRESS = "in-progress"
BLOCKED = "blocked"
_DONE = ("done", "complete", "completed")

_CODE = ("requirementCode", "requirement")
_PARTIAL = ("partialImplementation", "notes")
"""The same thing in both shapes; where a job has both, the first one that says something counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A unit of work that implements a requirement."""

    id: str
    """As in the file, or `#3` for the third of it when it has none."""
    requirement_code: str = ""
    description: str = ""
    status: str = ""
    """As in the file: agents write what they like. Empty when it has none."""
    partial_implementation: str = ""
    """What is there of it already, and what is wrong with that."""
    priority: float | None = None
    """The smallest comes first, None last."""
    place: int = 0
    """Where it is in the file, from 0."""
    fields: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The object as it is written: the keys of its shape, unknown ones, and the order of all."""

    @property
    def is_done(self) -> bool:
        """Whether its status says so, in any case: `done`, `complete` or `completed`."""
        return self.status.strip().lower() in _DONE

    @property
    def is_blocked(self) -> bool:
        """Whether nobody is to work on it, although it is not done (LOP-097)."""
        return self.status.strip().lower() == BLOCKED

    def with_status(self, status: str) -> Job:
        """The job with this status."""
        return replace(self, status=status, fields={**self.fields, "status": status})

    def noted(self, text: str) -> Job:
        """With the text at the end of what there is of it; what says it already is not changed."""
        if text in self.partial_implementation:
            return self
        is_bare = "requirement" in self.fields and "requirementCode" not in self.fields
        shape = "notes" if is_bare else "partialImplementation"
        key = next((key for key in _PARTIAL if key in self.fields), shape)
        before = self.fields.get(key)
        after: object
        match before:
            case None | "":
                after = text
            case str():
                after = f"{before}\n{text}"
            case list():
                after = [*before, text]
            case _:  # nothing that an agent wrote is lost
                after = [before, text]
        joined = "\n".join(part for part in (self.partial_implementation, text) if part)
        return replace(self, partial_implementation=joined, fields={**self.fields, key: after})


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """All jobs of a project in the order of their file; a change gives a new value."""

    items: tuple[Job, ...] = ()
    entries: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    """The list as the file had it, with what is no job."""
    fields: Mapping[str, Any] | None = field(default_factory=dict, compare=False, repr=False)
    """The object that the list was in, None of a bare list."""

    @property
    def count_done(self) -> int:
        """How many are done."""
        return sum(job.is_done for job in self.items)

    @property
    def count_open(self) -> int:
        """How many are not done, the blocked ones among them."""
        return len(self.items) - self.count_done

    @property
    def count_blocked(self) -> int:
        """How many are blocked."""
        return len(self.blocked)

    @property
    def blocked(self) -> tuple[Job, ...]:
        """Those that are blocked."""
        return tuple(job for job in self.items if job.is_blocked)

    @property
    def workable(self) -> tuple[Job, ...]:
        """Those that can be worked on, neither done nor blocked, the first one first (LOP-075)."""
        found = [job for job in self.items if not job.is_done and not job.is_blocked]
        return tuple(sorted(found, key=_rank))

    @property
    def next_open(self) -> Job | None:
        """The one to work on next."""
        return next(iter(self.workable), None)

    @property
    def is_too_many(self) -> bool:
        """Whether there are more than there should be (LOP-054)."""
        return len(self.items) > MOST_JOBS

    def get(self, job_id: str) -> Job | None:
        """The first one with this id."""
        return next((job for job in self.items if job.id == job_id), None)

    def with_status(self, job_id: str, status: str) -> Jobs:
        """With this status of that one; the same object when it has it already.

        Raises:
            KeyError: there is no such job.
        """
        return self._changed(
            job_id, lambda job: job if job.status == status else job.with_status(status)
        )

    def noted(self, job_id: str, text: str) -> Jobs:
        """With the text at the end of what there is of that one; as `Job.noted`.

        Raises:
            KeyError: there is no such job.
        """
        return self._changed(job_id, lambda job: job.noted(text))

    @property
    def content(self) -> object:
        """What is to be written, in the shape that was read; of none yet, the object."""
        entries = list(self.entries)
        for job in self.items:
            entries[job.place] = job.fields
        return entries if self.fields is None else {**self.fields, "jobs": entries}

    def _changed(self, job_id: str, change: Callable[[Job], Job]) -> Jobs:
        if self.get(job_id) is None:
            raise KeyError(job_id)
        # Agents may give an id twice: then it is of all of them.
        items = tuple(change(job) if job.id == job_id else job for job in self.items)
        same = all(new is old for new, old in zip(items, self.items, strict=True))
        return self if same else replace(self, items=items)


def jobs_of(raw: object) -> tuple[Jobs, tuple[str, ...]]:
    """The jobs that a JSON value holds, and a sentence for each thing in it that is odd.

    Raises:
        ValueError: it has neither of the two shapes.
    """
    fields = raw if isinstance(raw, dict) else None
    entries = fields.get("jobs") if fields is not None else raw
    if not isinstance(entries, list):
        raise ValueError('it has no list "jobs", and is none itself')
    warnings: list[str] = []
    items: list[Job] = []
    for place, entry in enumerate(entries):
        if isinstance(entry, dict):
            items.append(_job(entry, place, warnings))
        else:
            warnings.append(f"jobs[{place}] is no object, and is passed over")
    jobs = Jobs(items=tuple(items), entries=tuple(entries), fields=fields)
    warnings += [f'several jobs have the id "{job_id}"' for job_id in _repeated(items)]
    if jobs.is_too_many:
        warnings.append(f"there are {len(items)} jobs; at most {MOST_JOBS} should be planned")
    return jobs, tuple(warnings)


def _job(raw: dict[str, Any], place: int, warnings: list[str]) -> Job:
    def text(*keys: str) -> str:
        """The first of the keys that says something; other things than texts are told."""
        for key in keys:
            match raw.get(key):
                case str() as value if value.strip():
                    return value
                case str() | None:
                    continue
                case _:
                    warnings.append(f'"{key}" of jobs[{place}] is no text')
        return ""

    job_id = raw.get("id")
    if isinstance(job_id, int) and not isinstance(job_id, bool):
        job_id = str(job_id)
    elif not (job_id := text("id").strip()):
        job_id = f"#{place + 1}"
        warnings.append(f'jobs[{place}] has no "id"; it is called {job_id}')
    return Job(
        id=job_id,
        requirement_code=text(*_CODE).strip(),
        description=text("description"),
        status=text("status"),
        partial_implementation=_partial(raw),
        priority=_priority(raw.get("priority"), place, warnings),
        place=place,
        fields=raw,
    )


def _partial(raw: Mapping[str, Any]) -> str:
    """What there is of a job; agents write texts, and lists of texts."""
    for key in _PARTIAL:
        match raw.get(key):
            case str() as value if value.strip():
                return value
            case list() as values if lines := [line for line in values if isinstance(line, str)]:
                return "\n".join(lines)
            case _:
                continue
    return ""


def _priority(value: object, place: int, warnings: list[str]) -> float | None:
    match value:
        case None:
            return None
        case bool():
            pass
        case int():
            return value
        case float() if math.isfinite(value):
            return value
        case str() if value.strip().isdecimal() and len(value) < 20:
            return int(value)
        case _:
            pass
    warnings.append(f'"priority" of jobs[{place}] is no number; the job comes last')
    return None


def _rank(job: Job) -> tuple[bool, float]:
    return job.priority is None, job.priority or 0


def _repeated(items: Iterable[Job]) -> list[str]:
    return [job_id for job_id, n in Counter(job.id for job in items).items() if n > 1]
