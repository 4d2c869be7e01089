"""The agents of the coding loop as stages: planning, implementing, reviewing.

Each role has its prompt, its markers and its files. They hand on their work through the files of
the session (`Workplace.session`): the plan becomes the session file, markers are appended to it,
and the reviewer writes a review file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from reactivex import Observable

from cuggino.agents.base import Role, SpawnOptions, is_guarded
from cuggino.config import configured_policy
from cuggino.errors import LoopError
from cuggino.events import (
    Approved,
    CheckCommandOutput,
    Done,
    LlmMarkerEvent,
    LlmTerminalMarkerEvent,
    LoopEvent,
    NoMoreWork,
    Note,
    PlanComplete,
    PlanWritten,
    Progress,
    RequestChanges,
    SpecIssue,
    Waiting,
)
from cuggino.gate import LastWord, has_findings
from cuggino.guard import PERMISSIONS, Policy
from cuggino.operators import Flow, ask, flow, marker_tags
from cuggino.operators.mistakes import require_text
from cuggino.prompts import Prompts
from cuggino.stages.agent import Evidence, agent_story
from cuggino.stages.sessions import Resumes
from cuggino.stages.spawning import spawn_options
from cuggino.stages.waited import WAITING, Waited, resumed_session
from cuggino.stages.workplace import Workplace, require_place
from cuggino.storage import check_specs

_LONGEST_PLAN = 50_000
"""The most characters of a plan in an event."""

_PATHS = ("specs_path", "plan_path", "session_path", "review_path")
ROLE_VARIABLES: dict[Role, tuple[str, ...]] = {
    "planning": (*_PATHS, "focus", "review"),
    "implementing": (*_PATHS, "focus", "check", "waiting"),
    "reviewing": (*_PATHS, "focus", "check", "baseline", "scope", "waiting"),
}
"""The variables available to the template of each role."""

CONFLICT = "conflict"
"""The template for an implementing agent that resolves a conflict."""

CONFLICT_VARIABLES = (*_PATHS, "focus", "problem", "paths", "ours", "theirs", "landed", "waiting")

JUDGE = "judge"
"""The template for a reviewing agent that chooses among several attempts."""

JUDGE_VARIABLES = (*_PATHS, "focus", "attempts")

_CHOICE = re.compile(r"\s*(?:attempt\s*)?#?(\d+)\b[\s:.,-]*", re.IGNORECASE)

_MARKERS: dict[Role, tuple[type[LlmMarkerEvent], ...]] = {
    "planning": (SpecIssue, PlanComplete),
    "implementing": (Note, SpecIssue, Waiting, Progress, Done, NoMoreWork),
    "reviewing": (SpecIssue, Waiting, Approved, RequestChanges),
}


class Turn(NamedTuple):
    """The position of an agent among those of its role, and the session that it may resume."""

    number: int | None = None
    """The agents of the role so far, from 1; default: not counted."""
    log_size: int | None = None
    """The length of the session file before it: a stage that is repeated truncates the file."""
    may_wait: bool = False
    """True if the loop waits for what the agent names in `<WAITING>`; the stage ends with it."""
    waited: Waited | None = None
    """The session to resume, if it has waited."""


UNCOUNTED = Turn()


def role_markers(role: Role) -> tuple[type[LlmMarkerEvent], ...]:
    """Return the markers that a role may emit; in its text any other tag is text."""
    if role not in _MARKERS:
        raise ValueError(f"the coding loop has no role {role}")
    return _MARKERS[role]


def check_prompts(prompts: Prompts) -> None:
    """Render every role's template once, so that a bad one fails before an agent works.

    Raises:
        ConfigError: a template uses a variable that its role does not have, or is unreadable.
    """
    for role, names in ROLE_VARIABLES.items():
        prompts.render(role, dict.fromkeys(names, ""))
    prompts.render(CONFLICT, dict.fromkeys(CONFLICT_VARIABLES, ""))
    prompts.render(JUDGE, dict.fromkeys(JUDGE_VARIABLES, ""))


def planning_stage(
    place: Workplace,
    *,
    review: str | None = None,
    form: str = "",
    turn: Turn = UNCOUNTED,
) -> Observable[LoopEvent]:
    """Plan the focus: an agent writes the plan that implementing agents work through.

    ::

        agent:              -a-c--|
        planning_stage:     -a----(C|)

    Emits the agent's events and those of its supervision, `PlanWritten` if the services show plans,
    and last `PlanComplete` or `SpecIssue`. By then the plan has replaced the session file.

    `review` is the one that sent the work back, and `form` says more about the form of the plan.
    `turn` is for loops that can be resumed. Disposal
    terminates the agent and its processes.

    Errors: `ConfigError` if the specifications are gone, `SessionError` without a plan file, and
    those of `agent_stage`.
    """
    task = _Task(
        role="planning",
        prompt=(
            "Plan the focus by the specifications in {specs_path} and write the plan to "
            "{plan_path}."
            f"{f' {form}' if form else ''}"
        ),
        variables={"review": _review_section(review)},
    )
    return flow(lambda: _story(place, task, turn))


def implementing_stage(
    place: Workplace,
    *,
    check: CheckCommandOutput | None = None,
    before: str = "",
    turn: Turn = UNCOUNTED,
) -> Observable[LoopEvent]:
    """Do one task of the plan in the session file.

    ::

        agent:                  -n-d--|
        implementing_stage:     -N----(D|)

    Emits the agent's events, its `Note`s among them, and last `Progress` after one task, `Done`
    after the last one, `NoMoreWork` without one, or `SpecIssue`. All markers are appended to the
    session file.

    `check` is the outcome of the check command, for the agent's prompt. `before` is the state of
    the project before (`Workplace.state`): without a marker, new work is `Progress`; by default,
    uncommitted work is. Options, disposal and errors as in `planning_stage`.
    """
    task = _Task(
        role="implementing",
        prompt=(
            "Do the next task of the plan in {session_path} by the specifications in {specs_path}."
        ),
        variables={"check": _check_section(check)},
        before=before,
    )
    return flow(lambda: _story(place, task, turn))


def resolving_stage(
    place: Workplace,
    variables: Mapping[str, str],
    *,
    turn: Turn = UNCOUNTED,
) -> Observable[LoopEvent]:
    """Resolve the conflicts of a merge that is under way; `variables` describe both sides.

    Emits what `implementing_stage` emits.
    """
    task = _Task(
        role="implementing",
        prompt=(
            "Resolve the conflicts of the merge that is under way, by the specifications in "
            "{specs_path}."
        ),
        variables=variables,
        template=CONFLICT,
    )
    return flow(lambda: _story(place, task, turn))


def reviewing_stage(
    place: Workplace,
    *,
    check: CheckCommandOutput | None = None,
    baseline: str | None = None,
    finished: bool = True,
    news: str = "",
    unanswered: Callable[[str], Sequence[str]] = lambda _approval: (),
    turn: Turn = UNCOUNTED,
) -> Observable[LoopEvent]:
    """Judge the work against the specifications; the agent may change nothing.

    ::

        agent:               -a-y--|
        reviewing_stage:     -a----(Y|)

    Emits the agent's events, and last `Approved`, `RequestChanges` or `SpecIssue`. Reviewers that
    work at the same time need a workplace each (`Workplace.reviewers`).

    `check` is the outcome of the check command, `baseline` the commit that the work started from.
    Without `finished` the rest of the plan is still to be done. `news` is another section of the
    prompt, about changed tests for example, and `unanswered` returns what an approval with this
    text leaves open: the agent is asked about it. Other options, disposal and errors as in
    `planning_stage`.
    """
    task = _Task(
        role="reviewing",
        prompt=(
            "Review the project against the specifications in {specs_path}; a review that asks "
            "for changes goes to {review_path}."
        ),
        variables={
            "check": _check_section(check),
            "baseline": _baseline_line(baseline) + news,
            "scope": "" if finished else _UNFINISHED,
        },
        is_final=finished,
        unanswered=unanswered,
    )
    return flow(lambda: _story(place, task, turn))


def judging_stage(
    place: Workplace, attempts: Sequence[str], *, turn: Turn = UNCOUNTED
) -> Observable[LoopEvent]:
    """Choose among several attempts at the same work, each described for the judge.

    Emits the agent's events, and last `Approved`, whose content `chosen_attempt` reads. An agent
    that names none of them is asked again; if it does not then, the last is `RequestChanges`.
    """

    def unanswered(approval: str) -> Sequence[str]:
        known = chosen_attempt(approval, len(attempts)) is not None
        return () if known else (f"it does not begin with a number from 1 to {len(attempts)}",)

    task = _Task(
        role="reviewing",
        prompt="Choose among the attempts by the specifications in {specs_path}.",
        variables={"attempts": "\n\n".join(attempts)},
        template=JUDGE,
        unanswered=unanswered,
    )
    return flow(lambda: _story(place, task, turn))


def chosen_attempt(text: str, count: int) -> tuple[int, str] | None:
    """Return the number of the attempt, from 1, that a judge names, and why; None without one."""
    for line in text.splitlines():
        found = _CHOICE.match(line)
        if found and 1 <= int(found[1]) <= count:
            return int(found[1]), line[found.end() :].strip()
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """The task of one agent."""

    role: Role
    prompt: str
    variables: Mapping[str, str]
    template: str | None = None
    """The template of its system prompt, if it is not that of the role."""
    before: str = ""
    """The state of the project before it."""
    is_final: bool = False
    """True for a review of the whole plan."""
    unanswered: Callable[[str], Sequence[str]] = lambda _approval: ()
    """Returns what an approval with this text leaves open."""


def _story(place: Workplace, task: _Task, turn: Turn) -> Flow[None]:
    """Run the agent and its file operations; a resumed run repeats an unfinished stage."""
    require_place(place)
    session, role = place.session, task.role
    markers = tuple(cls for cls in role_markers(role) if turn.may_wait or cls is not Waiting)
    options = _spawn_options(place, task, turn)
    # They may have gone in mid-run, say with the branch: agents would have nothing to follow.
    check_specs(place.options.cwd / place.options.specs_path)
    place.prepare()
    if turn.log_size is not None:
        session.rewind(turn.log_size)
    if role == "planning":
        session.clear_plan()
    if role == "reviewing" and turn.waited is None:
        session.clear_review()
    resumes: Resumes | None = None
    if turn.waited is None:
        options = yield from place.begin(options)
    else:
        options, resumes = yield from resumed_session(place.begin, options, turn.waited)

    def plan_of(marker: LlmMarkerEvent) -> Iterator[PlanWritten]:
        """Yield the plan that the marker declares complete, if it is to be shown."""
        is_shown = place.services.shows_plans and isinstance(marker, PlanComplete)
        text = session.plan_text() if is_shown else ""
        if text:
            yield PlanWritten(iteration=turn.number or 1, text=text[:_LONGEST_PLAN])

    marker = yield from agent_story(
        place.services.agent,
        options,
        phase=role,
        tags=marker_tags(*markers),
        on_marker=session.append,
        before_marker=plan_of,
        linger=place.linger,
        supervision=place.supervision,
        evidence=_evidence(place, task),
        resumes=resumes,
    )
    if not isinstance(marker, markers):
        raise LoopError(role, f"unexpected end of the agent: {marker}")
    if isinstance(marker, PlanComplete):
        session.commit_plan()


def _evidence(place: Workplace, task: _Task) -> Evidence:
    """Return the evidence in the files of the stage."""
    session = place.session

    def record(word: LastWord) -> LastWord:
        unticked, reported = session.tasks() if task.is_final else (0, 0)
        review = session.written_review()
        unanswered = tuple(task.unanswered("\n".join((word.before, *word.contents))))
        return replace(
            word, review=review, unanswered=unanswered, unticked=unticked, reported=reported
        )

    return Evidence(
        record=record,
        facts=lambda: _facts(place, task),
        left=lambda: place.services.work_left(place.options.cwd),
        review=os.path.relpath(session.review_file, place.options.cwd),
    )


def _facts(place: Workplace, task: _Task) -> Flow[LlmTerminalMarkerEvent | None]:
    """Return the marker that the files of the stage imply, or None."""
    session = place.session
    match task.role:
        case "planning" if session.plan_text():
            return PlanComplete(content="The agent wrote a plan, and ended without a marker.")
        case "reviewing" if has_findings(review := session.written_review()):
            return RequestChanges(content=review)
        case "implementing":
            if task.before:
                is_new = (yield from ask(place.state())) != task.before
            else:
                is_new = bool((yield from ask(place.services.work_left(place.options.cwd))))
            if is_new:
                return Progress(content=_UNREPORTED)
            # The review decides whether what was done on this plan is all.
            return NoMoreWork(content=_NOTHING_MORE) if session.tasks()[1] else None
        case _:
            return None


_NOTHING_MORE = "The agent changed nothing, and ended without a marker."
_UNREPORTED = (
    "Work that was not reported\n\nThe agent changed the project, and ended without a marker. See "
    "how far it came before you go on."
)


def _spawn_options(place: Workplace, task: _Task, turn: Turn) -> SpawnOptions:
    session, options, role = place.session, place.options, task.role
    folder = {
        "planning": session.plan_file.parent,
        "reviewing": session.review_file.parent,
    }.get(role)
    paths = {
        "specs_path": options.specs_path,
        "plan_path": os.path.relpath(session.plan_file, options.cwd),
        "session_path": os.path.relpath(session.session_file, options.cwd),
        "review_path": os.path.relpath(session.review_file, options.cwd),
    }
    common = spawn_options(
        options,
        role,
        task.prompt.format_map(paths),
        guard=_guard(place, role),
        turn=turn.number,
        session=session,
        agent=place.services.agent,
        folder=folder,
        drafts=place.services.drafts,
    )
    variables: dict[str, Any] = {**paths, "focus": place.focus, **task.variables}
    if role != "planning":
        variables["waiting"] = WAITING if turn.may_wait else ""
    return replace(
        common,
        system_prompt=place.services.prompts.render(task.template or role, variables),
        env={
            **common.env,
            "CUGGINO_SPECS_PATH": options.specs_path,
            "CUGGINO_PLAN_FILE": str(session.plan_file),
            "CUGGINO_REVIEW_FILE": str(session.review_file),
        },
    )


def _guard(place: Workplace, role: Role) -> Policy | None:
    """Return the policy of the role, None if the agent cannot be guarded."""
    if not is_guarded(place.services.agent, role):
        return None
    return configured_policy(
        place.options,
        PERMISSIONS[role],
        project=place.options.cwd,
        plan=place.session.plan_file,
        review=place.session.review_file,
        apart=place.apart,
    )


_UNFINISHED = (
    "The plan is not finished yet. Judge what has been done so far; what the plan still has to do "
    "is no finding."
)


def _review_section(review: str | None) -> str:
    if review is None:
        return ""
    require_text("review", review)
    return (
        "## Review of the work so far\n\n"
        "The work was sent back. The new plan must satisfy this review and the specifications:\n\n"
        f"{review.strip()}"
    )


def _check_section(check: CheckCommandOutput | None) -> str:
    if check is None:
        return ""
    if not isinstance(check, CheckCommandOutput):
        raise TypeError(f"check must be a CheckCommandOutput, not {type(check).__name__}")
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
        f"See what was changed since the start: `git diff --text {baseline}..HEAD`, and `git "
        "status` for what is not committed."
    )
