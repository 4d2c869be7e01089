"""The summary of a run: outcome, cost, next steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from cuggino.events import DeliverablesListed, shown_state
from cuggino.runs import RunState, cost_of
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
    run: RunState,
    *,
    duration_s: float,
    hint: str | None = None,
    journaled: bool = True,
    spec_issues_folder: str = ".cuggino/spec-issues",
    has_git: bool = True,
) -> list[Fragment]:
    """Return the summary as lines, below an empty one.

    Args:
        run: the state of the run.
        duration_s: seconds of all processes of the run.
        hint: how to resume this run, in place of the general sentence.
        journaled: the run has a journal and can be resumed.
        spec_issues_folder: the folder of spec issues, as displayed.
        has_git: whether git can show the changes.
    """
    label, outcome = _OUTCOMES[run.ending and shown_state(run.ending, run.checked)]
    fragments = [Fragment("plain", "\n"), Fragment(label, f"[Summary] {outcome}")]
    for name, text in _rows(run, duration_s):
        fragments += _row("prose", name, text)
    steps = _next_steps(run, hint, journaled, spec_issues_folder, has_git)
    for number, step in enumerate(steps):
        fragments += _row("heading", "" if number else "Next", step)
    return fragments


def _row(label: Label, name: str, text: str) -> list[Fragment]:
    return [Fragment("plain", "\n  "), Fragment(label, f"{name:<11}"), Fragment("plain", text)]


def _rows(run: RunState, duration_s: float) -> Iterable[tuple[str, str]]:
    landings, sent_back = run.landings, run.sent_back_count
    if run.done:
        yield "Items", str(run.done)
    in_slots = (bool(landings or sent_back) and run.kind == "watch") or _has_attempts(run)
    if in_slots:
        back = f", {sent_back} sent back" if sent_back else ""
        yield "Landed", f"{len(landings)}{back}"
        for commit in landings:
            yield "", f"{commit.commit_hash} {commit.subject}"
    if run.parked:
        yield "Parked", str(run.parked)
    tally = run.tally
    if run.kind == "deliver":
        yield "Sessions", str(tally.rounds)
        yield "Passed", passed_text(run.deliverables)
    elif tally.rounds or run.kind != "watch":  # those of a recorded watch are its items' own
        yield "Iterations", str(tally.rounds)
        yield "Tasks", str(tally.tasks)
        yield "Agents", str(tally.agents)
        if sent_back and not in_slots:  # by hands
            yield "Sent back", str(sent_back)
        if not in_slots:  # those in slots are not those that landed
            yield "Commits", str(len(run.commits))
    for commit in () if in_slots else run.commits:
        yield "", f"{commit.commit_hash} {commit.subject}"
    for name, reason in run.undone:
        yield "Undone" if name == run.undone[0][0] else "", f"{name}: {reason}"
    for message in run.failed_commits:
        yield "", f"failed: {message}"
    if run.failed_push:
        yield "Not pushed", run.failed_push
    for path in run.gate_changed:
        yield (
            "Changed" if path == run.gate_changed[0] else "",
            f"{path} (check, tests or specs)",
        )
    if run.lost_base:
        yield "Rewritten", f"{run.lost_base[:12]}, the start of the run, left the history"
    if run.cost_usd is not None:
        least = "at least " if run.spent.cost_partial else ""
        yield "Cost", f"{least}{cost_of(run)}"
    if run.usage is not None:
        yield "Tokens", format_tokens(run.usage).removesuffix(" tokens")
    yield "Duration", format_duration(duration_s)
    asked, parked = len(run.questions), run.parked
    if run.kind == "watch" and (asked or parked):
        parts = [f"{asked} question{'s' * (asked != 1)}"] if asked else []
        parts += [f"{parked} parked"] if parked else []
        yield "Waiting", f"{', '.join(parts)}: `cuggino status` lists what waits for you"


def _has_attempts(run: RunState) -> bool:
    """Return whether the run was several attempts, of whose commits only one's have landed."""
    return run.kind == "run" and run.slots > 1 and not run.hands


def passed_text(listed: DeliverablesListed | None) -> str:
    """Return `2/3 deliverables (1 blocked)`, or `unknown`."""
    if listed is None:
        return "unknown"
    blocked = f" ({listed.blocked} blocked)" if listed.blocked else ""
    return f"{listed.passed}/{len(listed.deliverables)} deliverables{blocked}"


def _next_steps(
    run: RunState,
    hint: str | None,
    journaled: bool,
    spec_issues_folder: str,
    has_git: bool,
) -> list[str]:
    resuming = hint or _how_to_resume(run, journaled)
    match run.ending:
        case "approved":
            settle = 'set checkCommand and "gate": "block", so that a check decides'
            return [_review(run, has_git), *([settle] if run.checked is False else [])]
        case "spec_issue":
            file = f"{spec_issues_folder}/{run.spec_issue_file}"
            again = "" if run.kind == "watch" else ", then run again"
            return [f"read {file}", f"answer it with `cuggino issues answer`{again}"]
        case "max_iterations" if run.kind == "deliver":
            return ["give it more sessions, or refine SPEC.md, then run again"]
        case "max_iterations":
            return ["raise maxIterations, or refine the specs, then run again"]
        case "blocked":
            return ["remove what blocks them, then run again"]
        case "stalled" if run.kind == "deliver":
            return ["see what went wrong, refine SPEC.md, then run again"]
        case "stalled":
            found = "read the findings in .cuggino/tbd and decide, " if run.tbd_files else ""
            return [f"{found}refine the specs, then run again"]
        case "failed":
            return ["see the error", resuming]
        case "quota":
            return [f"wait until the limit resets, then: {resuming}"]
        case "budget":
            more = (
                "each start has the whole budget"
                if run.kind == "watch"
                else "give it a larger limit"
            )
            return [f"{resuming}; {more}"]
        case "interrupted":
            return [resuming]
        case "planned" | None:
            return [hint] if hint else []
        case _ as never:
            assert_never(never)


def _how_to_resume(run: RunState, journaled: bool) -> str:
    if run.kind == "watch":
        command, resume = "cuggino watch", ""
    else:
        command, resume = "cuggino deliver" if run.kind == "deliver" else "cuggino run", " --resume"
    if not journaled:
        return f"`{command}` starts over: a run without a journal cannot be resumed"
    return f"`{command}{resume}` continues where it stopped"


def _review(run: RunState, has_git: bool) -> str:
    if not has_git:
        return "review the changes; with git, `git diff` would show them"
    if _has_attempts(run) and run.landings:
        landed = f"git log -p -m --first-parent -1 {run.landings[-1].commit_hash}"
        delayed = "" if run.watched.delayed is None else "; then: git merge refs/cuggino/trunk"
        return f"review what has landed: {landed}{delayed}"
    if not run.commits:
        return "review the changes: git status, git diff"
    return f"review the commits: git log -p -{len(run.commits)}"
