"""The judge of refusals: messages of all programs, by report, and the order of its rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from cuggino.agents.acp.failure import dialect, failed_turn, failure_of
from cuggino.agents.base.bodies import body_in
from cuggino.agents.base.reader import Ending
from cuggino.agents.base.refusals import KINDS, Dialect, Refusal, judge, judge_answer, judge_ending
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.agents.codex.wire import CodexSession
from cuggino.agents.copilot.wire import CopilotSession
from cuggino.agents.gemini.wire import GeminiSession
from cuggino.agents.opencode.wire import OpenCodeSession
from cuggino.errors import AgentFailed, LlmSessionError, QuotaExceeded
from cuggino.events import SessionEnded
from tests.agents.claude.claude_lines import api_error

NOW = datetime(2026, 10, 6, 12, tzinfo=UTC)
ROME = ZoneInfo("Europe/Rome")
NO_WORDS = Dialect()


def ended(session: Any, *lines: Any, exit_code: int = 1) -> LlmSessionError | None:
    """Return the error of a program's session that printed these lines and ended."""
    for line in lines:
        text = line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)
        session.feed(text.encode(), now=NOW.timestamp())
    end = {"exit_code": exit_code, "stderr_tail": "", "duration": 1.0, "now": NOW.timestamp()}
    return checked(*session.end(**end))


OUTCOMES = {"max_turns": "max_turns", "aborted": "interrupted"}


def checked(ended: SessionEnded, error: LlmSessionError | None) -> LlmSessionError | None:
    """Return the error; the outcome of the session is that of its reason."""
    assert ended.outcome == (
        "quota"
        if isinstance(error, QuotaExceeded)
        else OUTCOMES.get(getattr(error, "reason", ""), "failed")
    )
    return error


def claude(text: str, status: int | None = 429, **limit: Any) -> LlmSessionError | None:
    init = {"type": "system", "subtype": "init", "session_id": "s"}
    told = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", **limit}}
    failed = {**api_error(status, text), "session_id": "s"}
    return ended(ClaudeSession(zone=lambda: ROME), init, *([told] if limit else []), failed)


def claude_plain(text: str) -> LlmSessionError | None:
    return ended(ClaudeSession(zone=lambda: ROME), text)


def codex(text: str) -> LlmSessionError | None:
    begun = {"type": "thread.started", "thread_id": "t-1"}
    failed = {"type": "turn.failed", "error": {"message": text}}
    return ended(CodexSession(zone=lambda: ROME), begun, {"type": "error", "message": text}, failed)


def copilot(text: str, **data: Any) -> LlmSessionError | None:
    session = CopilotSession(zone=lambda: ROME)
    for kind, given in (
        ("session.start", {"sessionId": "c"}),
        ("session.error", {"message": text, **data}),
        ("session.idle", {}),
    ):
        session.feed({"type": kind, "data": given}, now=NOW.timestamp())
    return checked(*session.end(duration=1.0, now=NOW.timestamp()))


def gemini(
    text: str,
    *,
    quota: str | None = None,
    details: Iterable[Any] = (),
    exit_code: int = 173,
    **violation: str,
) -> LlmSessionError | None:
    named = {**violation, **({"quotaId": quota} if quota else {})}
    details = [*([{"violations": [named]}] if named else []), *details]
    inner = {"code": 429, "message": text, "status": "RESOURCE_EXHAUSTED", "details": details}
    outer = {"error": {"message": json.dumps({"error": inner}), "code": 429, "status": "Too Many"}}
    message = f"[API Error: {json.dumps(outer)}]\nPlease wait and try again later."
    lines = (
        {"type": "init", "session_id": "g", "model": "m"},
        {"type": "result", "status": "error", "error": {"message": message}},
    )
    return ended(GeminiSession(zone=lambda: ROME), *lines, exit_code=exit_code)


def gemini_plain(text: str, exit_code: int = 1) -> LlmSessionError | None:
    failed = {"type": "result", "status": "error", "error": {"type": "unknown", "message": text}}
    return ended(GeminiSession(zone=lambda: ROME), failed, exit_code=exit_code)


def opencode(text: str, name: str = "APIError", **data: Any) -> LlmSessionError | None:
    error = {"name": name, "data": {"message": text, "statusCode": 429, **data}}
    line = {"type": "error", "sessionID": "ses", "error": error}
    return ended(OpenCodeSession(zone=lambda: ROME), line)


ENDING = Ending(dialect=dialect("log in"), program="x", exit_code=0, said="", now=NOW, zone=ROME)


def acp(text: str, code: int = -32603, **data: Any) -> LlmSessionError | None:
    error = {"code": code, "message": "Internal error", "data": {"details": text, **data}}
    return failure_of(ENDING, "session/prompt", error)


