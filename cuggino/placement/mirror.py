"""The state of an attempt in two places: the worker's files, and the client's copy of them.

Another worker resumes from the client's copy. The copy never has a finished stage whose work is not
in the shared repository: such journal entries wait until the work is saved.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from cuggino.files import storing, write_atomic
from cuggino.placement.assignment import Named, below
from cuggino.placement.wire import FileGone, FileGrown
from cuggino.stages.slots import Slot, work_ref
from cuggino.storage import Workspace

PLACED = "placed"
"""The folder of the attempt's files among the files given to a worker."""
RECORD = "attempt.json"
"""The name of the record of the attempt."""
MERGING = "MERGE_HEAD"
"""The name of the commit that is being merged."""

_FINISHED = b'"StageFinished"'
_BIGGEST = 8 << 20
"""Maximum bytes of a file that is sent; longer outputs of commands are not."""
_PART = r"(?!\.{1,2}(?:/|$))[^/\0]{1,255}"
_NAMES = re.compile(
    rf"journal/[0-9a-f-]{{36}}\.jsonl|(?:spec-issues|tbd)/{_PART}|attempt\.json|{MERGING}"
    rf"|wip/{_PART}(?:/{_PART}){{0,3}}"
)
_OF_PROJECT = ("journal", "spec-issues", "tbd")


class Growth:
    """The changes to the state of an attempt, found on the worker."""

    def __init__(
        self, home: Workspace, desk: Workspace, slot: Slot, known: Iterable[str] = ()
    ) -> None:
        self._home, self._desk, self._git = home, desk, slot.root / ".git"
        self._journal = {path.name: path.stat().st_size for path in _journals(home)}
        """Number of bytes of each journal that have been sent."""
        self._told: dict[str, tuple[int, int]] = dict.fromkeys(known, (-1, -1))
        """Size and time of each other file when it was sent, beginning with the client's files."""
        for name, path in self._files():
            if not name.startswith("wip/"):
                with suppress(OSError):
                    self._told[name] = _stamp(path)
        self._saved = dict(self._journal)
        """Number of bytes of each journal that concern saved work."""

    def saved(self) -> None:
        """Record that the work so far is in the shared repository."""
        self._saved = {path.name: path.stat().st_size for path in _journals(self._home)}

    def news(self) -> Iterator[FileGrown | FileGone]:
        """Yield the changes since the last call."""
        found = dict(self._files())
        for name, path in found.items():
            with suppress(OSError):
                stamp = _stamp(path)
                if self._told.get(name) != stamp and stamp[0] <= _BIGGEST:
                    self._told[name] = stamp
                    yield FileGrown(name, None, path.read_bytes())
        # Without a record, the attempt has not taken over its files yet.
        gone = self._told.keys() - found.keys() if RECORD in found else ()
        for name in sorted(gone):
            del self._told[name]
            if not name.startswith(_OF_PROJECT):
                yield FileGone(name)
        for path in _journals(self._home):
            if (grown := self._grown(path)) is not None:
                yield grown

    def _grown(self, path: Path) -> FileGrown | None:
        start = self._journal.get(path.name, 0)
        if path.stat().st_size <= start:
            return None
        with path.open("rb") as journal:
            journal.seek(start)
            content = journal.read()
        content = content[: content.rfind(b"\n") + 1]
        saved = max(0, self._saved.get(path.name, 0) - start)
        unsaved = content.find(_FINISHED, saved)
        if unsaved >= 0:
            content = content[: content.rfind(b"\n", 0, unsaved) + 1]
        if not content:
            return None
        self._journal[path.name] = start + len(content)
        return FileGrown(f"journal/{path.name}", start, content)

    def _files(self) -> Iterator[tuple[str, Path]]:
        for name, path in (
            (RECORD, self._desk.folder / RECORD),
            (MERGING, self._git / MERGING),
        ):
            if path.is_file():
                yield name, path
        for folder in (self._home.spec_issues, self._home.tbd):
            for path in _entries(folder):
                yield f"{folder.name}/{path.name}", path
        for path, name in below(self._desk.wip, "wip"):
            if _NAMES.fullmatch(name):
                yield name, path


class Kept:
    """The state of an attempt on the client: the project's own files and the item's folder."""

    def __init__(self, home: Workspace, item: str) -> None:
        self._home = home
        self._of_project = dict(
            zip(_OF_PROJECT, (home.journal, home.spec_issues, home.tbd), strict=True)
        )
        self.folder = home.wip / "placed" / work_ref(item).rpartition("/")[2]

    def apply(self, change: FileGrown | FileGone) -> None:
        """Apply the change.

        Raises:
            ValueError: a worker may not make the change, or an earlier one is missing.
            StorageError: the change cannot be written.
        """
        kind, _, rest = change.name.partition("/")
        is_gone = isinstance(change, FileGone)
        if not _NAMES.fullmatch(change.name) or (is_gone and kind in self._of_project):
            raise ValueError(f"a worker may not {'remove' if is_gone else 'write'} {change.name}")
        folder = self._of_project.get(kind)
        target = folder / rest if folder is not None else self.folder / change.name
        with storing("write", target):
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(change, FileGone):
                target.unlink(missing_ok=True)
            elif change.start is not None:
                _append(target, change.start, change.content)
            elif kind not in self._of_project or not target.exists():
                write_atomic(target, [change.content])

    def files(self, run_id: str | None) -> Iterator[Named]:
        """Yield the files that a worker needs to resume: the run's journal, the attempt's files."""
        if run_id is not None:
            journal = self._home.journal / f"{run_id}.jsonl"
            yield Named(journal, f"journal/{run_id}.jsonl")
        yield from below(self.folder, PLACED)

    def forget(self) -> None:
        """Remove the folder of the item."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):  # other items have folders there
            self.folder.parent.rmdir()


def _append(target: Path, start: int, content: bytes) -> None:
    with target.open("ab") as journal:
        size = journal.tell()
        if size < start:
            raise ValueError(f"{target.name} lacks {start - size} bytes")
        journal.write(content[size - start :])
        journal.flush()


def _journals(home: Workspace) -> list[Path]:
    return [path for path in _entries(home.journal) if path.suffix == ".jsonl"]


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_file())
    except OSError:
        return []


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
