"""The names of `cuggino.events`, each loaded when it is first read.

Modules that only some runs need events of import them as `from cuggino.events import on_use as
events`. The package itself would do, but importing it from `cuggino` makes type checkers depend on
all of `cuggino`.
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
