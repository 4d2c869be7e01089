"""The digest of a journal: what a list of runs shows, kept in `.cuggino/digests`.

A journal of a long run has hundreds of thousands of entries. Its digest is written when a process
of the run ends, or when the journal is first read as a whole, and holds as long as the journal has
the same size and time. It can be deleted at any time.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from cuggino.domain import PastRun
from cuggino.events import (
    KnownState,
    RunEnded,
    RunLoop,
    RunResumed,
    RunStarted,
    is_resumable,
)
from cuggino.files import is_linked, write_atomic


class RunPart(BaseModel):
    """The sessions of one role with one agent and model in a run."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    role: str
    agent: str
    model: str | None = None
    """The configured one, else the one that the agent reported; None if nobody named it."""
    sessions: int
    """Sessions that reported their usage or their end."""
    cost_usd: float | None = None
    cost_estimated: bool = False
    duration: float = 0.0
    """Seconds of the sessions that reported their end."""


class JournalDigest(BaseModel):
    """The beginning, the end and the totals of a run."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    v: Literal[6] = 6
    """The version of the format."""
    size: int
    """Bytes of the journal."""
    modified: int
    """Its time of change in nanoseconds."""
    started: RunStarted
    began: datetime
    """The time of the first entry."""
    continued: datetime
    """The time when the last process began."""
    last: datetime
    """The time of the last entry."""
    ended: RunEnded | None
    """The end of the last process; None while it works, or if it was killed."""
    message: str = ""
    """The cause of the end, if any: an error, or what the result of the loop says."""
    totals: RunResumed
    parts: tuple[RunPart, ...] = ()
    """The sessions by role, agent and model; empty for a watch, whose items have runs."""
    delivered: JsonValue
    """Sessions and deliverables of a run of the deliver loop, as JSON; null for other runs."""

    @property
    def loop(self) -> RunLoop | None:
        """The loop for comparisons; None for a watch, and for several attempts."""
        if self.started.kind == "watch" or self.started.has_runs:
            return None
        return self.started.kind if self.started.item is None else "item"

    @property
    def past_run(self) -> PastRun:
        """The figures for a forecast."""
        return PastRun(
            loop=self.loop,
            state=self.state,
            duration=self.totals.duration,
            cost_usd=self.totals.cost_usd,
            cost_estimated=self.totals.cost_estimated,
        )

    @property
    def state(self) -> KnownState:
        """Return the state of the run, `unfinished` without an end."""
        return self.ended.state if self.ended else "unfinished"

    @property
    def resumable(self) -> bool:
        """Return whether another process can resume the run."""
        return is_resumable(self.state)


def kept_digest(path: Path, *, size: int, modified: int) -> JournalDigest | None:
    """Return the digest that is kept of a journal with this size and time, or None."""
    if (place := _place(path)) is None:
        return None
    try:
        kept = JournalDigest.model_validate_json(place.read_bytes())
    except (OSError, ValidationError):
        return None
    return kept if (kept.size, kept.modified) == (size, modified) else None


def keep_digest(path: Path, digest: JournalDigest) -> None:
    """Write the digest of a journal, if that is possible."""
    if (place := _place(path)) is None:
        return
    with suppress(OSError, ValueError):  # half a surrogate pair cannot be written
        text = digest.model_dump_json()
        if not place.parent.exists():
            place.parent.mkdir(mode=0o700)
            (place.parent / ".gitignore").write_text("*\n")
        write_atomic(place, f"{text}\n", sync=False)


def remove_digest(path: Path) -> None:
    """Remove the digest of a journal that is removed."""
    if (place := _place(path)) is not None:
        with suppress(OSError):
            place.unlink(missing_ok=True)


def _place(path: Path) -> Path | None:
    """Return the file of the journal's digest.

    None for a journal outside a workspace, or if the digests would be reached through a link.
    """
    if path.parent.name != "journal":
        return None
    digests = path.parent.with_name("digests")
    return None if is_linked(digests) else digests / f"{path.stem}.json"
