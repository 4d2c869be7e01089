"""The ledger of flaky tests: how often each has failed and then passed on the same tree."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from cuggino.kept_files import KeptFile

EXPIRY = timedelta(days=30)
"""The time after which a test that was not flaky again is forgotten."""

MOST_FLAKES = 500
"""The most tests in a ledger; those seen longest ago are forgotten."""

_LONGEST_NAME = 300


class Flake(BaseModel):
    """A flaky test."""

    model_config = ConfigDict(frozen=True)

    times: Annotated[int, Field(ge=1)]
    last_seen: AwareDatetime


class Flakes(BaseModel):
    """The flaky tests of a project, by name."""

    model_config = ConfigDict(frozen=True)

    tests: Mapping[str, Flake] = Field(default={})

    def seen(self, names: Iterable[str], *, now: datetime) -> Flakes:
        """Return the ledger after these tests were flaky, without expired ones."""
        tests = {
            name: flake for name, flake in self.tests.items() if now - flake.last_seen <= EXPIRY
        }
        for name in {name[:_LONGEST_NAME] for name in names}:
            times = tests[name].times if name in tests else 0
            tests[name] = Flake(times=times + 1, last_seen=now)
        latest = sorted(tests.items(), key=lambda item: (item[1].last_seen, item[0]))
        return Flakes(tests=dict(latest[-MOST_FLAKES:]))


def read_flakes(path: Path) -> Flakes:
    """Return the ledger in a file; an empty one if it is missing or cannot be used."""
    return _file(path).readable() or Flakes()


def add_flake(path: Path, names: Collection[str], *, now: datetime) -> int:
    """Record flaky tests in the ledger; return how often the one seen most often was flaky.

    Raises:
        StorageError: it cannot be written.
    """
    flakes = read_flakes(path).seen(names, now=now)
    write_flakes(path, flakes)
    return max(flakes.tests[name[:_LONGEST_NAME]].times for name in names)


def write_flakes(path: Path, flakes: Flakes) -> None:
    """Write the ledger.

    Raises:
        StorageError: it cannot be written.
    """
    _file(path).write(flakes)


def _file(path: Path) -> KeptFile[Flakes]:
    return KeptFile(path, Flakes, "flaky tests")
