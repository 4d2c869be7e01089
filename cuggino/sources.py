"""The former name of `cuggino.processes` and `cuggino.folders`.

Deprecated: import from these two. Each use warns.
"""

from __future__ import annotations

import warnings

from cuggino import folders, processes


def __getattr__(name: str) -> object:
    for room in (folders, processes):
        if name in room.__all__:
            what = f"cuggino.sources.{name} is {room.__name__}.{name} now"
            warnings.warn(what, DeprecationWarning, stacklevel=2)
            return getattr(room, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
