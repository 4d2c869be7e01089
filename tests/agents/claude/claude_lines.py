"""Handwritten stream lines of Claude Code, and the outcome of a run that consists of them."""

from __future__ import annotations

import json
from typing import Any

from cuggino.agents.claude.wire import ClaudeSession
from cuggino.errors import AgentFailed, CugginoError, LlmSessionError
from cuggino.events import SessionEnded

LIFTED = {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed"}}
LIMIT_TOLD = {"type": "assistant", "api_error": "usage_limit_reached"}
REJECTED = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 60}}


def end(
    *raws: dict[str, Any], exit_code: int = 1, stderr: str = ""
) -> tuple[SessionEnded, LlmSessionError | None]:
    session = ClaudeSession()
    for raw in raws:
        session.feed(json.dumps(raw).encode(), now=0.0)
    return session.end(exit_code=exit_code, stderr_tail=stderr, duration=1.0, now=0.0)


def result(**fields: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, "result": "ok", **fields}


def api_error(status: int | None = None, text: str = "API Error", **fields: Any) -> dict[str, Any]:
    error = {"is_error": True, "terminal_reason": "api_error", "api_error_status": status}
    return result(**error, result=text, **fields)


def kind(error: CugginoError | None) -> str | None:
    match error:
        case None:
            return None
        case AgentFailed(reason=reason):
            return reason
        case _:
            return type(error).__name__
