"""A run that begins with merging: the work of others that has landed since its item was begun."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reactivex import Observable, operators as ops

from cuggino.errors import ConfigError, ProcessError
from cuggino.events import CommitFailed, CommitPerformed
from cuggino.files import read_text
from cuggino.operators import Flow, ask, emit, flow
from cuggino.stages import CommitEvent, Merge, Merges, Workplace, act, verified_commit

TRIES = 3
"""Maximum number of agents that resolve one merge."""

_LONGEST_ITEM = 10_000
_ARCHIVED = re.compile(r"[0-9a-f-]{36}-(?:approved|max-iterations)-(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflicts:
    """The conflicts of a merge with what has landed; none without `paths`."""

    merge: Merge = field(default_factory=Merge)
    items: str = ""
    """The texts of the items that have landed."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files in conflict, relative to the project."""
        return self.merge.paths

    def variables(self, problem: str) -> Mapping[str, str]:
        """Return the variables of the prompt of an agent that resolves the conflicts."""
        merge = self.merge
        return {
            "paths": "\n".join(f"- `{path}`" for path in merge.paths),
            "ours": merge.ours,
            "theirs": merge.theirs,
            "landed": "\n\n".join(filter(None, (merge.landed.strip(), self.items))),
            "problem": f"The last attempt did not resolve everything: {problem}" if problem else "",
        }


def merge_into_work(place: Workplace, commit: str, item: str | None) -> Flow[Conflicts]:
    """Merge the commit into the work on the item; return the conflicts, for agents to resolve.

    Raises:
        ConfigError: the repository of the run cannot merge.
        ProcessError: git cannot merge, for a reason other than conflicts.
    """
    repository = place.services.repository
    if not isinstance(repository, Merges):
        raise ConfigError("the repository of the run cannot merge")
    message = (
        f"Merge what has landed into the work on {(item or '').rpartition(' ')[0] or 'the item'}"
    )
    merging = repository.merge(commit, message, exclude=(Path(place.options.specs_path),))
    outcome: dict[str, Any] = (yield from ask(merging.pipe(ops.map(_plain)), name="merge")) or {}
    merge = Merge(**{**outcome, "paths": tuple(outcome.get("paths", ()))})
    if not merge.paths:
        return Conflicts()
    archive = place.services.workspace.archive
    items = act(lambda: "\n\n".join(_items(archive, merge.landed)))
    return Conflicts(merge=merge, items=(yield from ask(items, name="merge-items")) or "")


def conclude_merge(
    place: Workplace, commit: str, message: str, conflicts: Conflicts, *, iteration: int
) -> Observable[CommitEvent]:
    """Commit the resolved merge; emits `CommitPerformed`, or `CommitFailed` with what is left."""

    def record() -> Flow[None]:
        repository = place.services.repository
        assert isinstance(repository, Merges)
        exclude = (Path(place.options.specs_path),)
        try:
            done = yield from ask(
                repository.conclude(commit, message, conflicts.paths, exclude=exclude)
            )
        except ProcessError as error:
            yield from emit(CommitFailed(iteration=iteration, message=error.message))
            return
        if done is not None:
            yield from emit(
                CommitPerformed(iteration=iteration, commit_hash=done.hash, message=done.message)
            )

    stage: Observable[CommitEvent] = flow(record)
    return stage.pipe(verified_commit(place.protected("commit")))


def conflicts_section(conflicts: Conflicts) -> str:
    """Return the section on the merge in the prompt of reviewers, or ""."""
    merge = conflicts.merge
    if not merge.paths:
        return ""
    return (
        "\n\n## A conflict was resolved\n\nThis work was merged with what had landed "
        "meanwhile, and an agent resolved conflicts in "
        f"{', '.join(f'`{path}`' for path in merge.paths)}. Nothing that either side did may "
        "be lost in them: a feature, a fix or a test that is missing now is a finding, "
        "whichever side it came from.\n\nWhat this work had changed in these files:\n\n"
        f"````\n{merge.ours}\n````\n\nWhat had landed in them:\n\n"
        f"````\n{merge.theirs}\n````"
    )


def _plain(merge: Merge) -> dict[str, Any]:
    """Return the outcome as the journal keeps it."""
    return {**merge._asdict(), "paths": list(merge.paths)}


def _items(archive: Path, landed: str) -> Iterator[str]:
    """Yield the texts of the archived items that are named in the messages."""
    with suppress(OSError):
        for path in sorted(archive.iterdir()):
            found = _ARCHIVED.fullmatch(path.name)
            if found is not None and (name := found[1]) in landed:
                with suppress(OSError, ValueError):
                    text = read_text(path)
                    yield f"### {name}\n\n{text[:_LONGEST_ITEM].strip()}"
