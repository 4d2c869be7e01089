"""The judge of refusals: what the failure of an agent's program means, whatever program it is.

A provider only extracts facts (`Refusal`) and names what its program calls things (`Dialect`).
`judge` decides, in one order for all providers (`cuggino help refusals` shows the tables):

1. types and codes that the program reports
2. a time: hours or days away it is a usage limit, whatever it calls itself; minutes away it is not
3. words of its message
4. the HTTP status

It is asked about every ending: an error, an answer that consists of a limit only (`judge_answer`),
and plain text of a program that ended without a result (`judge_ending`). Never pass it the output
of a tool, or a model's prose.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, tzinfo
from typing import Literal, TypeAlias

from cuggino.agents.base.bodies import Body, body_in
from cuggino.agents.base.failure import CONNECTION, crash, cut, failed, last_lines
from cuggino.domain import is_limit_answer, is_quota_text, parse_reset, without_escapes
from cuggino.errors import AgentFailed, AgentFailure, LlmSessionError, QuotaExceeded

Cause: TypeAlias = AgentFailure | Literal["usage_limit"]
"""What a refusal means: the reason of an `AgentFailed`, or a `QuotaExceeded`."""

Words: TypeAlias = tuple[tuple[re.Pattern[str], Cause], ...]

PATIENCE = timedelta(minutes=5)
"""A limit that is lifted later than this is a usage limit, rather than too many requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The facts that a program reports about a failure."""

    message: str
    """Its own words; the error of an API within them is unwrapped."""
    kinds: tuple[str, ...] = ()
    """Types, codes and names that it reports, the most specific one first."""
    status: int | None = None
    """The HTTP status of the API."""
    resets_at: datetime | None = None
    """When the limit is lifted, if a field of its own says so; else the message is searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What a program calls things, beyond the names and words that many share."""

    kinds: Mapping[str, Cause] = field(default_factory=dict)
    """Types and codes of this program alone, in lower case."""
    words: Words = ()
    """Words of this program alone. They come before the common ones."""
    refusals: tuple[tuple[re.Pattern[str], str], ...] = ()
    """Reasons to refuse a session before any work, and what to do then."""
    hints: Mapping[AgentFailure, str] = field(default_factory=dict)
    noise: re.Pattern[str] | None = None
    """Lines of standard error that occur in any session."""


KINDS: Mapping[str, Cause] = {
    **dict.fromkeys(
        (
            "authentication",
            "authentication_error",
            "authentication_failed",
            "authorization",
            "invalid_api_key",
            "permission_error",
            "policy",
            "providerautherror",
            "unauthenticated",
        ),
        "auth",
    ),
    **dict.fromkeys(
        (
            "billing",
            "billing_error",
            "billing_hard_limit_reached",
            "billing_not_configured",
            "creditserror",
            "insufficient_balance",
            "insufficient_credits",
            "payment_required",
            "usage_not_included",
        ),
        "billing",
    ),
    **dict.fromkeys(
        (
            "exceeded_quota",
            "freeusagelimiterror",
            "insufficient_quota",
            "quota",
            "quota_exceeded",
            "quota_exhausted",
            "usage_limit",
            "usage_limit_exceeded",
            "usage_limit_reached",
        ),
        "usage_limit",
    ),
    **dict.fromkeys(
        ("rate_limit", "rate_limit_error", "rate_limit_exceeded", "resource_exhausted"),
        "rate_limit",
    ),
    **dict.fromkeys(("overloaded", "overloaded_error"), "overloaded"),
    **dict.fromkeys(("server_error",), "server"),
    **dict.fromkeys(
        ("context_length_exceeded", "context_limit", "contextoverflowerror", "prompt_too_long"),
        "prompt_too_long",
    ),
    **dict.fromkeys(("aborted", "messageabortederror"), "aborted"),
    "connection_failed": "connection",
    **dict.fromkeys(("invalid_request", "invalid_request_error"), "bad_request"),
}
"""Types and codes of many programs, in lower case."""

_OPEN: frozenset[Cause] = frozenset({"bad_request", "rate_limit", "server", "unknown"})
"""Types that do not settle it: limits of days are reported under these, too."""

_OF_LIMITS: frozenset[Cause] = frozenset({"usage_limit", "billing"})
"""What words may make of a `rate_limit`."""

_BILLING = re.compile(
    r"\b(?:insufficient|not enough)[\s_-](?:account |credit )?(?:balance|funds|credits?)"
    r"|\b(?:out of|no)(?: more)? (?:credits?|balance|funds)\b|\bspend(?:ing)?[\s_-]caps?\b"
    r"|\bpayment required|\badd (?:more )?credits|\bbudget (?:is |was |has been )?"
    r"(?:used up|spent|exhausted|reached|exceeded)\b|\bbudget of .{1,60} is (?:used up|spent)\b"
    r"|\b(?:balance|credits?|funds) (?:is |are |has |have |been |was )*"
    r"(?:empty|exhausted|depleted|insufficient|negative|too low|used up|run out)\b"
    r"|\bbilling (?:to be |is |has )?(?:not )?(?:been )?(?:enabled|disabled|inactive)\b",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"\b(?:prompt|input|request) (?:is |as )?too (?:long|large)\b|\bcontext[_ ](?:window|length)\b"
    r"|\btoo many tokens\b|\btoken count\b.{0,80}\bexceeds\b|\bprompt budget\b",
    re.IGNORECASE,
)
_AUTH = re.compile(
    r"\bnot (?:logged|signed) in\b|\b(?:log|sign) ?in again\b"
    r"|\bplease (?:run /login|log ?in|sign in)"
    r"|\b(?:invalid|incorrect|expired) api[ _-]?key|\bapi[ _]key (?:not valid|expired|is invalid)"
    r"|\bapi_key_invalid\b|\bunauthori[sz]ed\b|\bmissing environment variable\b",
    re.IGNORECASE,
)
_LOGIN = re.compile(
    r"\bapi[ _-]?key\b|\bauthenticat|\bauthori[sz]e\b|\b(?:log|sign) ?in\b", re.IGNORECASE
)
_RATE = re.compile(r"\brate[\s_-]?limit|\btoo many requests\b", re.IGNORECASE)
_OVERLOADED = re.compile(
    r"\boverloaded\b|\b(?:at|no) capacity\b|\bservice (?:is )?(?:temporarily )?unavailable\b",
    re.IGNORECASE,
)
_SERVER = re.compile(
    r"\b(?:internal )?server error\b|\bbad gateway\b|\bgateway time-?out\b"
    r"|\bexperiencing high demand\b",
    re.IGNORECASE,
)

WORDS: Words = (
    (_BILLING, "billing"),
    (_TOO_LONG, "prompt_too_long"),
    (_AUTH, "auth"),
    (_RATE, "rate_limit"),
    (_OVERLOADED, "overloaded"),
    (CONNECTION, "connection"),
    (_SERVER, "server"),
    (_LOGIN, "auth"),
)
"""Words of many programs, the most specific ones first. Those of a usage limit come before."""

STATUSES: Mapping[int, AgentFailure] = {
    401: "auth",
    402: "billing",
    403: "auth",
    408: "connection",
    413: "prompt_too_long",
    429: "rate_limit",
    503: "overloaded",
    529: "overloaded",
}
"""Other statuses of 500 and more are `server`, of 400 and more `bad_request`."""

_STATUS = re.compile(
    r"(?:^|\bstatus(?: code)?:? |\bHTTP(?:/[\d.]+)? |error:? [('\"]?)([45]\d\d)\b(?!\s*\w+s\b)",
    re.IGNORECASE,
)
"""A status in the words of a program."""
_ERROR = re.compile(r"\s*API error:? \(?[45]\d\d\b", re.IGNORECASE)
_ERROR_ANSWER = 2000
"""An answer that consists of an error of the API, and its most characters."""
_LIMIT = re.compile(
    r"limit|quota|usage|credit|messages|requests|exhausted|capacity|too many|\breset", re.IGNORECASE
)
"""Words without which a time in a message is not that of a limit."""


def judge(refusal: Refusal, dialect: Dialect, *, now: datetime, zone: tzinfo) -> LlmSessionError:
    """Return the error for a refusal.

    `now` is timezone-aware; `zone` is that of times without one. A `QuotaExceeded` has the time at
    which the limit is lifted, if that is known; so has an `AgentFailed` whose reason is
    `rate_limit` (`retry_at`).
    """
    body = body_in(refusal.message)
    facts = replace(
        refusal,
        message=f"{body.message}\n{body.before}".strip(),
        kinds=(*refusal.kinds, *body.kinds),
        status=refusal.status or body.status or _told_status(body),
        resets_at=refusal.resets_at or body.resets_at(now),
    )
    told = facts.resets_at or parse_reset(facts.message, now=now, zone=zone)
    cause, message = cause_of(facts, dialect, told=told, now=now), cut(body.message)
    if cause == "usage_limit":
        return QuotaExceeded(message, resets_at=told)
    return failed(
        message, cause, hints=dialect.hints, retry_at=told if cause == "rate_limit" else None
    )


def cause_of(refusal: Refusal, dialect: Dialect, *, told: datetime | None, now: datetime) -> Cause:
    """Return what a refusal means; `told` is the time at which its limit is lifted, if any."""
    reported = _reported(refusal, dialect)
    if reported is not None and reported not in _OPEN:
        return reported
    is_limit = reported == "rate_limit" or refusal.status == 429 or _LIMIT.search(refusal.message)
    if told is not None and told - now > PATIENCE and is_limit:
        return "usage_limit"
    said = _said(refusal.message, dialect)
    if said == "usage_limit" and told is not None and told - now <= PATIENCE:
        said = "rate_limit"  # it is lifted in minutes
    if said is not None and (reported != "rate_limit" or said in _OF_LIMITS):
        return said
    return reported or _of_status(refusal.status)


def judge_answer(
    text: str, dialect: Dialect, *, now: datetime, zone: tzinfo
) -> LlmSessionError | None:
    """Return the error of a session whose last answer consists of a limit only, else None.

    Some programs report a limit, or an error of the API, as an answer of the model, and end
    normally.
    """
    is_error = len(text) <= _ERROR_ANSWER and _ERROR.match(text) is not None
    if not is_error and not is_limit_answer(text):
        return None
    return judge(Refusal(message=text.strip()), dialect, now=now, zone=zone)


def judge_ending(
    dialect: Dialect,
    *,
    program: str,
    exit_code: int,
    said: str,
    now: datetime,
    zone: tzinfo,
    kinds: tuple[str, ...] = (),
) -> LlmSessionError:
    """Return the error of a program that ended without a result.

    `said` is what it printed as plain text, on standard error and in the place of its events;
    `kinds` is what its exit code means. A program that a signal ended has crashed.
    """
    noise = dialect.noise
    shown = without_escapes(said).splitlines()
    lines = [line for line in shown if not (noise and noise.search(line))]
    text = "\n".join(lines)
    tail = last_lines(text)
    for pattern, hint in dialect.refusals:
        if pattern.search(text):
            return AgentFailed(cut(tail), reason="bad_request", hint=hint)
    if exit_code >= 0:
        refusal = Refusal(message=tail or f"exit code {exit_code}", kinds=kinds)
        judged = judge(refusal, dialect, now=now, zone=zone)
        if not (isinstance(judged, AgentFailed) and judged.reason == "unknown"):
            return judged
    return crash(program, exit_code, text)


def unresumable(message: str) -> AgentFailed:
    """Return the error of a session that cannot be resumed."""
    return AgentFailed(cut(message), reason="bad_request", hint=START_ANEW)


START_ANEW = "the session cannot be resumed: start a new one"


def _reported(refusal: Refusal, dialect: Dialect) -> Cause | None:
    """Return what types and codes mean: the first that settles it, else the first known one."""
    kinds = [kind.lower() for kind in refusal.kinds]
    known = [dialect.kinds.get(kind) or KINDS.get(kind) for kind in kinds]
    causes = [cause for cause in known if cause is not None]
    return next((cause for cause in causes if cause not in _OPEN), next(iter(causes), None))


def _said(message: str, dialect: Dialect) -> Cause | None:
    for pattern, cause in dialect.words:
        if pattern.search(message):
            return cause
    if is_quota_text(message):
        return "usage_limit"
    return next((cause for pattern, cause in WORDS if pattern.search(message)), None)


def _told_status(body: Body) -> int | None:
    found = filter(None, (_STATUS.search(text) for text in (body.before, body.message)))
    return next((int(status[1]) for status in found), None)


def _of_status(status: int | None) -> AgentFailure:
    if status is None or status < 400:
        return "unknown"
    return STATUSES.get(status, "server" if status >= 500 else "bad_request")
