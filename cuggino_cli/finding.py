"""What `cuggino doctor` says of one thing that it looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found, and what to do about it."""

    status: Status
    """`note` is worth knowing and hinders nothing."""
    what: str
    hint: str | None = None
