"""What the Codex CLI reports about a failed session.

These are the message of `turn.failed`, or its last lines if it ended before its turn.
"""

from __future__ import annotations

import re
from datetime import datetime

from cuggino.agents.base.bodies import body_in
from cuggino.agents.base.refusals import START_ANEW, Dialect, Refusal

_SPENT = re.compile(r"\bcredits?\b|\bspend(?:ing)? (?:cap|limit)", re.IGNORECASE)

DIALECT = Dialect(
    words=(
        (re.compile(r"hit your usage limit"), "usage_limit"),
        (re.compile(r"Quota exceeded|upgrade to Plus|billing", re.IGNORECASE), "billing"),
        (re.compile(r"access token could not"), "auth"),
        (
            re.compile(
                r"stream disconnected|idle timeout|waiting for network|Connection failed",
                re.IGNORECASE,
            ),
            "connection",
        ),
    ),
    refusals=(
        (re.compile(r"no rollout found|thread/resume failed"), START_ANEW),
        (re.compile(r"Error loading config|invalid value|is not trusted"), "check config.toml"),
        (
            re.compile(r"error: unexpected argument|[Uu]nknown feature flag"),
            "this codex lacks a required option: update it through npm",
        ),
        (re.compile(r"required MCP server"), "check the MCP servers of this session"),
    ),
    hints={
        "auth": "log in with `codex login`, or set the API key of the model provider",
        "connection": "check the network, a proxy, and the base_url of the model provider",
    },
    noise=re.compile(r"^(?:WARNING|warning):|^\S+Z\s+(?:WARN|INFO)\b"),
)


def refusal_of(message: str, *, window: datetime | None = None) -> Refusal:
    """Return the facts of a `turn.failed`.

    `window` is the reset of a used-up window in the thread's record: it is the cause of messages
    about missing credits, and dates those about limits that tell no time.
    """
    message = message or "Unknown error"
    kinds: list[str] = []
    if window is not None and _SPENT.search(body_in(message).message):
        kinds.append("usage_limit_reached")
    if message.startswith("{") and body_in(message).errors:
        kinds.append("invalid_request")  # a message of the API, passed on for this type alone
    return Refusal(
        message=message,
        kinds=tuple(kinds),
        resets_at=window,
    )
