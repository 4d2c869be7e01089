"""The names of `cuggino.events`, each loaded when it is first read.

A module that needs an event only in some runs imports this module instead of the event:

    from cuggino.events import on_use as events

The package itself would do the same, but `from cuggino import events` makes every module depend on
all of `cuggino` for type checkers.
"""

from typing import TYPE_CHECKING

from cuggino._lazy import lazy, module_name
from cuggino.events.names import NAMES

if TYPE_CHECKING:
    from cuggino.events import *  # noqa: F403
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__, {module_name(__package__, module): names for module, names in NAMES.items()}
    )
