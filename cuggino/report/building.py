"""What the report says of a plan/build run."""

from __future__ import annotations

from cuggino.events import (
    BuildVerified,
    DoneFileRejected,
    Event,
    JobBlocked,
    JobVerified,
    PlanBuildEnded,
    PlanBuildSessionRetry,
    PlanBuildWarning,
)
from cuggino.report.model import Tone


def of_building(event: Event) -> tuple[str, Tone, str] | None:
    """What kind of thing it is, whether it is bad, and a sentence; None for ordinary events."""
    match event:
        case PlanBuildWarning(message=message):
            return "Warning", "warning", message
        case PlanBuildSessionRetry(attempt=attempt, max_retries=limit, message=message):
            return "Session failed", "warning", f"{attempt} in a row, {limit} are borne: {message}"
        case DoneFileRejected(reason=reason):
            return "Done file removed", "warning", reason
        case PlanBuildEnded(success=False, reason=reason, error=error):
            return "Ended", "bad", f"{reason.replace('_', ' ')}: {error}".removesuffix(": ")
        case _:
            return None


def finding_of_building(event: Event) -> tuple[str, Tone, str] | None:
    """What a verification has found; None for everything else."""
    match event:
        case BuildVerified(passed=False, issues=issues):
            return "Build not verified", "warning", "\n".join(issues)
        case JobVerified(passed=False, issues=issues):
            return "Job sent back", "warning", "\n".join((f"{event.job_id}:", *issues))
        case JobBlocked(failures=failures):
            said = f"{event.description} ({event.job_id}), after {failures} verifications"
            return "Job blocked", "bad", said
        case _:
            return None
