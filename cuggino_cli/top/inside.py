"""The inside of a row of `cuggino top`: the lines of a run, or the text of a question."""

from __future__ import annotations

import io
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from reactivex import operators as ops
from reactivex.disposable import SerialDisposable

from cuggino.errors import CugginoError, StorageError
from cuggino.runs import RecordedRun, Runs, follow, item_name
from cuggino.storage import Workspace, read_start
from cuggino_cli.follow.journals import printed, timed
from cuggino_cli.screen.controls import Controls
from cuggino_cli.screen.fragments import Fragment, Label, Verbosity
from cuggino_cli.screen.terminal import Lines
from cuggino_cli.screen.text import flat
from cuggino_cli.top.rows import Key, Subject

_KEPT = 5_000
"""Lines of a run that can be scrolled back to."""
_CHARACTERS = 100_000
"""The most of a question that is shown."""


class Inside:
    """The lines of one run, as `cuggino follow` prints them, or the text of a question.

    Args:
        changed: called when there are more lines, on any thread.
        color: whether to use colors.
    """

    def __init__(self, changed: Callable[[], object], *, color: bool) -> None:
        self._changed = changed
        self._color = color
        self._lines = _Kept(changed)
        self._following = SerialDisposable()

    @property
    def count(self) -> int:
        return len(self._lines.all())

    def last(self, most: int, back: int) -> list[str]:
        """Return the last lines before the last `back` ones."""
        lines = self._lines.all()
        end = len(lines) - back
        return lines[max(end - most, 0) : end]

    def open(self, subject: Subject, columns: Callable[[], int]) -> None:
        """Show the lines of a row from now on."""
        self._lines = kept = _Kept(self._changed)
        lines = _Lines(kept, columns, color=self._color)

        def note(text: str, label: Label = "prose") -> None:
            lines.print([Fragment(label, text)])

        try:
            if subject.key.kind in ("question", "parked"):
                lines.print([Fragment("plain", read_start(_path(subject.key), _CHARACTERS))])
                return
            journal = _journal(subject)
        except CugginoError as error:
            note(error.message, "problem")
            return
        project, state = subject.key.project, subject.state
        folder = Path(state.folder) if state is not None and state.folder else project
        controls = Controls(lines, verbosity=Verbosity.NORMAL)
        entries = follow(
            project, journal, on_lost=lambda: note("It was killed; waiting until it is resumed")
        )
        lines_of_run = printed(
            entries.pipe(ops.map(timed)),
            controls,
            project=folder,
            kind=lambda: state.kind if state is not None else "run",
        )
        self._following.disposable = lines_of_run.subscribe(
            on_error=lambda error: note(flat(str(error)), "problem"),
            on_completed=lambda: note("It has ended."),
        )

    def close(self) -> None:
        self._following.disposable = None


class _Lines(Lines):
    """Lines as wide as the screen that shows them."""

    def __init__(self, kept: TextIO, width: Callable[[], int], *, color: bool) -> None:
        super().__init__(kept, color=color, is_terminal=True)
        self._width = width

    def columns(self) -> int:
        return self._width()


class _Kept(io.StringIO):
    """A stream that keeps the last lines that are written."""

    def __init__(self, changed: Callable[[], object]) -> None:
        super().__init__()
        self._changed = changed
        self._lines: deque[str] = deque(maxlen=_KEPT)
        self._rest = ""
        self._writing = threading.Lock()

    def write(self, text: str) -> int:
        with self._writing:
            *lines, self._rest = (self._rest + text).split("\n")
            self._lines += lines
        self._changed()
        return len(text)

    def all(self) -> list[str]:
        with self._writing:
            return [*self._lines, *([self._rest] if self._rest else [])]


def _path(key: Key) -> Path:
    workspace = Workspace(key.project)
    return workspace.issue(key.name).path if key.kind == "question" else workspace.parked / key.name


def _journal(subject: Subject) -> Path:
    """Return the journal of a run, or of the latest run of an item.

    Raises:
        StorageError: there is none.
    """
    status, name = subject.status, subject.key.name
    folder = Workspace(subject.key.project).journal
    if subject.key.kind == "item":
        for run in Runs(subject.key.project).all():
            if isinstance(run, RecordedRun) and item_name(run.started.item) == name:
                return run.path
    elif status.activity is not None and status.activity.run_id:
        return folder / f"{status.activity.run_id}.jsonl"
    elif status.last is not None:
        return folder / f"{status.last.run_id}.jsonl"
    raise StorageError("look in", "there is no journal of it yet")
