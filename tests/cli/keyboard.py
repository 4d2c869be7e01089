"""A person at the keyboard of `cuggino setup`, and the project in which they sit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

ENTER = "\r"
ERASE = "\x15"
CTRL_C = "\x03"
CTRL_D = "\x04"

Setup = Callable[..., int]


def answer(text: str) -> str:
    """The keys that replace a pre-filled answer."""
    return ERASE + text + ENTER


def saved(project: Path) -> dict[str, Any]:
    """What is in the saved file."""
    content: dict[str, Any] = json.loads((project / ".cuggino.json").read_text(encoding="utf-8"))
    return content