def acp_plain(text: str, code: int = -32603, data: Any = None) -> LlmSessionError | None:
    error = {"code": code, "message": text, "data": data}
    return failure_of(ENDING, "session/prompt", error)


def acp_turn(text: str, reason: str = "end_turn") -> LlmSessionError | None:
    return failed_turn(ENDING, text, reason=reason, has_worked=False)


@dataclass(frozen=True)
class Row:
    """A message and what it means: a reset in UTC, `limit` (a usage limit without one), else the
    reason."""

    made: Callable[[], LlmSessionError | None]
    text: str
    meant: str


def rows() -> Iterator[Row]:
    def row(of: Callable[..., LlmSessionError | None], text: str, meant: str, **data: Any) -> Row:
        return Row(lambda: of(text, **data), f"{of.__name__}: {text}", meant)

    yield row(
        claude, "You've hit your session limit · resets 2:30pm (Pacific/Auckland)", "10-07 01:30"
    )
    yield row(claude, "You've hit your limit · resets Oct 7, 1am (Europe/Berlin)", "10-06 23:00")
    yield row(
        claude, "You're out of extra usage · resets Oct 12 at 3pm (Europe/Vienna)", "10-12 13:00"
    )
    yield row(claude, "Weekly limit reached · resets 10am (Asia/Seoul) · /upgrade", "10-07 01:00")
    yield row(
        claude, "You've hit your Opus limit · resets Oct 9, 3pm (America/Bogota)", "10-09 20:00"
    )
    yield row(
        claude, "You've hit your Fable limit · resets Oct 10, 3pm (Asia/Muscat)", "10-10 11:00"
    )
    yield row(claude, "You've hit your org's monthly usage limit", "limit")
    yield row(claude, "You've hit your org's monthly spend limit", "limit")
    yield row(
        claude, "You've hit your monthly spend limit · raise it at claude.ai/settings", "limit"
    )
    yield row(claude, "Claude AI usage limit reached|1791320400", "10-06 21:00")
    yield row(
        claude, "Claude Max usage limit reached. Your limit will reset at 12am", "10-06 22:00"
    )
    regain = (
        "You have reached your specified API usage limits. You will regain access on 2026-11-01"
    )
    yield row(claude, f"{regain} at 00:00 UTC.", "11-01 00:00", status=400)
    yield row(
        claude, "You've hit your limit · resets 9am (Europe/Berlin)", "10-07 07:00", limit="x"
    )
    for when, meant in (
        *(("in 04:30:00", "10-06 16:30"), ("at 17h30", "10-06 15:30")),
        *(("in 3d 4h 5m", "10-09 16:05"), ("1st Nov 2026 00:00 UTC", "11-01 00:00")),
        *(("at 2pm IST", "limit"), ("in half an hour", "10-06 12:30")),
        *(("in three hours", "10-06 15:00"), ("in PT3H", "10-06 15:00")),
    ):
        yield row(claude_plain, f"Usage limit reached. Resets {when}.", meant)
    yield row(claude_plain, "Usage limit reached. Time until reset: 04:30:00", "10-06 16:30")
    yield row(claude_plain, "Usage limit reached; access returns in 6 hours", "10-06 18:00")
    yield row(claude_plain, "You are out of tokens for today. Come back in 9 hours.", "10-06 21:00")
    yield row(claude_plain, "You have used 100% of your weekly limit", "limit")
    yield row(claude_plain, "You have used 90% of your weekly limit", "crash")
    yield row(claude_plain, "You've used all your premium requests for this month", "limit")
    yield row(claude_plain, "Your usage allowance is exhausted", "limit")
    yield row(claude_plain, "Your subscription's five-hour limit has been reached", "limit")
    yield row(claude_plain, "Your 7 day limit was hit", "limit")
    yield row(claude_plain, "429: slow down", "rate_limit")
    body = json.dumps({"type": "error", "error": {"type": "billing_error", "message": "no"}})
    yield row(claude_plain, body, "billing")
    yield row(claude_plain, '{"status":"denied","message":"no seat: please log in"}', "auth")
    yield row(copilot, "Execution failed: Error: CAPIError: 400 bad request body", "bad_request")
    yield row(copilot, "No capacity available for this model", "overloaded")
    yield row(claude, "The usage limit has been reached", "limit")
    yield row(claude, "API Error: Rate limit reached", "rate_limit")
    passing = (
        "API Error: Request rejected (429) · This request would exceed your account's rate limit."
    )
    overage = {"rateLimitType": "five_hour", "resetsAt": 1791295200, "isUsingOverage": True}
    yield row(claude, passing, "rate_limit", **overage)
    yield row(claude, passing, "10-06 14:00", **{**overage, "isUsingOverage": False})
    yield row(claude_plain, "You've hit your limit · resets 2pm (Europe/Lisbon)", "10-06 13:00")
    yield row(claude_plain, "corp-wrapper: this host is not enrolled, ask IT", "crash")

    for status, meant in (
        *((400, "bad_request"), (401, "auth"), (403, "auth"), (413, "prompt_too_long")),
        *((429, "rate_limit"), (500, "server"), (503, "overloaded"), (529, "overloaded")),
    ):
        yield row(claude, f"API Error: no ({status})", meant, status=status)
    for text, meant in (
        ("Not logged in · Please run /login", "auth"),
        ("API Error: fetch failed (ETIMEDOUT)", "connection"),
        *(("Request timed out", "connection"), ("Something new", "unknown")),
    ):
        yield row(claude, text, meant, status=None)

    for words, meant in (
        *(("401 Unauthorized", "auth"), ("402 Payment Required", "billing")),
        *(("403 Forbidden", "auth"), ("404 Not Found", "bad_request")),
        *(("413 Payload Too Large", "prompt_too_long"), ("503 Unavailable", "overloaded")),
        ("529 <unknown status code>", "overloaded"),
    ):
        yield row(codex, f"unexpected status {words}: no, url: http://127.0.0.1:1/v1", meant)
    for text, meant in (
        ("exceeded retry limit, last status: 429 Too Many Requests", "rate_limit"),
        ("rate limit exceeded: Rate limit reached. Please try again in 3s.", "rate_limit"),
        ("Rate limit reached for gpt. Please try again in 3s.", "rate_limit"),
        ("Selected model is at capacity. Please try a different model.", "overloaded"),
        ("We’re currently experiencing high demand, which may cause temporary errors.", "server"),
        ("Quota exceeded. Check your plan and billing details.", "billing"),
        ("To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com", "billing"),
        ("Codex ran out of room in the model's context window. Start anew", "prompt_too_long"),
        ("stream disconnected before completion: error sending request", "connection"),
        ("stream disconnected before completion: idle timeout waiting for SSE", "connection"),
        ("Connection failed: error sending request", "connection"),
        ("Missing environment variable: `MOCK_KEY`.", "auth"),
        ('{"error": {"message": "bad prompt"}}', "bad_request"),
        ('{"error": "bad prompt"}', "bad_request"),
        ("You’ve hit your usage limit.", "limit"),
        *(("something else", "unknown"), ("something long " * 500, "unknown")),
    ):
        yield row(codex, text, meant)
    met = "You've hit your usage limit."
    yield row(codex, f"{met} Try again in 5 days 22 hours 11 minutes.", "10-12 10:11")
    yield row(codex, f"{met} Try again at Oct 9th, 2026 3:04 PM.", "10-09 13:04")
    yield row(codex, f"{met} Try again at 7:12 PM.", "10-06 17:12")
    yield row(codex, f"{met} Try again at 10 de nov. de 2026, 11:52.", "11-10 10:52")
    yield row(codex, f"{met} Try again at 10. Okt. 2026, 11:52.", "10-10 09:52")
    yield row(codex, f"{met} Try again at 10 juil. 2027 11:52.", "07-10 09:52")
    yield row(codex, f"{met} Try again at 2026年10月10日 11:52.", "10-10 09:52")
    for date in (
        *("9 oct. 2026 à 15:04", "9. Oktober 2026 um 15:04 Uhr", "9 ottobre 2026 alle ore 15:04"),
        *("9 de out. de 2026 às 15:04", "9 de octubre de 2026, 3:04 p. m."),
        *(
            "9 oct. 2026 à 15 h 04",
            "2026年10月9日 下午3:04",
            "2026年10月9日 午後3:04",
            "10月9日 15時04分",
        ),
        *("2026. 10. 9. 오후 3:04", "9 окт. 2026 г., 15:04", "9 октября 2026 г. в 15:04"),
        *("9 paź 2026, 15:04", "9 okt. 2026 kl. 15:04", "9 Eki 2026 15:04", "2026/10/9 15:04"),
        "09.10.2026, 15:04",
    ):
        yield row(codex, f"{met} Try again at {date}.", "10-09 13:04")
    yield row(codex, f"{met} Try again later.", "limit")
    yield row(codex, "Rate limit reached for m on requests per day (RPD): Limit 200.", "limit")
    yield row(codex, "Spend limit reached for this workspace.", "limit")
    yield row(codex, "The monthly budget of this workspace is used up.", "billing")
    yield row(codex, "Your credits have run out.", "billing")
    yield row(codex, "unexpected status 403 Forbidden: the balance is insufficient", "billing")
    used = {"type": "usage_limit_reached", "message": "The usage limit has been reached"}
    body = json.dumps({"error": {**used, "resets_in_seconds": 7200}})
    yield row(codex, body, "10-06 14:00")
    body = json.dumps({"error": {**used, "resets_at": 1791309960}})
    yield row(codex, f"unexpected status 429 Too Many Requests: {body}", "10-06 18:06")
    body = json.dumps({"error": {"type": "authentication_error", "message": "bad token"}})
    yield row(codex, body, "auth")
    yield row(codex, '{"detail":"You have reached your weekly limit."}', "limit")
    yield row(codex, f"stream disconnected before completion: {met}", "limit")
    yield row(codex, "Your workspace is out of credits. Ask an owner to refill.", "billing")
    yield row(codex, "You're out of credits. Add more to continue.", "billing")
    yield row(codex, "You hit your spend cap set by the owner of your workspace.", "billing")
    yield row(codex, "Your workspace has reached its monthly spend cap.", "billing")
    yield row(
        codex, "You have reached your usage limit. Increase your limits to continue.", "limit"
    )
    yield row(codex, "You've reached your workspace credit limit.", "limit")
    out = "You're out of Codex messages. Your rate limit resets on Oct 8, 2:00 PM."
    yield row(codex, out, "10-08 12:00")
    tpm = "Rate limit reached for m on tokens per min (TPM): Limit 30000. Please try again in 4.2s."
    yield row(codex, tpm, "rate_limit")

    for kind, more, meant in (
        *(("authentication", 401, "auth"), ("authorization", 403, "auth"), ("policy", "", "auth")),
        *(("context_limit", "", "prompt_too_long"), ("rate_limit", 429, "rate_limit")),
        *(("rate_limit", "rate_limited", "rate_limit"), ("quota", "quota_exceeded", "limit")),
        *(("rate_limit", "user_weekly_rate_limited", "limit"), ("query", 500, "server")),
        *(("quota", "billing_not_configured", "billing"), ("query", 503, "overloaded")),
        *(("query", 402, "billing"), ("query", 400, "bad_request"), ("", "", "unknown")),
    ):
        name = "statusCode" if isinstance(more, int) else "errorCode"
        yield row(copilot, "", meant, errorType=kind, **({name: more} if more else {}))
    for text, meant in (
        ("Could not connect to local model provider", "connection"),
        ("Failed to finalize chat-completions stream", "connection"),
        ("No GitHub OAuth token or key provided", "auth"),
        ("You've reached your monthly quota", "limit"),
        ("Request exceeds the prompt budget", "prompt_too_long"),
        ("what is this", "unknown"),
    ):
        yield row(copilot, text, meant, errorType="query")
    exceeded = "You have exceeded your Copilot usage limits. Try again in 2 hours."
    yield row(copilot, exceeded, "10-06 14:00", errorType="quota")
    hit = "Sorry, you have hit a rate limit."
    yield row(
        copilot, f"{hit} Please try again in 51 hours.", "10-08 15:00", errorType="rate_limit"
    )
    yield row(copilot, f"{hit} Please try again in 2 hours.", "10-06 14:00", errorType="rate_limit")
    weekly = "You've reached your weekly rate limit. Please wait for your limit to reset"
    weekly_on = f"{weekly} on October 20, 2026 at 2:00 AM or switch to auto model."
    yield row(copilot, weekly_on, "10-20 00:00", errorType="rate_limit", statusCode=429)
    yield row(copilot, f"{weekly}.", "limit", errorType="rate_limit", statusCode=429)
    own = {"errorType": "rate_limit", "errorCode": "user_weekly_rate_limited"}
    yield row(copilot, "You are rate limited.", "limit", **own)
    yield row(copilot, "402 You have no quota", "limit", errorType="quota", statusCode=402)
    own = {"errorType": "quota", "errorCode": "quota_exceeded"}
    yield row(copilot, "402 No", "limit", **own, statusCode=402)
    yield row(copilot, "Quota exceeded. Upgrade your plan.", "limit", errorType="query")
    monthly = "You have exceeded your monthly limit for premium requests."
    yield row(copilot, monthly, "limit", errorType="query")
    seconds = "You've hit your global rate limit. Please wait 6 seconds for your limit to reset."
    yield row(copilot, seconds, "rate_limit", errorType="rate_limit")
    back = "You've used up your session budget; it comes back in 3h 20m."
    yield row(copilot, back, "10-06 15:20", errorType="rate_limit")

    for number, exit_code, meant in (
        *((400, 144, "bad_request"), (401, 145, "auth"), (402, 146, "billing"), (403, 147, "auth")),
        *((404, 148, "bad_request"), (413, 157, "prompt_too_long"), (500, 244, "server")),
        (503, 247, "overloaded"),
    ):
        text = f'[API Error: {{"error":{{"code":{number},"message":"no","status":"X"}}}}]'
        yield row(gemini_plain, text, meant, exit_code=exit_code)
    for text, exit_code, meant in (
        ("API key not valid. Please pass a valid API key.", 144, "auth"),
        ("The input token count (2) exceeds the maximum", 144, "prompt_too_long"),
    ):
        text = f'[API Error: {{"error":{{"code":400,"message":"{text}","status":"X"}}}}]'
        yield row(gemini_plain, text, meant, exit_code=exit_code)
    advice = "\nPlease wait and try again later. To increase your limits, request a quota increase"
    for text, exit_code, meant in (
        *(("Internal error", 244, "server"), ("The model is busy", 247, "overloaded")),
        ("exception TypeError: fetch failed sending request", 1, "connection"),
        (f"mock says 429{advice}", 173, "rate_limit"),
        ("Quota exceeded.\nSuggested retry after 3600s.", 173, "10-06 13:00"),
        ("Your quota will reset after 1h30m.", 173, "10-06 13:30"),
        ("You have exhausted your daily quota on this model.", 173, "limit"),
        ("You exceeded your current quota, limit: 0.5", 173, "limit"),
        # A limit of zero never resets, even with a time.
        ("You exceeded your current quota, limit: 0", 173, "billing"),
        (
            "You exceeded your current quota, limit: 0, model: x\nPlease retry in 4s.",
            173,
            "billing",
        ),
        ("Quota exceeded. Please retry in 1.2.3s.", 173, "limit"),
        (f"Quota exceeded. Please retry in {'9' * 400}s.", 173, "limit"),
        ("Quota exceeded. Please retry in 99999999999999999d.", 173, "limit"),
    ):
        yield row(gemini_plain, f"[API Error: {text}]{advice}", meant, exit_code=exit_code)
    for text, exit_code, meant in (
        ("Reached max session turns for this session.", 53, "max_turns"),
        ("Context window will overflow (estimated: 9)", 1, "prompt_too_long"),
        ("what is this", 1, "unknown"),
    ):
        yield row(gemini_plain, text, meant, exit_code=exit_code)
    capacity = "You have exhausted your capacity on this model. Your quota will reset after"
    yield row(gemini, f"{capacity} 15h35m53s.", "10-07 03:35")
    yield row(gemini, "You have exhausted your daily quota on this model.", "limit")
    yield row(gemini, "Individual quota reached. Resets in 157h.", "10-13 01:00")
    until = "Usage limit reached for gemini-3-pro. Access resets at"
    yield row(gemini, f"{until} 10:57 PM GMT-3.", "10-07 01:57")
    yield row(gemini, f"{until} 3:15 PM PDT.", "10-06 22:15")
    exceeded = "You exceeded your current quota.\nPlease retry in 41.9s."
    a_day = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
    yield row(gemini, exceeded, "10-07 07:00", quota=a_day)
    yield row(gemini, exceeded, "10-06 12:00", quota="GenerateRequestsPerMinutePerProject")
    metric = "generativelanguage.googleapis.com/generate_requests_per_model_per_day"
    yield row(gemini, exceeded, "10-07 07:00", quotaMetric=metric)
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "22000s"}
    yield row(gemini, "Resource has been exhausted.", "10-06 18:06", details=[delay])
    end = {"reason": "QUOTA_EXHAUSTED", "metadata": {"quotaResetTimeStamp": "2026-10-07T03:00:00Z"}}
    yield row(gemini, "No capacity", "10-07 03:00", details=[end])
    yield row(gemini, "This API method requires billing to be enabled.", "billing", exit_code=147)
    yield row(gemini, "You exceeded your current quota, limit: 0", "billing", quota=a_day)
    yield row(gemini, "Resource has been exhausted (e.g. check quota).", "rate_limit")

    weekly = "Weekly usage limit reached. It will reset in 5 days 10 hours."
    yield row(opencode, weekly, "10-11 22:00")
    after = {"responseHeaders": {"retry-after": "22000"}}
    yield row(opencode, "Too many requests", "10-06 18:06", **after)
    for name, value in (
        *(("Retry-After", "22000"), ("retry-after", "22000.4"), ("retry-after-ms", "22000000")),
        *(("x-ratelimit-reset", "1791309960000"), ("x-ratelimit-reset", "1791309960")),
        ("retry-after", "Tue, 06 Oct 2026 18:06:40 GMT"),
    ):
        yield row(opencode, "Too many requests", "10-06 18:06", responseHeaders={name: value})
    yield row(opencode, "Slow", "rate_limit", responseHeaders={"retry-after": "1.5"})
    free = (
        '{"type":"error","error":{"type":"FreeUsageLimitError","message":"Rate limit exceeded."}}'
    )
    yield row(opencode, "Too Many Requests", "limit", responseBody=free)
    credit = '{"type":"error","error":{"type":"CreditsError","message":"Manage your billing"}}'
    yield row(opencode, "Unauthorized", "billing", responseBody=credit, statusCode=401)
    yield row(opencode, "Rate limit exceeded: free-models-per-day.", "limit")
    yield row(opencode, "Rate limit exceeded: free-models-per-min.", "rate_limit")
    yield row(opencode, "Free usage exceeded, subscribe to Go", "limit")
    yield row(opencode, "Sorry", "limit", name="FreeUsageLimitError")
    yield row(opencode, "Insufficient balance", "billing", statusCode=401)

    for text, meant in (
        *(("401 bad key", "auth"), ("429 slow down", "rate_limit")),
        *(("400 context length", "prompt_too_long"), ("Connection error.", "connection")),
        ("429 You exceeded your current quota, please check your plan and billing.", "limit"),
        # Advice to log in with another account does not make it an error of the login.
        ("Quota exhausted: usage limit reached. Switch to another API key.", "limit"),
    ):
        yield row(acp, text, meant)
    for text, number, data, meant in (
        *(("Authentication required", -32000, None, "auth"), ("busy", 503, None, "overloaded")),
        *(("Internal error", -32603, None, "unknown"), ("no", -32602, None, "bad_request")),
        ("Internal error", -32603, {"errorKind": "rate_limit"}, "rate_limit"),
        ("Internal error", -32603, {"errorKind": "server_error"}, "server"),
        ("Internal error", -32603, "fetch failed: ECONNREFUSED", "connection"),
        ('{"error": {"code": 429}}', 429, None, "rate_limit"),
    ):
        yield row(acp_plain, text, meant, code=number, data=data)
    for text, meant in (
        *(("Error: 429 Too many requests", "rate_limit"), ("API Error: 401 Unauthorized", "auth")),
        ("⚠ Error: the model is overloaded", "overloaded"),
        ("request failed: connection refused", "connection"),
        ("Error: All connection attempts failed", "connection"),
        *(("500 Internal Server Error", "server"), ("", "unknown"), (" \n", "unknown")),
        ("Error: You have exceeded your current quota", "limit"),
        ("The error was in app.py.", "none"),
    ):
        yield row(acp_turn, text, meant)
    limit = "You've hit your session limit · resets 3pm (Europe/Berlin)"
    yield row(acp, limit, "10-06 13:00")
    yield row(acp, "Provider error: 403 insufficient balance", "billing")
    yield row(acp, "Sorry", "10-06 13:00", status=429, resetsAt="2026-10-06T13:00:00Z")
    yield row(acp, "Sorry", "limit", reason="insufficient_quota")
    for reason in ("error", "refusal", "end_turn"):
        yield row(acp_turn, limit, "10-06 13:00", reason=reason)
    for reason, meant in (
        *(("max_tokens", "unknown"), ("max_turn_requests", "max_turns"), ("refusal", "unknown")),
        *(("cancelled", "aborted"), ("tomorrow", "unknown")),
    ):
        yield row(acp_turn, "Over.", meant, reason=reason)
    yield row(acp_turn, "Provider error: 403 insufficient balance", "billing", reason="error")
    yield row(acp_turn, "I refuse.", "unknown", reason="refusal")
    prose = "I read the page. It tells users that they have reached their limit and when it resets."
    yield row(acp_turn, prose, "none")
    yield row(acp_turn, "Error handling looks right. <APPROVED>ok</APPROVED>", "none")


