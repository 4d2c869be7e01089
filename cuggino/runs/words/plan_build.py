"""Sentences of the plan/build loop, as Lopen writes them (LOP-041 to LOP-099)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, assert_never

from cuggino import events as ev
from cuggino.domain import cost_of
from cuggino.runs.words.amounts import full_duration
from cuggino.runs.words.base import Tone, Words

_PHASE_RULE = "-" * 12
_ITERATION_RULE = "-" * 30
_PHASES: Final[dict[ev.PlanBuildPhase, str]] = {
    "plan": "PLAN",
    "build": "BUILD",
    "verify": "VERIFY",
}
NOTHING_TO_DO = "lopen.loop.done exists; nothing to do (use --fresh to remove it)"
"""The message about a done file of an earlier run (LOP-062)."""


def plan_build_words(event: ev.PlanBuildEvent) -> Words | None:
    """Return the sentence of an event of the plan/build loop; None for an unknown one."""
    match event:
        case ev.PlanBuildPhaseStarted():
            return _block(_PHASE_RULE, f"Mode: {_PHASES[event.phase]}")
        case ev.PlanBuildIterationEnded():  # planning is iteration 1
            return _block(_ITERATION_RULE, f"Completed iteration {event.iteration}")
        case ev.PlanBuildSessionEnded():
            return _session_ended(event)
        case ev.PlanBuildSessionRetry(attempt=k, max_retries=limit, message=message):
            again = f"Session error ({k}/{limit}), starting new session..."
            retry = Words("", again, "warning")
            return Words("", message, "error", more=(retry,)) if message else retry
        case ev.JobsCounted():
            following = f"Next: {event.next_job}"
            more = (Words("", following, "info", "normal"),) if event.next_job else ()
            return Words("", jobs_text(event), "info", "normal", more)
        case ev.SubAgentStarted():
            what = f"{event.name}: {event.description}" if event.description else event.name
            return Words("", f"[sub-agent] {what}", "tool", "normal")
        case ev.BuildVerified():
            return _verdict("Build", "", event)
        case ev.JobVerified(job_id=name, description=description):
            return _verdict(
                "Job", f": {name}: {description}" if description else f": {name}", event
            )
        case ev.JobBlocked(failures=failures):
            times = "once" if failures == 1 else f"{failures} times"
            what = f"Job blocked: {event.job_id}: {event.description}"
            return Words("", f"{what} (its verification failed {times})", "warning")
        case ev.VerificationEnded(findings=findings):
            count = f"{len(findings)} finding(s) for the next session"
            text = f"[verify] {count if findings else 'no findings'}"
            return Words("", text, "quiet", "verbose")
        case ev.PlanBuildEnded():
            totals = Words("", overall(event), "info")
            end = Words("", *ending(event))
            if event.reason == "complete" and event.iterations == 0:  # started with building
                return Words("", NOTHING_TO_DO, "caution", more=(end, totals))
            return Words("", end.text, end.tone, more=(totals,))
        case _:
            return None


def _block(rule: str, text: str) -> Words:
    return Words("", f"{rule}\n{text}\n{rule}", "heading")


def _session_ended(event: ev.PlanBuildSessionEnded) -> Words | None:
    """Return the cost; the following events report errors."""
    cost = "" if event.cost_usd is None else f"cost={cost_of(event, digits=4)}, "
    text = f"Session: {cost}duration={full_duration(event.duration)}"
    totals = Words("", text, "info", "normal")
    match event.outcome:
        case "completed":
            return totals
        case "max_turns":
            return Words("", "Session ended: turn limit reached", "warning", more=(totals,))
        case "budget" if event.message:
            return Words("", f"Session ended: {event.message}", "warning", more=(totals,))
        case _:
            return None


def jobs_text(event: ev.JobsCounted | ev.PlanBuildEnded) -> str:
    """Return the number of jobs; open ones include blocked ones."""
    of_them = f" ({event.blocked} blocked)" if event.blocked else ""
    return f"Jobs: {event.open + event.blocked} open{of_them}, {event.done} done"


def _verdict(what: str, name: str, event: ev.BuildVerified | ev.JobVerified) -> Words:
    if event.passed:
        return Words("", f"{what} verified{name}", "success", "normal")
    return Words("", f"{what} verification failed{name}{_list(event.issues)}", "warning")


def _list(issues: Iterable[str]) -> str:
    return "".join("\n  - " + issue.strip().replace("\n", "\n    ") for issue in issues)


def ending(event: ev.PlanBuildEnded) -> tuple[str, Tone]:
    """Return why the loop ended."""
    why = f": {event.error}" if event.error else ""
    match event.reason:
        case "complete" if event.open or event.blocked:
            return "Loop ended by lopen.loop.done: not all jobs are done", "caution"
        case "complete":
            return "Loop complete! All jobs finished.", "success"
        case "planned":
            return "Planning complete.", "success"
        case "blocked":
            return f"Loop stopped: {event.error or 'every open job is blocked'}", "error"
        case "max_iterations":
            return "Loop stopped: max iterations reached", "caution"
        case "quota_exceeded":
            return f"Loop stopped: usage limit reached{why}", "error"
        case "budget_exceeded":
            return f"Loop stopped: budget exceeded{why}", "error"
        case "max_retries_exceeded":
            return f"Loop stopped: too many errors in a row{why}", "error"
        case "stalled":
            return f"Loop stopped: no progress{why}", "error"
        case "interrupted":
            return "Loop cancelled by user.", "warning"
        case "failed":
            return f"Loop stopped: {event.error or 'Unknown error'}", "error"
        case _ as never:
            assert_never(never)


def overall(event: ev.PlanBuildEnded) -> str:
    """Return the totals of the run."""
    totals = f"cost={cost_of(event, digits=4)}, duration={full_duration(event.duration)}"
    return f"Overall: {event.iterations} iteration(s). {jobs_text(event)}. {totals}"
