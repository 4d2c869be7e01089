"""The summary of a run: outcome, cost, next steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from cuggino.events import DeliverablesListed, shown_state
from cuggino.runs import RunSummary, cost_of
from cuggino.runs.words import format_duration, format_tokens
from cuggino_cli.screen.fragments import Fragment, Label

_OUTCOMES: dict[str | None, tuple[Label, str]] = {
    "approved": ("success", "Approved"),
    "unchecked": ("caution", "Approved, unchecked"),
    "spec_issue": ("problem", "Stopped at a spec issue"),
    "max_iterations": ("caution", "Max iterations reached"),
    "stalled": ("problem", "Stalled"),
    "blocked": ("caution", "All deliverables blocked"),
    "failed": ("failure", "Failed"),
    "quota": ("caution", "Usage limit reached"),
    "budget": ("caution", "Budget spent"),
    "planned": ("success", "Planned"),
    "interrupted": ("warning", "Interrupted"),
    None: ("heading", "Ended"),
}


def summary_fragments(
    summary: RunSummary,
    *,
    duration_s: float,
    hint: str | None = None,
    journaled: bool = True,
    spec_issues_folder: str = ".cuggino/spec-issues",
    has_git: bool = True,
) -> list[Fragment]:
    """Return the summary as lines, below an empty one.

    Args:
        summary: the fold over the run's events.
        duration_s: seconds of all processes of the run.
        hint: how to resume this run, in place of the general sentence.
        journaled: the run has a journal and can be resumed.
        spec_issues_folder: the folder of spec issues, as displayed.
        has_git: whether git can show the changes.
    """
    label, outcome = _OUTCOMES[summary.outcome and shown_state(summary.outcome, summary.checked)]
    fragments = [Fragment("plain", "\n"), Fragment(label, f"[Summary] {outcome}")]
    for name, text in _rows(summary, duration_s):
        fragments += _row("prose", name, text)
    steps = _next_steps(summary, hint, journaled, spec_issues_folder, has_git)
    for number, step in enumerate(steps):
        fragments += _row("heading", "" if number else "Next", step)
    return fragments


def _row(label: Label, name: str, text: str) -> list[Fragment]:
    return [Fragment("plain", "\n  "), Fragment(label, f"{name:<11}"), Fragment("plain", text)]


def _rows(summary: RunSummary, duration_s: float) -> Iterable[tuple[str, str]]:
    if summary.items:
        yield "Items", str(summary.items)
    in_slots = bool(summary.landings or summary.returns)
    if in_slots:
        back = f", {summary.returns} sent back" if summary.returns else ""
        yield "Landed", f"{len(summary.landings)}{back}"
        for commit in summary.landings:
            yield "", f"{commit.commit_hash} {commit.subject}"
    if summary.parked:
        yield "Parked", str(summary.parked)
    if summary.in_delivery:
        yield "Sessions", str(summary.rounds)
        yield "Passed", passed_text(summary.deliverables)
    elif summary.rounds or not summary.in_watch:  # those of a recorded watch are its items' own
        yield "Iterations", str(summary.rounds)
        yield "Tasks", str(summary.tasks)
        yield "Agents", str(summary.agents)
        if not in_slots:  # those in slots are not those that landed
            yield "Commits", str(len(summary.commits))
    for commit in () if in_slots else summary.commits:
        yield "", f"{commit.commit_hash} {commit.subject}"
    for message in summary.failed_commits:
        yield "", f"failed: {message}"
    for path in summary.gate_changed:
        yield (
            "Changed" if path == summary.gate_changed[0] else "",
            f"{path} (check, tests or specs)",
        )
    if summary.lost_base:
        yield "Rewritten", f"{summary.lost_base[:12]}, the start of the run, left the history"
    if summary.cost_usd is not None:
        yield "Cost", cost_of(summary)
    if summary.usage is not None:
        yield "Tokens", format_tokens(summary.usage).removesuffix(" tokens")
    yield "Duration", format_duration(duration_s)
    if summary.in_watch and (summary.asking or summary.parked):
        asked, parked = len(summary.asking), summary.parked
        parts = [f"{asked} question{'s' * (asked != 1)}"] if asked else []
        parts += [f"{parked} parked"] if parked else []
        yield "Waiting", f"{', '.join(parts)}: `cuggino status` lists what waits for you"


def passed_text(listed: DeliverablesListed | None) -> str:
    """Return `2/3 deliverables (1 blocked)`, or `unknown`."""
    if listed is None:
        return "unknown"
    blocked = f" ({listed.blocked} blocked)" if listed.blocked else ""
    return f"{listed.passed}/{len(listed.deliverables)} deliverables{blocked}"


def _next_steps(
    summary: RunSummary,
    hint: str | None,
    journaled: bool,
    spec_issues_folder: str,
    has_git: bool,
) -> list[str]:
    resuming = hint or _how_to_resume(summary, journaled)
    match summary.outcome:
        case "approved":
            settle = 'set checkCommand and "gate": "block", so that a check decides'
            return [_review(summary, has_git), *([settle] if summary.checked is False else [])]
        case "spec_issue":
            file = f"{spec_issues_folder}/{summary.spec_issue_file}"
            return [f"read {file} and clarify the specs", "delete the file, then run again"]
        case "max_iterations" if summary.in_delivery:
            return ["give it more sessions, or refine SPEC.md, then run again"]
        case "max_iterations":
            return ["raise maxIterations, or refine the specs, then run again"]
        case "blocked":
            return ["remove what blocks them, then run again"]
        case "stalled" if summary.in_delivery:
            return ["see what went wrong, refine SPEC.md, then run again"]
        case "stalled":
            found = "read the findings in .cuggino/tbd and decide, " if summary.tbd_files else ""
            return [f"{found}refine the specs, then run again"]
        case "failed":
            return ["see the error", resuming]
        case "quota":
            return [f"wait until the limit resets, then: {resuming}"]
        case "budget":
            more = (
                "each start has the whole budget" if summary.in_watch else "give it a larger limit"
            )
            return [f"{resuming}; {more}"]
        case "interrupted":
            return [resuming]
        case "planned" | None:
            return [hint] if hint else []
        case _ as never:
            assert_never(never)


def _how_to_resume(summary: RunSummary, journaled: bool) -> str:
    if summary.in_watch:
        command, resume = "cuggino watch", ""
    else:
        command, resume = "cuggino deliver" if summary.in_delivery else "cuggino run", " --resume"
    if not journaled:
        return f"`{command}` starts over: a run without a journal cannot be resumed"
    return f"`{command}{resume}` continues where it stopped"


def _review(summary: RunSummary, has_git: bool) -> str:
    if not has_git:
        return "review the changes; with git, `git diff` would show them"
    if not summary.commits:
        return "review the changes: git status, git diff"
    return f"review the commits: git log -p -{len(summary.commits)}"
