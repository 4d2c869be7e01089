"""Checks: what they look at, and what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from cuggino.config import Config
from cuggino.errors import CugginoError

CheckStatus = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of `cuggino doctor`."""

    status: CheckStatus
    """`note` is worth knowing but prevents nothing."""
    what: str
    hint: str | None = None


ok = partial(CheckResult, "ok")
note = partial(CheckResult, "note")
problem = partial(CheckResult, "problem")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A project as it is checked, and the environment of its agents."""

    folder: Path
    env: Mapping[str, str]
    uid: int
    """The user that agents would run as."""
    agent: str | None = None
    """Checked instead of the configured agents."""
    trusted: bool = False
    """True if the user has accepted the commands of the project."""
    config: Config = field(default_factory=Config)
    is_configured: bool = True
    """False if `.cuggino.json` is unusable; `config` then has the defaults."""


class Check(NamedTuple):
    """A row of the table of checks."""

    topic: str
    """What it is about; each line begins with it."""
    look: Callable[[Place], Iterable[CheckResult]]
    """Yields what it finds. A `CugginoError` is a problem with its hint."""
    without_config: bool = False
    """True if it does not depend on `.cuggino.json`."""

    def results(self, place: Place) -> Iterator[CheckResult]:
        if place.is_configured or self.without_config:
            yield from about(self.topic, lambda: self.look(place))


def about(topic: str, look: Callable[[], Iterable[CheckResult]]) -> Iterator[CheckResult]:
    """Yield what is found, each line beginning with the topic; an error is a problem."""
    try:
        for found in look():
            yield replace(found, what=f"{topic}: {found.what}")
    except CugginoError as error:
        yield problem(f"{topic}: {error.message}", error.hint)


NEVER_FAILS = "let the command exit with an error if something is wrong"
"""The hint for a check command that cannot fail."""