@pytest.mark.parametrize("row", [*rows()], ids=lambda row: row.text)
def test_messages(row: Row) -> None:
    """Every message that was reported means the same, whichever program prints it."""
    error = row.made()
    match error:
        case QuotaExceeded(resets_at=datetime() as at):
            meant = f"{at.astimezone(UTC):%m-%d %H:%M}"
        case QuotaExceeded():
            meant = "limit"
        case AgentFailed(reason=reason):
            meant = reason
        case _:
            meant = str(error).lower()
    assert row.meant == meant
    program = row.text.partition(":")[0]
    if program in ("codex", "copilot"):
        hint = (error and error.hint) or ""
        assert (meant == "auth") == (f"{program} login" in hint)


WARNING = "WARNING: proceeding, even though idle timeout"


@pytest.mark.parametrize(
    ("kind", "exit_code", "stderr", "expected"),
    [
        (
            CodexSession,
            1,
            f"{WARNING}\nError: thread/resume failed: no rollout found",
            "bad_request",
        ),
        (CodexSession, 1, f"{WARNING}\nError loading config.toml: invalid", "bad_request"),
        (CodexSession, 2, f"{WARNING}\nerror: unexpected argument '--new' found", "bad_request"),
        (CodexSession, 1, f"{WARNING}\nError: Not logged in\n", "auth"),
        (CodexSession, 101, f"{WARNING}\nthread 'main' panicked at lib.rs", "crash"),
        (CodexSession, -9, f"{WARNING}\nError: Not logged in", "crash"),
        (CodexSession, 0, WARNING, "crash"),
        (GeminiSession, 41, "Please set an Auth method", "auth"),
        (GeminiSession, 42, "Error resuming session: Invalid session identifier", "bad_request"),
        (GeminiSession, 42, 'Session ID "x" already exists.', "bad_request"),
        (GeminiSession, 52, "Invalid configuration", "bad_request"),
        (GeminiSession, 130, "", "aborted"),
        *((GeminiSession, 0, "", "crash"), (GeminiSession, 1, "boom", "crash")),
        (GeminiSession, -9, "", "crash"),
    ],
)
def test_ended_early(kind: Any, exit_code: int, stderr: str, expected: str) -> None:
    """Without a result the exit code and the last error decide, not the warnings before it."""
    end = {"exit_code": exit_code, "stderr_tail": stderr, "duration": 1.0, "now": NOW.timestamp()}
    error = checked(*kind(zone=lambda: ROME).end(**end))
    assert isinstance(error, AgentFailed)
    assert expected == error.reason
    assert "WARNING" not in str(error)
    assert kind is GeminiSession or (expected in ("bad_request", "auth")) == (
        error.hint is not None
    )


