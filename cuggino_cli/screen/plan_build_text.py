"""Lines of the plan/build loop (LOP-053, LOP-080 to LOP-099)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, TypeAlias, assert_never

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
from cuggino.runs import cost_of
from cuggino_cli.screen.fragments import Fragment, Label, Shown, Verbosity
from cuggino_cli.screen.text import full_duration

LoopPhase: TypeAlias = Literal["PLAN", "BUILD", "VERIFY"]

_PHASE_RULE = "-" * 12
_ITERATION_RULE = "-" * 30


def phase_header(phase: LoopPhase) -> str:
    """Return the block before a phase, with its final newline."""
    return _block(_PHASE_RULE, f"Mode: {phase}")


def iteration_complete(number: int) -> str:
    """Return the block after an iteration, with its final newline; planning is iteration 1."""
    return _block(_ITERATION_RULE, f"Completed iteration {number}")


def jobs_line(*, still_open: int, done: int, blocked: int = 0) -> str:
    """Return the number of jobs; open ones include blocked ones."""
    of_them = f" ({blocked} blocked)" if blocked else ""
    return f"Jobs: {still_open} open{of_them}, {done} done"


def build_verified(*, succeeds: bool, issues: Iterable[str] = ()) -> str:
    """Return the result of verifying the build, with a line per issue."""
    if succeeds:
        return "Build verified"
    return "Build verification failed" + _list(issues)


def _block(rule: str, text: str) -> str:
    return f"{rule}\n{text}\n{rule}\n"


Weight = Literal["course", "info", "debug", "warning", "error"]
"""`course`: phases, iterations and the outcome, always shown. Warnings and errors go to standard
error."""

_LEAST: dict[Weight, Verbosity] = {"info": Verbosity.NORMAL, "debug": Verbosity.VERBOSE}
"""The lowest verbosity that shows a weight; the others always show."""

_PHASES: dict[PlanBuildPhase, LoopPhase] = {"plan": "PLAN", "build": "BUILD", "verify": "VERIFY"}


class Line(NamedTuple):
    """One or more lines with weight and label."""

    weight: Weight
    label: Label
    text: str

    @property
    def fragments(self) -> list[Fragment]:
        return [Fragment(self.label, self.text)]


def plan_build_shown(event: PlanBuildEvent) -> Shown | None:
    """Join the lines of the event; None shows nothing."""
    lines = list(plan_build_lines(event))
    if not lines:
        return None
    fragments: list[Fragment] = []
    for line in lines:
        fragments += ([Fragment("plain", "\n")] if fragments else []) + line.fragments
    return Shown(min(_LEAST.get(line.weight, Verbosity.QUIET) for line in lines), fragments)


def plan_build_lines(event: PlanBuildEvent) -> Iterator[Line]:
    """Yield the lines of the event."""
    match event:
        case PlanBuildPhaseStarted(phase=phase):
            yield Line("course", "heading", phase_header(_PHASES[phase]).removesuffix("\n"))
        case PlanBuildIterationEnded(iteration=number):
            yield Line("course", "heading", iteration_complete(number).removesuffix("\n"))
        case PlanBuildSessionEnded():
            yield from _session_ended(event)
        case PlanBuildSessionRetry(attempt=k, max_retries=limit, message=message):
            if message:
                yield Line("error", "error", message)
            text = f"Session error ({k}/{limit}), starting new session..."
            yield Line("warning", "warning", text)
        case PlanBuildWarning(message=message):
            yield Line("warning", "warning", message)
        case JobsCounted():
            yield Line("info", "info", _counted(event.open, event.blocked, event.done))
            if event.next_job:
                yield Line("info", "info", f"Next: {event.next_job}")
        case SubAgentStarted(name=name, description=description):
            what = f"{name}: {description}" if description else name
            yield Line("info", "tool", f"[sub-agent] {what}")
        case SubAgentEnded():
            yield Line("info", "tool", "[sub-agent] done")
        case FileTouched(path=path):
            yield Line("info", "tool", f"[file] {path}")
        case CommitSeen(commit_hash=commit, subject=subject):
            yield Line("info", "commit", f"[commit] {commit} {subject}")
        case BuildVerified(passed=passed, issues=issues):
            yield _verdict(build_verified(succeeds=passed, issues=issues), passed=passed)
        case JobVerified(job_id=name, description=description, passed=passed, issues=issues):
            what = f"{name}: {description}" if description else name
            text = f"Job {'verified' if passed else 'verification failed'}: {what}"
            yield _verdict(text + ("" if passed else _list(issues)), passed=passed)
        case JobBlocked(job_id=name, description=description, failures=failures):
            times = "once" if failures == 1 else f"{failures} times"
            text = f"Job blocked: {name}: {description} (its verification failed {times})"
            yield Line("warning", "warning", text)
        case VerificationEnded(findings=findings):
            found = (
                f"{len(findings)} finding(s) for the next session" if findings else "no findings"
            )
            yield Line("debug", "prose", f"[verify] {found}")
        case DoneFileRejected(reason=reason):
            yield Line("warning", "warning", f"lopen.loop.done removed: {reason}")
        case PlanBuildEnded():
            if event.reason == "complete" and event.iterations == 0:  # started with building
                yield Line("course", "caution", NOTHING_TO_DO)
            yield ending(event)
            yield Line("course", "info", overall(event))
        case _:
            return


NOTHING_TO_DO = "lopen.loop.done exists; nothing to do (use --fresh to remove it)"
"""The message about a done file of an earlier run (LOP-062)."""


def _session_ended(event: PlanBuildSessionEnded) -> Iterator[Line]:
    """Yield the cost; the following events report errors."""
    match event.outcome:
        case "completed":
            pass
        case "max_turns":
            yield Line("warning", "warning", "Session ended: turn limit reached")
        case "budget" if event.message:
            yield Line("warning", "warning", f"Session ended: {event.message}")
        case _:
            return
    cost = "" if event.cost_usd is None else f"cost={cost_of(event, digits=4)}, "
    yield Line("info", "info", f"Session: {cost}duration={full_duration(event.duration)}")


def ending(event: PlanBuildEnded) -> Line:
    """Return why the loop ended."""
    why = f": {event.error}" if event.error else ""
    match event.reason:
        case "complete" if event.open or event.blocked:
            return Line("course", "caution", "Loop ended by lopen.loop.done: not all jobs are done")
        case "complete":
            return Line("course", "success", "Loop complete! All jobs finished.")
        case "planned":
            return Line("course", "success", "Planning complete.")
        case "blocked":
            text = event.error or "every open job is blocked"
            return Line("error", "error", f"Loop stopped: {text}")
        case "max_iterations":
            return Line("course", "caution", "Loop stopped: max iterations reached")
        case "quota_exceeded":
            return Line("error", "error", f"Loop stopped: usage limit reached{why}")
        case "budget_exceeded":
            return Line("error", "error", f"Loop stopped: budget exceeded{why}")
        case "max_retries_exceeded":
            return Line("error", "error", f"Loop stopped: too many errors in a row{why}")
        case "stalled":
            return Line("error", "error", f"Loop stopped: no progress{why}")
        case "interrupted":
            return Line("warning", "warning", "Loop cancelled by user.")
        case "failed":
            return Line("error", "error", f"Loop stopped: {event.error or 'Unknown error'}")
        case _ as never:
            assert_never(never)


def overall(event: PlanBuildEnded) -> str:
    """Return the totals of the run."""
    jobs = _counted(event.open, event.blocked, event.done)
    totals = f"cost={cost_of(event, digits=4)}, duration={full_duration(event.duration)}"
    return f"Overall: {event.iterations} iteration(s). {jobs}. {totals}"


def _counted(still_open: int, blocked: int, done: int) -> str:
    return jobs_line(still_open=still_open + blocked, done=done, blocked=blocked)


def _verdict(text: str, *, passed: bool) -> Line:
    return Line("info", "success", text) if passed else Line("warning", "warning", text)


def _list(issues: Iterable[str]) -> str:
    return "".join("\n  - " + issue.strip().replace("\n", "\n    ") for issue in issues)
