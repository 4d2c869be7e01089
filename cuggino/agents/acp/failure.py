"""What programs of the Agent Client Protocol report about a failed session.

Some report an error of their model only as text of the agent, and end the turn normally. So a turn
that is empty, or contains only an error message, counts as a failure.
"""

from __future__ import annotations

import re
from typing import Any

from cuggino.agents.base.bodies import body_in
from cuggino.agents.base.failure import failed, interrupted
from cuggino.agents.base.reader import Ending
from cuggino.agents.base.refusals import Dialect, Refusal, unresumable
from cuggino.agents.base.wire import Json, compact, dict_or_empty, is_number, text_or_none
from cuggino.errors import AgentFailed, LlmSessionError

_NO_ACCOUNT = -32000
_METHOD_MISSING = -32601
_NO_SUCH = (-32002, -32602)

_STATUS = re.compile(
    r"(?:^|\bstatus(?: code)?:? |\bHTTP |\berror:? [('\"]?)([45]\d\d)\b", re.IGNORECASE
)
_ERROR_TEXT = re.compile(
    r"\s*(?:\W*\s*)?(?:api |internal |server |network |provider |request )?"
    r"(?:error|failed|failure|exception)\b",
    re.IGNORECASE,
)
_MARKER = re.compile(r"</?[A-Z][A-Z_]+>")
"""What an answer has, and an error has not."""
_STOPPED = {
    "max_tokens": "the model's answer was cut at its limit of tokens",
    "max_turn_requests": "the agent reached its limit of requests in a turn",
    "refusal": "the model refused to answer",
}
_LONGEST_REASON = 500
"""Characters of a text that may be the reason for the end of its turn, rather than an answer."""


def dialect(login: str) -> Dialect:
    """Return the dialect of these programs; `login` is the hint on how to log in."""
    return Dialect(
        words=((re.compile(r"too long", re.IGNORECASE), "prompt_too_long"),),
        hints={"auth": login},
    )


def failure_of(ending: Ending, method: str, error: Json) -> LlmSessionError:
    """Return the error for an error response to `method`."""
    code, message = error.get("code"), _message(error)
    if method in ("session/load", "session/resume") and code != _NO_ACCOUNT:
        return unresumable(f"{ending.program}: {message}")
    kind = text_or_none(dict_or_empty(error.get("data")).get("errorKind")) or ""
    if code == _METHOD_MISSING or code in _NO_SUCH:
        kind = kind or "invalid_request"
    body = body_in(compact({"error": error.get("data")}))
    refusal = Refusal(
        message=message,
        kinds=(kind, *body.kinds),
        status=_status(code, message) or body.status,
        resets_at=body.resets_at(ending.now),
    )
    return ending.refused(refusal)


def failed_turn(
    ending: Ending, text: str, *, reason: str = "end_turn", has_worked: bool
) -> LlmSessionError | None:
    """Return the error of a turn that ended for this reason, or None if it produced an answer."""
    if reason == "cancelled":
        return interrupted(ending.program)
    said = text.strip()
    is_error = _ERROR_TEXT.match(said) is not None or _STATUS.match(said) is not None
    is_error = is_error and _MARKER.search(said) is None
    is_reason = reason not in _STOPPED and len(said) <= _LONGEST_REASON
    if said and not has_worked and (is_error if reason == "end_turn" else is_error or is_reason):
        refusal = Refusal(message=said, status=_status(None, said))
        judged: LlmSessionError | None = ending.refused(refusal)
    else:
        judged = ending.answered(said)
    if reason == "end_turn":
        if not said and not has_worked:
            return failed(f"{ending.program} ended its turn without an answer", "unknown")
        return judged
    if judged is not None and not (isinstance(judged, AgentFailed) and judged.reason == "unknown"):
        return judged
    message = _STOPPED.get(reason, f"{ending.program} stopped: {reason}")
    return failed(message, "max_turns" if reason == "max_turn_requests" else "unknown")


def _status(code: Any, message: str) -> int | None:
    if code == _NO_ACCOUNT:
        return 401
    if is_number(code) and 400 <= code < 600:
        return int(code)
    found = _STATUS.search(message)
    return int(found[1]) if found else None


def _message(error: Json) -> str:
    """Return the message with its details, without boilerplate."""
    data = error.get("data")
    given = dict_or_empty(data)
    details = next(
        (text for key in ("details", "message", "error") if (text := text_or_none(given.get(key)))),
        data if isinstance(data, str) else compact(data) if data else "",
    )
    message = text_or_none(error.get("message")) or "Unknown error"
    if details and message in ("Internal error", "Unknown error"):
        return details
    return f"{message}: {details}" if details and details not in message else message
