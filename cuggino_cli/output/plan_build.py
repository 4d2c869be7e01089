"""What the plan/build loop says of its course, line by line (LOP-053, LOP-080 to LOP-099)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, assert_never

from cuggino.events import (
    BuildVerified,
    CommitSeen,
    DoneFileRejected,
    FileTouched,
    JobBlocked,
    JobsCounted,
    JobVerified,
    PlanBuildEnded,
    PlanBuildEvent,
    PlanBuildIterationEnded,
    PlanBuildPhase,
    PlanBuildPhaseStarted,
    PlanBuildSessionEnded,
    PlanBuildSessionRetry,
    PlanBuildWarning,
    SubAgentEnded,
    SubAgentStarted,
    VerificationEnded,
)
from cuggino_cli.output.durations import full_duration
from cuggino_cli.output.loop_text import (
    LoopPhase,
    build_verified,
    iteration_complete,
    jobs_line,
    phase_header,
)
from cuggino_cli.output.shown import Shown
from cuggino_cli.output.theme import Fragment, Label
from cuggino_cli.output.verbosity import Verbosity

Weight = Literal["course", "info", "debug", "warning", "error"]
"""`course`: phases, iterations, the end, which are always shown. Warnings and errors go to standard
error."""

_LEAST: dict[Weight, Verbosity] = {"info": Verbosity.NORMAL, "debug": Verbosity.VERBOSE}
"""From which verbosity on it is shown; what is not here is shown always."""

_PHASES: dict[PlanBuildPhase, LoopPhase] = {"plan": "PLAN", "build": "BUILD", "verify": "VERIFY"}


class Said(NamedTuple):
    """A line, or a block of lines, how much it weighs, and its look."""

    weight: Weight
    label: Label
    text: str

    @property
    def fragments(self) -> list[Fragment]:
        """The text as a person sees it."""
        return [Fragment(self.label, self.text)]


def plan_build_shown(event: PlanBuildEvent) -> Shown | None:
    """The lines of the event as one piece; None for nothing."""
    lines = list(plan_build_lines(event))
    if not lines:
        return None
    fragments: list[Fragment] = []
    for line in lines:
        fragments += ([Fragment("plain", "\n")] if fragments else []) + line.fragments
    return Shown(min(_LEAST.get(line.weight, Verbosity.QUIET) for line in lines), fragments)


def plan_build_lines(event: PlanBuildEvent) -> Iterator[Said]:
    """What the event says, in order."""
    match event:
        case PlanBuildPhaseStarted(phase=phase):
            yield Said("course", "round", phase_header(_PHASES[phase]).removesuffix("\n"))
        case PlanBuildIterationEnded(iteration=number):
            yield Said("course", "round", iteration_complete(number).removesuffix("\n"))
        case PlanBuildSessionEnded():
            yield from _session_ended(event)
        case PlanBuildSessionRetry(attempt=k, max_retries=limit, message=message):
            if message:
                yield Said("error", "error", message)
            text = f"Session error ({k}/{limit}), starting new session..."
            yield Said("warning", "warning", text)
        case PlanBuildWarning(message=message):
            yield Said("warning", "warning", message)
        case JobsCounted():
            yield Said("info", "info", _counted(event.open, event.blocked, event.done))
            if event.next_job:
                yield Said("info", "info", f"Next: {event.next_job}")
        case SubAgentStarted(name=name, description=description):
            what = f"{name}: {description}" if description else name
            yield Said("info", "tool", f"[sub-agent] {what}")
        case SubAgentEnded():
            yield Said("info", "tool", "[sub-agent] done")
        case FileTouched(path=path):
            yield Said("info", "tool", f"[file] {path}")
        case CommitSeen(commit_hash=commit, subject=subject):
            yield Said("info", "commit", f"[commit] {commit} {subject}")
        case BuildVerified(passed=passed, issues=issues):
            yield _verdict(build_verified(succeeds=passed, issues=issues), passed=passed)
        case JobVerified(job_id=name, description=description, passed=passed, issues=issues):
            what = f"{name}: {description}" if description else name
            text = f"Job {'verified' if passed else 'verification failed'}: {what}"
            yield _verdict(text + ("" if passed else _list(issues)), passed=passed)
        case JobBlocked(job_id=name, description=description, failures=failures):
            times = "once" if failures == 1 else f"{failures} times"
            text = f"Job blocked: {name}: {description} (its verification failed {times})"
            yield Said("warning", "warning", text)
        case VerificationEnded(findings=findings):
            found = (
                f"{len(findings)} finding(s) for the next session" if findings else "no findings"
            )
            yield Said("debug", "prose", f"[verify] {found}")
        case DoneFileRejected(reason=reason):
            yield Said("warning", "warning", f"lopen.loop.done removed: {reason}")
        case PlanBuildEnded():
            if event.reason == "complete" and event.iterations == 0:  # it had begun with building
                yield Said("course", "caution", NOTHING_TO_DO)
            yield ending(event)
            yield Said("course", "info", overall(event))
        case _:
            return


NOTHING_TO_DO = "lopen.loop.done exists; nothing to do (use --fresh to remove it)"
"""What is said of a done file that was left by an earlier run (LOP-062)."""


def _session_ended(event: PlanBuildSessionEnded) -> Iterator[Said]:
    """What it took; what went wrong is told by what follows."""
    match event.outcome:
        case "completed":
            pass
        case "max_turns":
            yield Said("warning", "warning", "Session ended: turn limit reached")
        case "budget" if event.message:
            yield Said("warning", "warning", f"Session ended: {event.message}")
        case _:
            return
    cost = "" if event.cost_usd is None else f"cost=${event.cost_usd:.4f}, "
    yield Said("info", "info", f"Session: {cost}duration={full_duration(event.duration)}")


def ending(event: PlanBuildEnded) -> Said:
    """Why the loop is over."""
    why = f": {event.error}" if event.error else ""
    match event.reason:
        case "complete":
            return Said("course", "success", "Loop complete! All jobs finished.")
        case "planned":
            return Said("course", "success", "Planning complete.")
        case "blocked":
            text = event.error or "every open job is blocked"
            return Said("error", "error", f"Loop stopped: {text}")
        case "max_iterations":
            return Said("course", "caution", "Loop stopped: max iterations reached")
        case "quota_exceeded":
            return Said("error", "error", f"Loop stopped: usage limit reached{why}")
        case "budget_exceeded":
            return Said("error", "error", f"Loop stopped: budget exceeded{why}")
        case "max_retries_exceeded":
            return Said("error", "error", f"Loop stopped: too many errors in a row{why}")
        case "stalled":
            return Said("error", "error", f"Loop stopped: no progress{why}")
        case "interrupted":
            return Said("warning", "warning", "Loop cancelled by user.")
        case "failed":
            return Said("error", "error", f"Loop stopped: {event.error or 'Unknown error'}")
        case _ as never:
            assert_never(never)


def overall(event: PlanBuildEnded) -> str:
    """What it came to and what it took."""
    jobs = _counted(event.open, event.blocked, event.done)
    took = f"cost=${event.cost_usd:.4f}, duration={full_duration(event.duration)}"
    return f"Overall: {event.iterations} iteration(s). {jobs}. {took}"


def _counted(still_open: int, blocked: int, done: int) -> str:
    return jobs_line(still_open=still_open + blocked, done=done, blocked=blocked)


def _verdict(text: str, *, passed: bool) -> Said:
    return Said("info", "success", text) if passed else Said("warning", "warning", text)


def _list(issues: Iterable[str]) -> str:
    return "".join("\n  - " + issue.strip().replace("\n", "\n    ") for issue in issues)