HOURS, SECONDS = NOW + timedelta(hours=3), NOW + timedelta(seconds=40)


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (Refusal(message="usage limit reached", kinds=("billing_error",), status=429), "billing"),
        (Refusal(message="Overloaded", kinds=("x", "authentication_error")), "auth"),
        (Refusal(message="Slow down", kinds=("rate_limit",), resets_at=HOURS), "QuotaExceeded"),
        (Refusal(message="Slow down", status=429, resets_at=HOURS), "QuotaExceeded"),
        (Refusal(message="No route", resets_at=HOURS), "unknown"),
        (Refusal(message="usage limit reached", resets_at=SECONDS), "rate_limit"),
        (Refusal(message="x", kinds=("usage_limit",), resets_at=SECONDS), "QuotaExceeded"),
        (Refusal(message="usage limit reached", kinds=("rate_limit",)), "QuotaExceeded"),
        (Refusal(message="insufficient balance", status=401), "billing"),
        (Refusal(message="Connection lost", kinds=("rate_limit",), status=500), "rate_limit"),
        (Refusal(message="x", kinds=("invalid_request",), status=429), "bad_request"),
        (Refusal(message="x", status=503), "overloaded"),
        (Refusal(message="x", status=502), "server"),
        (Refusal(message="x", status=418), "bad_request"),
        (Refusal(message="x"), "unknown"),
    ],
)
def test_the_order(refusal: Refusal, expected: str) -> None:
    """Types come first, then a time, then words, and the status last."""
    error = judge(refusal, NO_WORDS, now=NOW, zone=UTC)
    assert expected == (error.reason if isinstance(error, AgentFailed) else type(error).__name__)


