"""A run that begins with merging: the work of others that has landed since its item was begun."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from reactivex import Observable, operators as ops

from cuggino.errors import ConfigError, ProcessError
from cuggino.events import CommitFailed, CommitPerformed, ImplementingStart, LoopStalled, SpecIssue
from cuggino.files import read_text
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.coding.roles import Roles
from cuggino.loops.frame.run import Run
from cuggino.operators import Flow, ask, emit, flow, forward
from cuggino.sandbox import Protected
from cuggino.stages import Merge, Merges, act, verified_commit

_TRIES = 3
"""Maximum number of agents that resolve one merge."""

_LONGEST_ITEM = 10_000
_ARCHIVED = re.compile(r"[0-9a-f-]{36}-(?:approved|max-iterations)-(.+)", re.DOTALL)


class Merging:
    """The merge of a commit into the work, with conflicts resolved by agents; one object per run.

    A fold over the outcomes of stages. Without a `merge` in the options it does nothing.
    """

    def __init__(
        self,
        run: Run,
        options: LoopRunOptions,
        roles: Roles,
        protected: Callable[[str], Protected],
    ) -> None:
        self._repository = run.services.repository
        self._archive = run.services.workspace.archive
        self._options = options
        self._roles = roles
        self._protected = protected
        self._exclude = (Path(options.specs_path),)
        self._merge = Merge()
        self._landed = ""

    def begin(self, commit: str) -> Flow[None]:
        """Merge the commit into the work.

        Raises:
            ConfigError: the repository of the run cannot merge.
            ProcessError: git cannot merge, for a reason other than conflicts.
        """
        repository = self._repository
        if not isinstance(repository, Merges):
            raise ConfigError("the repository of the run cannot merge")
        item = (self._options.item or "").rpartition(" ")[0] or "the item"
        message = f"Merge what has landed into the work on {item}"
        merge = repository.merge(commit, message, exclude=self._exclude).pipe(ops.map(_plain))
        outcome: dict[str, Any] = (yield from ask(merge, name="merge")) or {}
        self._merge = Merge(**{**outcome, "paths": tuple(outcome.get("paths", ()))})
        if self._merge.paths:
            items = act(lambda: "\n\n".join(_items(self._archive, self._merge.landed)))
            self._landed = (yield from ask(items, name="merge-items")) or ""

    def resolve(self, n: int) -> Flow[SpecIssue | LoopStalled | None]:
        """Let an agent resolve the conflicts, if there are any, and commit the merge.

        Returns why the run ends, or None if it continues.
        """
        problem = ""
        for _ in range(_TRIES) if self._merge.paths else ():
            yield from emit(ImplementingStart(iteration=n))
            ending = yield from self._roles.resolve(self._variables(problem))
            if isinstance(ending, SpecIssue):
                return ending
            outcome = yield from self._commit(n, ending.content)
            if not isinstance(outcome, CommitFailed):
                return None
            problem = outcome.message
        if not problem:
            return None
        return LoopStalled(
            iteration=n,
            reason="no_progress",
            message=f"the merge with what has landed could not be resolved: {problem}",
        )

    @property
    def section(self) -> str:
        """The section on the merge in the prompt of reviewers, or ""."""
        merge = self._merge
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

    def _variables(self, problem: str) -> dict[str, str]:
        merge = self._merge
        return {
            "paths": "\n".join(f"- `{path}`" for path in merge.paths),
            "ours": merge.ours,
            "theirs": merge.theirs,
            "landed": "\n\n".join(filter(None, (merge.landed.strip(), self._landed))),
            "problem": f"The last attempt is not enough: {problem}" if problem else "",
        }

    def _commit(self, n: int, message: str) -> Flow[CommitPerformed | CommitFailed | None]:
        repository, commit = self._repository, self._options.merge
        assert isinstance(repository, Merges)
        assert commit is not None

        def record() -> Flow[None]:
            try:
                made = repository.conclude(
                    commit, message, self._merge.paths, exclude=self._exclude
                )
                done = yield from ask(made)
            except ProcessError as error:
                yield from emit(CommitFailed(iteration=n, message=error.message))
                return
            if done is not None:
                yield from emit(
                    CommitPerformed(iteration=n, commit_hash=done.hash, message=done.message)
                )

        stage: Observable[CommitPerformed | CommitFailed] = flow(record)
        stage = stage.pipe(verified_commit(self._protected("commit")))
        return (yield from forward(stage, name="merge-commit"))


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
