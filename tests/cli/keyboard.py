"""A user at the keyboard of `cuggino setup`, and their project."""

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
    """Return the keys that replace a pre-filled answer."""
    return ERASE + text + ENTER


def pasted(text: str) -> str:
    """Return what a terminal sends for pasted text."""
    return f"\x1b[200~{text}\x1b[201~"


def saved(project: Path) -> dict[str, Any]:
    """Return the content of the saved file."""
    content: dict[str, Any] = json.loads((project / ".cuggino.json").read_text(encoding="utf-8"))
    return content