SPENT = "You've hit your usage limit. Try again in 3 hours."


@pytest.mark.parametrize(
    ("session", "lines"),
    [
        (CodexSession, [{"type": "error", "message": SPENT}]),
        (CodexSession, [{"type": "item.completed", "item": {"type": "error", "message": SPENT}}]),
        (
            CodexSession,
            [{"type": "item.completed", "item": {"type": "agent_message", "text": SPENT}}],
        ),
        (GeminiSession, [{"type": "error", "message": f"[API Error: {SPENT}]"}]),
        (GeminiSession, [{"type": "message", "role": "assistant", "content": SPENT}]),
        (
            OpenCodeSession,
            [{"type": "text", "part": {"type": "text", "text": SPENT, "time": {"end": 1}}}],
        ),
    ],
)
def test_a_session_that_ended_after_a_limit(session: Any, lines: list[Any]) -> None:
    """What a program reported last is the reason for its end without a result."""
    error = ended(session(zone=lambda: ROME), *lines)
    assert isinstance(error, QuotaExceeded)
    assert NOW + timedelta(hours=3) == error.resets_at


def nested(error: Any, levels: int) -> str:
    text = json.dumps({"error": error})
    for _ in range(levels):
        text = json.dumps({"error": {"message": text, "code": 429, "status": "Too Many"}})
    return text


