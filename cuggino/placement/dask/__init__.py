"""The link between a client and its attempts on the workers of a Dask cluster.

    with DaskLink("tls://head:8786", security=security) as link:
        placed = link.place("run-3-1", work, "cuggino.placement.remote:work", needs={"claude": 1})
        texts = placed.pipe(ops.flat_map(link.events))

It transports texts in both directions without reading them. Client, scheduler and workers need the
same version of cuggino; the libraries come with `pip install 'cuggino[cluster]'`.
"""

from cuggino.placement.dask.link import DaskLink
from cuggino.placement.dask.values import AttemptLost, DaskWorker, Placed, PlaceGone, RemoteFailed

__all__ = [
    "AttemptLost",
    "DaskLink",
    "DaskWorker",
    "PlaceGone",
    "Placed",
    "RemoteFailed",
]
