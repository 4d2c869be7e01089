"""Texts for attributes: no secrets, valid UTF-8, limited length."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping

from pydantic import JsonValue

from cuggino.agents.cassettes import without_secrets
from cuggino.domain import cut_at_end

NAME_LIMIT = 100
"""Characters of a name, such as that of a tool."""

CONTENT_LIMIT = 4000
"""Characters of a text of an agent, or of the contents of a tool call."""


def plain(text: str, limit: int = NAME_LIMIT) -> str:
    """Return the text cut to the limit, without characters that UTF-8 cannot encode."""
    return cut_at_end(text, limit).encode("utf-8", "replace").decode("utf-8")


def masking(env: Mapping[str, str] = os.environ) -> Callable[[str], str]:
    """Return the function that masks secrets as recordings do, then cuts to `CONTENT_LIMIT`."""
    mask = without_secrets(env)
    return lambda text: plain(mask(text), CONTENT_LIMIT)


def as_json(value: JsonValue) -> str:
    """Return the value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