ERROR = {"code": 429, "message": "Slow down", "status": "RESOURCE_EXHAUSTED"}


@pytest.mark.parametrize(
    "message",
    [
        *(nested(ERROR, levels) for levels in range(6)),
        f"[{nested(ERROR, 0)}]",
        f"got status: 429. {nested(ERROR, 1)} (request 7)",
        json.dumps(ERROR),
        "Slow down",
    ],
)
def test_bodies(message: str) -> None:
    """The message of an API is shown without the JSON around it, whatever its depth."""
    body = body_in(message)
    assert "Slow down" == body.message
    assert message == "Slow down" or (429, "RESOURCE_EXHAUSTED") == (body.status, body.kinds[0])


@pytest.mark.parametrize("text", ['config {"a": 1} is wrong', "{", "{}", '{"error": null}', "[]"])
def test_json_without_an_error(text: str) -> None:
    """A message with other JSON stays as it is."""
    assert (text, ()) == (body_in(text).message, body_in(text).errors)


def test_times() -> None:
    """A rate limit has the time of the next try, a usage limit that of its end."""
    rate = judge(Refusal(message="Too many requests, retry in 7s"), NO_WORDS, now=NOW, zone=UTC)
    assert isinstance(rate, AgentFailed)
    assert NOW + timedelta(seconds=7) == rate.retry_at
    other = judge(Refusal(message="Overloaded, retry in 7s"), NO_WORDS, now=NOW, zone=UTC)
    assert isinstance(other, AgentFailed)
    assert other.retry_at is None
    usage = judge(Refusal(message="5-hour limit reached"), NO_WORDS, now=NOW, zone=UTC)
    assert isinstance(usage, QuotaExceeded)
    assert usage.resets_at is None


