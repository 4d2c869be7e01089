"""The agent of the plan/build loop that verifies what others say is done (LOP-090, LOP-100)."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

from reactivex import operators as ops

from cuggino.agents.protocol import LlmAgent, SpawnOptions, is_guarded
from cuggino.config import configured_policy, configured_sandbox
from cuggino.domain.job_verification import VerificationResult
from cuggino.errors import CugginoError
from cuggino.events import PlanBuildPhaseStarted, PlanBuildWarning
from cuggino.loops.deliver_interrupt import Interrupted, Interruption
from cuggino.loops.options import PlanBuildOptions
from cuggino.loops.session_fold import SessionFold
from cuggino.operators import Flow, emit, forward
from cuggino.stages import Sessions, Supervision


class Judge:
    """Asks for verdicts, each in a session of its own. One object for each iteration."""

    def __init__(
        self,
        iteration: int,
        agent: LlmAgent,
        options: PlanBuildOptions,
        policies: Supervision,
        interruption: Interruption,
        *,
        run_file: Path,
    ) -> None:
        self._iteration = iteration
        self._agent = agent
        self._options = options
        self._policies = policies
        self._interruption = interruption
        self._run_file = run_file

    def ask(
        self, prompt: str, read: Callable[[str], VerificationResult]
    ) -> Flow[VerificationResult | None]:
        """What it answers, as `read`; None when it could not answer, which is told (LOP-095).

        Emits `PlanBuildPhaseStarted` and the events of the agent.

        Raises:
            QuotaExceeded, BudgetExceeded: and what every other session would meet as well.
            Interrupted: a person has stopped it.
        """
        yield from emit(PlanBuildPhaseStarted(phase="verify", iteration=self._iteration))
        fold = SessionFold(self._policies.budget)
        sessions = Sessions(
            self._agent,
            self._spawn_options(prompt),
            read=fold.read,
            budget=self._policies.remaining,
        )
        work = self._policies.around(sessions, sessions.first()).pipe(ops.do_action(fold.add))
        failure: Exception | None = None
        try:
            yield from forward(self._interruption.ending(work))
        except Exception as error:
            failure = error
        judged: CugginoError | None = fold.judged(failure)
        outcome = fold.outcome(judged)
        if judged is not None and (isinstance(judged, Interrupted) or fold.ends_the_loop(judged)):
            raise judged
        if outcome != "completed":  # what it has said by then is no verdict
            told = judged.message if judged is not None else fold.words or outcome
            yield from emit(PlanBuildWarning(message=f"Verification error: {told}"))
            return None
        result = read(fold.words)
        if result.by_words:
            yield from emit(PlanBuildWarning(message="the verifying agent gave no JSON object"))
        return result

    def _spawn_options(self, prompt: str) -> SpawnOptions:
        options = self._options
        guard = None
        if is_guarded(self._agent, "judge"):
            guard = configured_policy(options, "audit", project=options.cwd)
        return SpawnOptions(
            prompt=prompt,
            cwd=options.cwd,
            dangerously_skip_permissions=True,
            session_id=str(uuid.uuid4()),
            role="judge",
            model=options.verify_model or options.model,
            env={"CUGGINO_ROLE": "judge", "CUGGINO_SESSION_FILE": str(self._run_file)},
            guard=guard,
            sandbox=configured_sandbox(options, guard),
        )
