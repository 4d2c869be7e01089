"""What GitHub Copilot reports about a failed session: `session.error` with type, code, status."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo

from cuggino.agents.base.failure import cut
from cuggino.agents.base.refusals import START_ANEW, Dialect, Refusal, judge, unresumable
from cuggino.agents.base.wire import Json, text_or_none
from cuggino.errors import AgentFailed, LlmSessionError

LOGIN = (
    "log in with `copilot login`, or set COPILOT_GITHUB_TOKEN; "
    "for a model of your own set COPILOT_PROVIDER_BASE_URL and COPILOT_MODEL"
)

DIALECT = Dialect(
    kinds={"limit of the user": "usage_limit"},
    words=(
        (re.compile(r"no GitHub OAuth token|authentication", re.IGNORECASE), "auth"),
        (re.compile(r"prompt as too long", re.IGNORECASE), "prompt_too_long"),
        (re.compile(r"finalize .{0,40}stream", re.IGNORECASE), "connection"),
    ),
    refusals=((re.compile(r"Session not found"), START_ANEW),),
    hints={
        "auth": LOGIN,
        "connection": "check the network, a proxy, and COPILOT_PROVIDER_BASE_URL",
    },
)


def refusal_of(error: Json) -> Refusal:
    """Return the facts of a `session.error`."""
    code = text_or_none(error.get("errorCode")) or ""
    # Limits of the user are lifted in hours or days, those of the service within moments.
    own = "limit of the user" if code.startswith("user_") and "limit" in code else ""
    kind, status = text_or_none(error.get("errorType")) or "", error.get("statusCode")
    return Refusal(
        message=text_or_none(error.get("message")) or "Unknown error",
        kinds=(own, code, kind),
        status=status if isinstance(status, int) else None,
    )


def connection_failure(
    program: str, error: Exception, *, now: datetime, zone: tzinfo
) -> LlmSessionError:
    """Return the error of a session that could not start, or whose connection broke."""
    said = re.sub(r"^JSON-RPC Error -?\d+: ", "", str(error)) or type(error).__name__
    if "Session not found" in said:
        return unresumable(said)
    judged = judge(Refusal(message=said), DIALECT, now=now, zone=zone)
    if not isinstance(judged, AgentFailed) or judged.reason != "unknown":
        return judged
    hint = None
    if "protocol version" in said or "Unknown PermissionRequest" in said:
        hint = f"{program} and github-copilot-sdk are incompatible: update both"
    return AgentFailed(cut(f"{program}: {said}"), reason="crash", hint=hint)
