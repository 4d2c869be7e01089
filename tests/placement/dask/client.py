"""A client that a test kills.

`python -m tests.placement.dask.client ADDRESS KEY TASK WORK [detach]` prints each text.
"""

from __future__ import annotations

import sys
from functools import partial

from cuggino import run
from cuggino.placement.dask import DaskLink
from tests.limits import LIMIT
from tests.placement.dask.watching import begun


def main() -> None:
    address, key, task, work, *rest = sys.argv[1:]
    with DaskLink(address, detach="detach" in rest, timeout=LIMIT) as link:
        run(link.events(begun(link, key, task, work)), partial(print, flush=True))


if __name__ == "__main__":
    main()
