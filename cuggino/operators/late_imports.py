"""Import what RxPY imports only when it is first used.

Its package may be replaced while an agent works, as by `pip install -U`; an operator that is first
needed after that, such as the one that catches an error, would be missed.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

import reactivex.observable
import reactivex.operators


@cache
def import_operators() -> None:
    """Import all operators of RxPY; this takes 30 ms once."""
    for package in (reactivex.observable, reactivex.operators):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
