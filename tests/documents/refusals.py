"""The help page on refusals, from the judge's own tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never, get_args

from cuggino.agents.base.refusals import KINDS, PATIENCE, STATUSES, Cause
from cuggino.domain.fallback import when_to_fall_back
from cuggino.errors import AgentFailed, AgentFailure, LlmSessionError, QuotaExceeded
from cuggino.operators.supervision import is_transient
from tests.documents.markdown import paragraphs, table

MEANT: Mapping[Cause, tuple[str, str]] = {
    "usage_limit": ("a usage limit of hours, days or months", "You've hit your limit, resets 3pm"),
    "rate_limit": ("too many requests at once", "Rate limit reached, try again in 4.2s"),
    "billing": ("no money: credit, plan or spend cap", "insufficient balance"),
    "auth": ("no login, or one that is refused", "Not logged in"),
    "overloaded": ("the service has too much to do", "Overloaded; at capacity"),
    "server": ("the service failed", "Internal server error"),
    "connection": ("the service cannot be reached", "ECONNREFUSED; timed out"),
    "prompt_too_long": ("more than the model can read", "context window"),
    "bad_request": ("the request is wrong", ""),
    "max_turns": ("the agent's own limit of turns", ""),
    "aborted": ("somebody interrupted the session", ""),
    "crash": ("the program ended without a result", ""),
    "unknown": ("none of these", ""),
}

INTRO = f"""
An agent's program reports a failure in its own way: as an error with a type, a code or an HTTP
status, as an answer that consists of a limit only, or as plain text before it exits. cuggino judges
all of them by the same rules, in this order; the first that settles it decides. An error of an API
within a message, as JSON, adds its types, codes, status and time.

1. **Type and code** that the program reports. A type that only says "rate limit", "bad request" or
"server error" does not settle it, as limits of days are reported under these names, too.

2. **A time**. A limit that is lifted in more than {PATIENCE.seconds // 60} minutes is a usage
limit, whatever it calls itself; one that is lifted sooner is not, and the next try waits for it.

3. **Words** of the message: those of the program, then the common ones.

4. **The HTTP status**.

What follows from it:
"""

OUTRO = """
"Retried" means up to `maxRetries` times, with growing pauses. A usage limit is waited for, up to
`maxQuotaWait`; if its end is unknown, after 15 minutes, then 30, and so on. `cuggino help
providers` explains fallbacks.

Work that goes on beyond a limit at a price (Claude Code's extra usage) is no refusal: the limit is
reported with `overage`, and nothing waits for it.
"""


def refusals() -> str:
    """Return the page."""
    lines = ["# Refusals", "", *paragraphs(INTRO), *table(_HEADS, _rows()), *paragraphs(OUTRO)]
    return "\n".join(lines).rstrip("\n") + "\n"


_HEADS = ("reason", "types and codes", "words, for example", "status", "what happens")


def _rows() -> Iterator[tuple[str, ...]]:
    causes: tuple[Cause, ...] = ("usage_limit", *get_args(AgentFailure))
    assert set(causes) == set(MEANT)
    for cause, (meaning, words) in MEANT.items():
        error = _error(cause)
        kinds = ", ".join(f"`{kind}`" for kind, of in KINDS.items() if of == cause)
        statuses = ", ".join(str(status) for status, of in STATUSES.items() if of == cause)
        yield f"`{cause}`: {meaning}", kinds, words, statuses, _happens(cause, error)


def _error(cause: Cause) -> LlmSessionError:
    return QuotaExceeded("") if cause == "usage_limit" else AgentFailed("", reason=cause)


def _happens(cause: Cause, error: LlmSessionError) -> str:
    moment = when_to_fall_back(error)
    match moment:
        case "at_once" if cause == "usage_limit":
            return "a fallback takes over at once; without one it is waited for"
        case "at_once":
            return "a fallback takes over at once; without one the run ends"
        case "after_retries":
            assert is_transient(error)
            return "it is retried, then a fallback takes over"
        case "never":
            return "the run ends"
        case _ as never:
            assert_never(never)