def test_a_program_that_ended() -> None:
    """Plain text of a program decides, unless a signal ended it."""

    def meant(said: str, exit_code: int) -> str:
        error = judge_ending(
            NO_WORDS, program="x", exit_code=exit_code, said=said, now=NOW, zone=UTC
        )
        return error.reason if isinstance(error, AgentFailed) else type(error).__name__

    assert "QuotaExceeded" == meant("debug\nYou've hit your limit", 0)
    assert "auth" == meant("Please log in first", 1)
    assert "crash" == meant("Please log in first", -9)
    assert "crash" == meant("Segmentation fault", 139)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("You've hit your limit · resets 3pm", "QuotaExceeded"),
        ("**Limit reached** · resets 10pm (UTC)", "QuotaExceeded"),
        ("⚠️ You've reached your daily limit. It resets at midnight.", "QuotaExceeded"),
        ("Sorry, you've hit a rate limit that is strict. Try again in 2 hours.", "QuotaExceeded"),
        ("Rate limit exceeded. Please try again in 20 seconds.", "rate_limit"),
        ("Too many requests", "rate_limit"),
        ("Claude usage limit reached\nPlease try again in 3 hours", "QuotaExceeded"),
        ("5-hour limit reached\nresets 3pm", "QuotaExceeded"),
        ("API Error: 529 Overloaded", "overloaded"),
        ("API Error: 429 slow down, try again in 3 hours", "QuotaExceeded"),
        ("API errors 429 and 529 are retried now.", "none"),
        ("Done.", "none"),
        ("The log says: You've hit your limit · resets 3pm", "none"),
        ("I hit the limit of 200 lines in README.md and split it.", "none"),
        ("We exceeded the quota of open files, and raised it.", "none"),
        ("Quota exceeded is now answered with 429 and Retry-After: 3600.", "none"),
        ("Usage limit reached messages are translated, as in 'resets 3pm'.", "none"),
        ("Daily limit reached page: finished; try again in 2 hours is shown.", "none"),
        ("Session limit reached: the oldest one is closed. <DONE>limiter</DONE>", "none"),
        ("<APPROVED>You've hit your limit is shown as asked</APPROVED>", "none"),
        ("Rate limit exceeded. The tests expect that.", "none"),
    ],
)
def test_answers(answer: str, expected: str) -> None:
    """Only an answer that consists of a limit is one, not a sentence about limits."""
    error = judge_answer(answer, NO_WORDS, now=NOW, zone=UTC)
    reason = error.reason if isinstance(error, AgentFailed) else type(error).__name__
    assert expected == ("none" if error is None else reason)


def test_names_are_lower_case() -> None:
    """Names are compared in lower case."""
    assert set(KINDS) == {name.lower() for name in KINDS}
