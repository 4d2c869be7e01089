"""The values that the link reports, and the errors of attempts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from cuggino.errors import CugginoError


class Placed(NamedTuple):
    """An attempt that a worker has begun."""

    key: str
    worker: str
    """The worker's name, which is its address unless it was started with another."""


class PlaceGone(NamedTuple):
    """An attempt that was lost with its worker or with the scheduler."""

    key: str
    worker: str
    cause: Literal["worker", "scheduler"]
    reason: str
    """One sentence."""


class DaskWorker(NamedTuple):
    """A worker of the cluster, as the scheduler sees it."""

    name: str
    address: str
    threads: int
    resources: Mapping[str, float]
    """The resources that it offers, such as `{"claude": 2}`."""
    used: Mapping[str, float]
    """The resources in use by running attempts."""
    attempts: tuple[str, ...]
    """The keys of its running attempts."""


class RemoteFailed(CugginoError):
    """An attempt whose function raised, or could not be started."""

    def __init__(self, key: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.key = key


class AttemptLost(CugginoError):
    """An attempt that was lost with its worker or with the scheduler (see `PlaceGone`)."""

    def __init__(self, gone: PlaceGone) -> None:
        super().__init__(gone.reason)
        self.gone = gone
