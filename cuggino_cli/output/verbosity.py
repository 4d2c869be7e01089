"""How much of a run is shown."""

from __future__ import annotations

from enum import IntEnum


class Verbosity(IntEnum):
    """Levels that grow: what a level shows, the next ones show too (CUG-136)."""

    QUIET = 0
    """Phases, endings, and what went wrong."""
    NORMAL = 1
    """And tool calls, markers, commits, one line for each setup or check command and agent."""
    VERBOSE = 2
    """And the agent's prose, thinking, system and user messages, tool results, command output."""
