"""The agent of the plan/build loop that verifies what others say is done (LOP-090, LOP-100)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cuggino.agents.base import is_guarded
from cuggino.config import configured_policy
from cuggino.domain import VerificationResult
from cuggino.events import PlanBuildPhaseStarted, PlanBuildWarning
from cuggino.loops.frame.run import Run
from cuggino.loops.frame.session import run_session
from cuggino.loops.plan_build.options import PlanBuildOptions
from cuggino.operators import Flow, emit
from cuggino.stages import spawn_options


def judged(
    prompt: str,
    read: Callable[[str], VerificationResult],
    run: Run,
    options: PlanBuildOptions,
    *,
    iteration: int,
) -> Flow[VerificationResult | None]:
    """Return the answer, parsed by `read`; None, with a warning, without one (LOP-095).

    Emits `PlanBuildPhaseStarted` and the events of the agent.

    Raises:
        QuotaExceeded, BudgetExceeded: and any error that every session would meet.
        Interrupted: a person has stopped it.
    """
    yield from emit(PlanBuildPhaseStarted(phase="verify", iteration=iteration))
    agent, guard = run.services.agent, None
    if is_guarded(agent, "judge"):
        guard = configured_policy(options, "audit", project=options.cwd)
    common = spawn_options(
        options,
        "judge",
        prompt,
        guard=guard,
        session=run.session,
        agent=agent,
        drafts=run.services.drafts,
    )
    report = yield from run_session(
        run, replace(common, model=options.verify_model or options.model)
    )
    if report.error is not None:
        raise report.error
    if report.outcome != "completed":  # then its message is not a verdict
        message = report.message or report.outcome
        yield from emit(PlanBuildWarning(message=f"Verification error: {message}"))
        return None
    result = read(report.message)
    if result.by_words:
        yield from emit(PlanBuildWarning(message="the verifying agent returned no JSON object"))
    return result
