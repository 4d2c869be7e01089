"""The jobs that no run has verified, for the run that comes next (LOP-096)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from cuggino.storage.atomic import storing, write_atomic
from cuggino.storage.reading import read_regular


class UnverifiedJobs:
    """A small JSON file with the ids of the jobs that were not done, or not verified, at last look.

    A run that is stopped, or killed, leaves claims behind. The next one would take them for what
    was done before it; with this file it verifies them. It also tells which jobs were taken out of
    the list before they were verified. Jobs that no run has seen are not in it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> frozenset[str]:
        """The ids; none without a file, or with one that holds something else."""
        with suppress(OSError, ValueError):
            ids = json.loads(read_regular(self.path))
            if isinstance(ids, list):
                return frozenset(item for item in ids if isinstance(item, str))
        return frozenset()

    def write(self, ids: Iterable[str]) -> None:
        """Put them in the file's place; unless they are there already.

        Raises:
            StorageError: it cannot be written.
        """
        named = sorted(set(ids))
        if frozenset(named) == self.read() and self.path.exists():
            return
        with storing("write unverified jobs", self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(self.path, json.dumps(named) + "\n")
