"""The three roles of the coding loop: their prompts and their markers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cuggino.agents.base import Role, SpawnOptions, is_guarded
from cuggino.config import configured_policy
from cuggino.errors import LoopError
from cuggino.events import (
    Approved,
    CheckCommandOutput,
    Done,
    LlmMarkerEvent,
    NoMoreWork,
    Note,
    PlanComplete,
    PlanWritten,
    Progress,
    RequestChanges,
    SpecIssue,
)
from cuggino.guard import PERMISSIONS, Policy
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.frame.run import Run
from cuggino.loops.frame.spawning import spawn_options
from cuggino.operators import Flow, ask, flow, forward, marker_tags
from cuggino.prompts import Prompts
from cuggino.stages import act, agent_story
from cuggino.storage import check_specs

_LONGEST_PLAN = 50_000
"""The most characters of a plan in an event."""

_PATHS = ("specs_path", "plan_path", "session_path", "review_path")
ROLE_VARIABLES: dict[Role, tuple[str, ...]] = {
    "planning": (*_PATHS, "focus", "review"),
    "implementing": (*_PATHS, "focus", "check"),
    "reviewing": (*_PATHS, "focus", "check", "baseline", "scope"),
}
"""The variables available to the template of each role."""


CONFLICT = "conflict"
"""The template for an implementing agent that resolves a conflict."""

CONFLICT_VARIABLES = (*_PATHS, "focus", "problem", "paths", "ours", "theirs", "landed")


def role_markers(role: Role) -> tuple[type[LlmMarkerEvent], ...]:
    """Return the markers that a role may emit (CUG-017); in its text any other tag is text."""
    match role:
        case "planning":
            return (SpecIssue, PlanComplete)
        case "implementing":
            return (Note, SpecIssue, *_task_endings())
        case "reviewing":
            return (SpecIssue, Approved, RequestChanges)
        case _:
            raise ValueError(f"the coding loop has no role {role}")


def _task_endings() -> tuple[type[LlmMarkerEvent], ...]:
    return (Progress, Done, NoMoreWork)


def check_prompts(prompts: Prompts) -> None:
    """Render every role's template once, so that a bad one fails before an agent works.

    Raises:
        ConfigError: a template uses a variable that its role does not have, or is unreadable.
    """
    for role, names in ROLE_VARIABLES.items():
        prompts.render(role, dict.fromkeys(names, ""))
    prompts.render(CONFLICT, dict.fromkeys(CONFLICT_VARIABLES, ""))


class Roles:
    """Spawns the agents of one run. Each method gives the terminal marker of its agent.

    Raises:
        ConfigError: the specifications are gone; no agent is started.
    """

    def __init__(self, run: Run, options: LoopRunOptions) -> None:
        session = run.session
        self._agent = run.services.agent
        self._prompts = run.services.prompts
        self._session = session
        self._options = options
        self._supervision = run.supervision
        self._begin_session = run.begin_session
        self._shows_plans = run.services.shows_plans
        self._turns: Counter[Role] = Counter()
        self._paths = {
            "specs_path": options.specs_path,
            "plan_path": self._relative(session.plan_file),
            "session_path": self._relative(session.session_file),
            "review_path": self._relative(session.review_file),
        }

    def plan(self, review: str | None) -> Flow[PlanComplete | SpecIssue]:
        """Plan the focus; `review` is the one that sent the last iteration back."""
        prompt = (
            f"Plan the focus by the specifications in {self._paths['specs_path']} and write the "
            f"plan to {self._paths['plan_path']}."
        )
        variables = {"focus": self._options.focus, "review": _review_section(review)}
        ending: PlanComplete | SpecIssue = yield from self._spawn(
            "planning", prompt, variables, (PlanComplete, SpecIssue)
        )
        return ending

    def implement(
        self, check: CheckCommandOutput | None
    ) -> Flow[Progress | Done | NoMoreWork | SpecIssue]:
        """Do one task of the plan; `check` is the state of the project before it."""
        prompt = (
            f"Do the next task of the plan in {self._paths['session_path']} by the specifications "
            f"in {self._paths['specs_path']}."
        )
        variables = {"focus": self._options.focus, "check": _check_section(check)}
        ending: Progress | Done | NoMoreWork | SpecIssue = yield from self._spawn(
            "implementing", prompt, variables, (*_task_endings(), SpecIssue)
        )
        return ending

    def resolve(self, variables: Mapping[str, str]) -> Flow[Done | SpecIssue]:
        """Resolve the conflicts of a merge; the variables describe both sides."""
        prompt = (
            "Resolve the conflicts of the merge that is under way, by the specifications in "
            f"{self._paths['specs_path']}."
        )
        variables = {"focus": self._options.focus, **variables}
        ending: Done | SpecIssue = yield from self._spawn(
            "implementing", prompt, variables, (*_task_endings(), SpecIssue), CONFLICT
        )
        return ending

    def review(
        self,
        check: CheckCommandOutput | None,
        baseline: str | None,
        *,
        finished: bool,
        news: str = "",
    ) -> Flow[Approved | RequestChanges | SpecIssue]:
        """Judge the work; `baseline` is the commit that the run started from.

        `news` describes the changes of the check, the tests and the specifications since.
        """
        prompt = (
            f"Review the project against the specifications in {self._paths['specs_path']}; a "
            f"review that asks for changes goes to {self._paths['review_path']}."
        )
        variables = {
            "focus": self._options.focus,
            "check": _check_section(check),
            "baseline": _baseline_line(baseline) + news,
            "scope": "" if finished else _UNFINISHED,
        }
        ending: Approved | RequestChanges | SpecIssue = yield from self._spawn(
            "reviewing",
            prompt,
            variables,
            (Approved, RequestChanges, SpecIssue),
        )
        return ending

    def _spawn(
        self,
        role: Role,
        prompt: str,
        variables: Mapping[str, str],
        endings: tuple[type[LlmMarkerEvent], ...],
        template: str | None = None,
    ) -> Flow[Any]:
        """Run the agent of the role; return its marker, one of `endings` (checked here).

        The `template` of its prompt is that of the role, unless it has another task.
        """
        self._turns[role] += 1
        common = spawn_options(
            self._options,
            role,
            prompt,
            guard=self._guard(role),
            turn=self._turns[role],
            session=self._session,
            agent=self._agent,
            folder=self._folder(role),
        )
        options = replace(
            common,
            system_prompt=self._prompts.render(template or role, {**self._paths, **variables}),
            env={**common.env, **self._environment()},
        )
        size = yield from ask(act(self._session.size), name="log-size")
        stage = flow(lambda: self._stage(role, options, endings, size or 0))
        marker: Any = yield from forward(stage, name=role)
        return marker

    def _stage(
        self,
        role: Role,
        options: SpawnOptions,
        endings: tuple[type[LlmMarkerEvent], ...],
        size: int,
    ) -> Flow[None]:
        """Run the agent and its file operations; a resumed run repeats an unfinished stage."""
        session = self._session
        # They may have gone in mid-run, say with the branch: agents would have nothing to follow.
        check_specs(self._options.cwd / self._options.specs_path)
        session.rewind(size)
        if role == "planning":
            session.clear_plan()
        if role == "reviewing":
            session.clear_review()
        options = yield from self._begin_session(options)
        marker = yield from agent_story(
            self._agent,
            options,
            phase=role,
            tags=marker_tags(*role_markers(role)),
            on_marker=session.append,
            before_marker=self._plan_of,
            linger=self._options.linger,
            supervision=self._supervision,
        )
        if not isinstance(marker, endings):
            raise LoopError(role, f"unexpected end of the agent: {marker}")
        if isinstance(marker, PlanComplete):
            session.commit_plan()

    def _plan_of(self, marker: LlmMarkerEvent) -> tuple[PlanWritten, ...]:
        """Return the plan that the marker declares complete, if it is to be shown."""
        is_shown = self._shows_plans and isinstance(marker, PlanComplete)
        text = self._session.plan_text() if is_shown else ""
        if not text:
            return ()
        return (PlanWritten(iteration=self._turns["planning"], text=text[:_LONGEST_PLAN]),)

    def _guard(self, role: Role) -> Policy | None:
        """Return the policy of the role, None if the agent cannot be guarded."""
        if not is_guarded(self._agent, role):
            return None
        options, session = self._options, self._session
        return configured_policy(
            options,
            PERMISSIONS[role],
            project=options.cwd,
            plan=session.plan_file,
            review=session.review_file,
            apart=options.apart,
        )

    def _folder(self, role: Role) -> Path | None:
        """Return the folder in which the role delivers."""
        session = self._session
        return {
            "planning": session.plan_file.parent,
            "reviewing": session.review_file.parent,
        }.get(role)

    def _environment(self) -> dict[str, str]:
        """Return where an agent's tools, hooks and scripts find the files of the run."""
        return {
            "CUGGINO_SPECS_PATH": self._options.specs_path,
            "CUGGINO_PLAN_FILE": str(self._session.plan_file),
            "CUGGINO_REVIEW_FILE": str(self._session.review_file),
        }

    def _relative(self, path: os.PathLike[str]) -> str:
        return os.path.relpath(path, self._options.cwd)


_UNFINISHED = (
    "The plan is not finished yet. Judge what has been done so far; what the plan still has to do "
    "is no finding."
)


def _review_section(review: str | None) -> str:
    if review is None:
        return ""
    return (
        "## Review of the work so far\n\n"
        "The work was sent back. The new plan must satisfy this review and the specifications:\n\n"
        f"{review.strip()}"
    )


def _check_section(check: CheckCommandOutput | None) -> str:
    if check is None:
        return ""
    cut = f" (its end; the whole is in `{check.file_path}`)" if check.truncated else ""
    return (
        "## Check command\n\n"
        f"It has just exited with code {check.exit_code}. Its output{cut}:\n\n"
        f"{check.output.strip()}"
    )


def _baseline_line(baseline: str | None) -> str:
    if baseline is None:
        return "Look at the code as it is now, committed or not."
    return (
        f"See what was changed since the start: `git diff {baseline}..HEAD`, and `git status` for "
        "what is not committed."
    )
