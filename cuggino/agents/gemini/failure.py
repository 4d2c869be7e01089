"""What the Gemini CLI reports about a failed session.

These are its `result`, its `error` lines and its exit code. The status of an API error is part of a
message, as JSON in JSON, or is the exit code modulo 256.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from cuggino.agents.base.bodies import body_in
from cuggino.agents.base.refusals import START_ANEW, Cause, Dialect, Refusal
from cuggino.agents.base.wire import Json, dict_or_empty, list_or_empty, text_or_none

_EXIT_CODES: dict[int, Cause] = {41: "auth", 42: "bad_request", 44: "bad_request"}
_EXIT_CODES |= {52: "bad_request", 53: "max_turns", 55: "bad_request"}
INTERRUPTED = 130
"""The exit code of an interrupted program."""
_STATUSES = (400, 401, 402, 403, 404, 408, 413, 429, 499, 500, 502, 503, 504, 529)
_PER_DAY = re.compile(r"per_?day|daily", re.IGNORECASE)
_DAYS_OF = ZoneInfo("America/Los_Angeles")
"""Quotas per day return at midnight there."""

DIALECT = Dialect(
    kinds={
        **{f"exit {code}": cause for code, cause in _EXIT_CODES.items()},
        "no free tier": "billing",
        "quota per day": "usage_limit",
        "insufficient_g1_credits_balance": "billing",
    },
    words=(
        (re.compile(r"auth method|authentication page|login required", re.IGNORECASE), "auth"),
        (re.compile(r"context window will overflow", re.IGNORECASE), "prompt_too_long"),
        (re.compile(r"max(?:imum)? session turns", re.IGNORECASE), "max_turns"),
        (re.compile(r"exhausted your|\bcredits\b", re.IGNORECASE), "usage_limit"),
        (re.compile(r"fetch failed|stream ended|Incomplete JSON|terminated"), "connection"),
    ),
    refusals=(
        (
            re.compile(r"[Ee]rror resuming session|Invalid session identifier|already exists"),
            START_ANEW,
        ),
    ),
    hints={
        "auth": "log in with `gemini`, or set GEMINI_API_KEY",
        "connection": "check the network, a proxy, and GOOGLE_GEMINI_BASE_URL",
    },
    noise=re.compile(
        r"256-color|^YOLO mode|^Ripgrep is not|^Data collection|^\[STARTUP\]", re.MULTILINE
    ),
)
_NOTHING = re.compile(r"limit:\s*0(?![\d.])", re.IGNORECASE)
"""The model has no free tier, so waiting does not help."""

LOOP = "Loop detected"


def refusal_of(message: str, *, exit_code: int, now: datetime) -> Refusal:
    """Return the facts of an error, whose message may be JSON in JSON."""
    body = body_in(bare(message))
    named = next((s for s in _STATUSES if exit_code > 64 and s & 255 == exit_code), None)
    status, told = body.status or named, body.message
    quotas = [name for error in body.errors for name in _quotas(error)]
    is_per_day = any(map(_PER_DAY.search, quotas)) and status in (429, None)
    kinds = [
        *(["no free tier"] if status == 429 and _NOTHING.search(told) else []),
        *(["quota per day"] if is_per_day else []),
        *(["quota"] if quotas else []),
        *body.kinds,
        f"exit {exit_code}",
    ]
    return Refusal(
        message=told,
        kinds=tuple(kinds),
        status=status,
        resets_at=_next_day(now) if is_per_day else body.resets_at(now),
    )


def _next_day(now: datetime) -> datetime:
    there = now.astimezone(_DAYS_OF).date() + timedelta(days=1)
    return datetime.combine(there, time(), _DAYS_OF)


def _quotas(error: Json) -> Iterator[str]:
    """Yield the ids of the quotas that the API says are met."""
    for detail in map(dict_or_empty, list_or_empty(error.get("details"))):
        for violation in map(dict_or_empty, list_or_empty(detail.get("violations"))):
            told = (text_or_none(violation.get(key)) for key in ("quotaId", "quotaMetric"))
            if name := next(filter(None, told), None):
                yield name


def bare(message: str) -> str:
    """Return the error without its bracket, after which advice follows that all limits share."""
    found = re.match(r"\[API Error: (.*)\]", message, re.DOTALL)
    return found[1] if found else message
