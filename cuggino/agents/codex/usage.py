"""Tokens of a session of the Codex CLI, which counts over the whole thread that it goes on with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from cuggino.agents.codex.config import codex_home
from cuggino.agents.json_values import Json, count_or_zero, dict_or_empty, parse_json_line
from cuggino.events import Usage

_MOST_SEARCHES = 5
_ID = re.compile(r"[\w-]+", re.ASCII)


def usage_of(told: Json) -> Usage:
    """The tokens that the program tells; those of the cache are part of its input."""
    read = count_or_zero(told.get("cached_input_tokens"))
    written = count_or_zero(told.get("cache_write_input_tokens"))
    return Usage(
        input_tokens=max(0, count_or_zero(told.get("input_tokens")) - read - written),
        output_tokens=count_or_zero(told.get("output_tokens")),
        cache_read_tokens=read,
        cache_creation_tokens=written,
    )


def without(usage: Usage, before: Usage | None) -> Usage:
    """What was used since `before`."""
    if before is None:
        return usage
    return Usage(
        input_tokens=max(0, usage.input_tokens - before.input_tokens),
        output_tokens=max(0, usage.output_tokens - before.output_tokens),
        cache_read_tokens=max(0, usage.cache_read_tokens - before.cache_read_tokens),
        cache_creation_tokens=max(0, usage.cache_creation_tokens - before.cache_creation_tokens),
    )


class UsageRecord:
    """What a thread has used, by the program's own record of it, read on as it grows."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._home = codex_home(env)
        self._file: Path | None = None
        self._searches = 0
        self._at = 0
        self._last: Usage | None = None

    def total(self, thread: str) -> Usage | None:
        """All of its tokens until now, None when the record does not tell."""
        try:
            file = self._found(thread)
            if file is not None:
                self._read(file)
        except OSError:
            return None
        return self._last

    def _found(self, thread: str) -> Path | None:
        if self._file is None and self._searches < _MOST_SEARCHES and _ID.fullmatch(thread):
            self._searches += 1
            found = sorted(self._home.glob(f"sessions/*/*/*/rollout-*-{thread}.jsonl"))
            self._file = found[-1] if found else None
        return self._file

    def _read(self, path: Path) -> None:
        with path.open("rb") as file:
            file.seek(self._at)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # it is still being written
                self._at += len(line)
                if b'"token_count"' in line:
                    self._last = _total(line) or self._last


def _total(line: bytes) -> Usage | None:
    payload = dict_or_empty((parse_json_line(line) or {}).get("payload"))
    total = dict_or_empty(dict_or_empty(payload.get("info")).get("total_token_usage"))
    return usage_of(total) if payload.get("type") == "token_count" and total else None
