"""The garbage collector while a command starts.

Imports allocate much and leave no garbage, so that searching them for it only takes time.
"""

import gc

_USUAL = gc.get_threshold()
_OBJECTS = 100_000
"""The objects after which the first collection starts; the modules of a run have fewer."""


def begin() -> None:
    """Collect rarely from here on."""
    gc.set_threshold(_OBJECTS, *_USUAL[1:])


def end() -> None:
    """Collect as usual again, but without searching what was imported."""
    if gc.get_threshold() != _USUAL:
        gc.freeze()
        gc.set_threshold(*_USUAL)
