"""Which runs another process can go on with."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from cuggino.events import RunState

KnownState: TypeAlias = RunState | Literal["unfinished"]
"""How a run ended; `unfinished` without a word, as it goes on or its process was killed."""

RESUMABLE: Final[frozenset[KnownState]] = frozenset(
    {"failed", "quota", "budget", "interrupted", "unfinished"}
)
"""The states that are no result: another process can go on from the first unfinished stage."""
