"""Ids of sessions, runs and moved files, in the order in which they were made."""

from __future__ import annotations


def new_id() -> str:
    """Return a UUID of version 7."""
    from uuid6 import uuid7  # imports `importlib.metadata`, which takes as long as this package

    return str(uuid7())
