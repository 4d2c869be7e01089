"""Public names of `cuggino.placement.dask`; written by `python -m tests.stubs`."""

from cuggino.placement.dask.link import (
    DaskLink,
)
from cuggino.placement.dask.values import (
    AttemptLost,
    DaskWorker,
    Placed,
    PlaceGone,
    RemoteFailed,
)

__all__ = [
    "AttemptLost",
    "DaskLink",
    "DaskWorker",
    "PlaceGone",
    "Placed",
    "RemoteFailed",
]
