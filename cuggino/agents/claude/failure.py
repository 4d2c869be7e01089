"""What Claude Code reports about a failed run.

These are the fields of its `result` (`is_error`, `terminal_reason`, `api_error_status`), its own
API-error lines and its limits, never the subtype or exit code alone: an API error is reported as
`subtype: success`, and an interrupted run exits with 0.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from cuggino.agents.base.failure import cut, failed, interrupted
from cuggino.agents.base.reader import Ending, Known
from cuggino.agents.base.refusals import START_ANEW, Dialect, Refusal
from cuggino.agents.base.wire import Json, text_or_none
from cuggino.errors import AgentFailed, BudgetExceeded, LlmSessionError
from cuggino.events import RateLimited

DIALECT = Dialect(
    kinds={
        "blocking_limit": "prompt_too_long",
        "max_turns": "max_turns",
        "error_max_turns": "max_turns",
        "rejected": "usage_limit",
    },
    refusals=(
        (
            re.compile(r"cannot be used with root"),
            "run as a normal user, or set IS_SANDBOX=1 inside a container",
        ),
        (
            re.compile(r"error: unknown option"),
            "this claude lacks a required option: update it with `claude update`",
        ),
        (re.compile(r"No conversation found with session ID"), START_ANEW),
        (
            re.compile(r"Session ID \S+ is already in use"),
            "resume the session, or start one with another id",
        ),
    ),
    hints={
        "auth": "log in with `claude` and /login, or set ANTHROPIC_API_KEY",
        "billing": "check the credit of the account behind the API key",
        "connection": "check the network, a proxy, and ANTHROPIC_BASE_URL",
    },
)


class Told(NamedTuple):
    """What the program has reported about its run."""

    result: Json | None = None
    """The first `result` line: the main answer. Later ones answer background tasks."""
    results: frozenset[str] = frozenset()
    """What identifies the results so far: a line may be printed twice."""
    error: Json | None = None
    """The last API-error line, unless the model answered after it."""
    text: str = ""
    """Text of that line, or the last message of the model."""
    is_interrupted: bool = False
    """True if the program reported an interruption."""
    stop_reason: str | None = None
    """Why the last message of the main conversation ended."""
    refused: int = 0
    """Refused logins in a row."""

    @property
    def has_failed(self) -> bool:
        """True if the main answer is an error; the agent's text after it is ignored."""
        result = self.result
        if result is None:
            return False
        return bool(result.get("is_error")) or str(result.get("subtype")).startswith("error")


def failure_of(known: Known, told: Told, ending: Ending) -> LlmSessionError | None:
    """Return the error of this run, or None if it succeeded.

    A nonzero exit code after a successful result is ignored, as the answer is complete, unless it
    consists of a usage limit (AUT-024, AUT-076).
    """
    result = told.result
    if result is None:
        return _without_result(known, told, ending)
    if not _is_failure(result):
        return ending.answered(text_or_none(result.get("result")) or "")
    message = _message(result)
    subtype, terminal = result.get("subtype"), text_or_none(result.get("terminal_reason")) or ""
    if terminal == "budget_exhausted" or subtype == "error_max_budget_usd":
        return BudgetExceeded(message, hint="allow more with a larger budget")
    if terminal.startswith("aborted_"):
        return interrupted(ending.program)
    for pattern, hint in DIALECT.refusals:
        if pattern.search(message):
            return AgentFailed(message, reason="bad_request", hint=hint)
    return ending.refused(refusal_of(result, known, told, message))


def refusal_of(result: Json, known: Known, told: Told, message: str) -> Refusal:
    """Return the facts of a failed `result`.

    A reported limit is that of the refusal unless the work went on, to fail for another reason, or
    goes on at a price.
    """
    error = told.error or {}
    status = next(
        (s for source in (result, error) if isinstance(s := source.get("api_error_status"), int)),
        None,
    )
    kinds = [result.get("terminal_reason"), result.get("subtype"), *_kinds(error)]
    limit = _limit(known)
    if limit is not None and status in (429, None):
        kinds.append("rejected")
    return Refusal(
        message=message,
        kinds=tuple(kind for kind in kinds if isinstance(kind, str)),
        status=status,
        resets_at=limit.resets_at if limit is not None else None,
    )


def _kinds(api_error: Json) -> tuple[str, ...]:
    named = (api_error.get("error"), api_error.get("api_error"))
    return tuple(kind for kind in named if isinstance(kind, str))


def refused_login(program: str) -> AgentFailed:
    """Return the error of a login that the API refuses."""
    return failed(f"the API refused the login of {program} (401)", "auth", hints=DIALECT.hints)


def _is_failure(result: Json) -> bool:
    status = result.get("api_error_status")
    subtype = text_or_none(result.get("subtype")) or ""
    terminal = text_or_none(result.get("terminal_reason")) or ""
    return (
        result.get("is_error") is True
        or subtype not in ("", "success")
        or terminal in ("api_error", "prompt_too_long", "blocking_limit", "image_error")
        or terminal in ("max_turns", "budget_exhausted")
        or terminal.startswith("aborted_")
        or (isinstance(status, int) and status >= 400)
    )


def _limit(known: Known) -> RateLimited | None:
    """Return the usage limit that stops the work, by the program's events."""
    limit = known.limit
    return limit if limit is not None and limit.status == "rejected" and not limit.overage else None


def _without_result(known: Known, told: Told, ending: Ending) -> LlmSessionError:
    if told.is_interrupted:
        return interrupted(ending.program)
    if (limit := _limit(known)) is not None:
        message = told.text or ending.said.strip() or "a usage limit was met"
        refusal = Refusal(message=message, kinds=("rejected",), resets_at=limit.resets_at)
        return ending.refused(refusal)
    if told.error is not None:
        judged = ending.refused(Refusal(message=told.text, kinds=_kinds(told.error)))
        if not (isinstance(judged, AgentFailed) and judged.reason == "unknown"):
            return judged
    return ending.without_result(answer="" if told.error else told.text)


def _message(result: Json) -> str:
    errors: Any = result.get("errors")
    said = [e for e in errors if isinstance(e, str) and e] if isinstance(errors, list) else []
    text = "\n".join(said) or text_or_none(result.get("result"))
    return cut(text or text_or_none(result.get("error")) or "Unknown error")
