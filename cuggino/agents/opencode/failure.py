"""What OpenCode reports about a failed session: `error` with its name and status, and its waits."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo

from cuggino.agents.base.bodies import body_in, reset_of_headers
from cuggino.agents.base.failure import failed
from cuggino.agents.base.refusals import (
    PATIENCE,
    START_ANEW,
    Dialect,
    Refusal,
    cause_of,
    judge,
    unresumable,
)
from cuggino.agents.base.wire import Json, dict_or_empty, text_or_none
from cuggino.errors import AgentFailed, LlmSessionError

MOST_RETRIES = 3
"""Retries accepted from the program itself, which take 14 s; the loop retries anyway."""

DIALECT = Dialect(
    kinds={
        "providermodelnotfounderror": "bad_request",
        "modelnotfounderror": "bad_request",
        "provideriniterror": "bad_request",
        "autherror": "auth",
        **dict.fromkeys(
            (
                "gousagelimiterror",
                "monthlylimiterror",
                "subscriptionusagelimiterror",
                "userlimiterror",
            ),
            "usage_limit",
        ),
    },
    words=(
        (re.compile(r"cannot connect|unable to connect|socket|fetch failed", re.I), "connection"),
        (re.compile(r"model not found|no (?:models?|providers?) ", re.IGNORECASE), "bad_request"),
        (re.compile(r"API key"), "auth"),
    ),
    refusals=((re.compile(r"Session not found"), START_ANEW),),
    hints={
        "auth": "log in with `opencode auth login`, or set the key of the provider",
        "connection": "check the network, a proxy, and the address of the provider",
    },
)


def refusal_of(error: Json, *, now: datetime) -> Refusal:
    """Return the facts of an `error` line."""
    data = dict_or_empty(error.get("data"))
    told = data.get("message") or error.get("message") or error.get("name")
    body = body_in(text_or_none(data.get("responseBody")) or "")
    kinds = (error.get("name"), data.get("type"), data.get("code"), *body.kinds)
    status = data.get("statusCode")
    return Refusal(
        message=text_or_none(told) or "Unknown error",
        kinds=tuple(kind for kind in kinds if isinstance(kind, str)),
        status=status if isinstance(status, int) else None,
        resets_at=reset_of_headers(data.get("responseHeaders"), now) or body.resets_at(now),
    )


def waits_too_long(
    message: str, until: datetime, *, attempt: int, now: datetime, zone: tzinfo
) -> LlmSessionError | None:
    """Return the error that replaces a wait before the next attempt, or None to let it wait.

    The program waits as long as a server asks for, even days, and reports waits by their message
    alone. A long wait that is not an outage is a usage limit.
    """
    is_far = until - now > PATIENCE
    named = cause_of(Refusal(message=message), DIALECT, told=None, now=now)
    is_outage = named in ("overloaded", "server", "connection")
    kinds = () if is_outage else ("rate_limit",)
    refusal = Refusal(message=message, kinds=kinds, resets_at=until if is_far else None)
    error = judge(refusal, DIALECT, now=now, zone=zone)
    is_limit = not isinstance(error, AgentFailed)
    return error if is_limit or is_far or attempt > MOST_RETRIES else None


def says_nothing(error: Json) -> bool:
    """Return whether the program only repeats that something failed, without the reason."""
    data = error.get("data")
    return isinstance(data, dict) and str(data.get("message")).startswith("Unexpected server error")


def elsewhere(folder: str) -> AgentFailed:
    """Return the error of a session that belongs to another folder."""
    return unresumable(f"the session belongs to another folder: {folder}")


def broken_off(times: int) -> AgentFailed:
    """Return the error of an endless loop: the program retries whenever an answer breaks off."""
    message = f"the model's answer broke off {times} times"
    return failed(message, "connection", hints=DIALECT.hints)
