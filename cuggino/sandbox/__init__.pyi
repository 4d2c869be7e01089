"""Public names of `cuggino.sandbox`; written by `python -m tests.stubs`."""

from cuggino.sandbox.enclosure import (
    Enclosure,
)

__all__ = [
    "Enclosure",
]
