"""What a command leaves out to start quickly: collections of garbage, and pydantic's plugins.

Imports allocate much and leave no garbage, so that searching them for it only takes time. A run
makes little garbage with each event.
"""

import gc
import importlib
import sys
from types import ModuleType
from typing import Any

_USUAL = gc.get_threshold()
_OBJECTS = 300_000
"""The objects after which the first collection starts; a run creates a third as many."""
_RUNNING = (10_000, *_USUAL[1:])


_PLUGINS = "pydantic.plugin._loader"


def begin() -> None:
    """Collect rarely from here on, and load no plugins of pydantic."""
    gc.set_threshold(_OBJECTS, *_USUAL[1:])
    sys.modules.setdefault(_PLUGINS, _NoPlugins(_PLUGINS))


def end() -> None:
    """Collect again, but more rarely than usual, and without searching what was imported."""
    if gc.get_threshold() == (_OBJECTS, *_USUAL[1:]):
        gc.freeze()
        gc.set_threshold(*_RUNNING)


def leave() -> None:
    """Leave all memory to the system, which frees it when the process ends.

    Python would search everything that was imported for garbage first.
    """
    gc.freeze()


class _NoPlugins(ModuleType):
    """Stands for the module that searches all installed packages for plugins of pydantic.

    They would instrument the models of a command, which nobody asks for; the search, and the import
    of `importlib.metadata` for it, take as long as the models themselves.
    """

    @staticmethod
    def get_plugins() -> tuple[()]:
        return ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        del sys.modules[_PLUGINS]  # a version of pydantic that needs more of it
        return getattr(importlib.import_module(_PLUGINS), name)
