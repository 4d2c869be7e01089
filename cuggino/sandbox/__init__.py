"""The sandbox: each role's view of the project, enforced by the operating system.

An `Enclosure` is a view as an engine enforces it: the words in front of a command.
"""

from cuggino._lazy import lazy

NAMES = {
    "enclosure": "Enclosure",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
