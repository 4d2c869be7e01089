"""Conditions that must hold in the morning."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from typing import Any

from cuggino.events import (
    AgentFellBack,
    AgentReplaced,
    AgentRetry,
    CheckFlaky,
    RunContinued,
    SessionEnded,
    UsageUpdate,
)
from cuggino.storage import JournalFile
from tests.soak.items import HANDS, STEADY
from tests.soak.night import Night, Sample

_GROWTH = 1.25
"""By how much memory may grow in the second half of a process, and descriptors by a few."""
_SETTLED = 60.0
"""Seconds after which a process is expected to need no more memory."""
_DESCRIPTORS = 12
_ANSWERS = "'?? .specs/decisions.md\\n'"
"""The change of a project in which questions were answered: a person commits it."""
_REFS = re.compile(r"refs/cuggino/(trunk|followed/.*|snapshots/.*|bases/\d+)")


def problems_of(night: Night) -> Iterator[str]:
    """Yield everything that is wrong."""
    yield from night.problems
    yield from (f"a watch has ended by itself: {end}" for end in night.ends)
    place = night.place
    yield from (problem for problem in place.problems() if _ANSWERS not in problem)
    approved = Counter(
        path.name.partition("-approved-")[2]
        for path in place.workspace.archive.glob("*-approved-*")
    )
    for name in night.items:
        if approved[name] != 1:
            reasons = [path.read_text() for path in place.workspace.parked.glob(f"{name}.reason*")]
            yield f"{name} was approved {approved[name]} times; parked: {reasons}"
    for folder in (place.workspace.backlog, place.workspace.spec_issues):
        for path in folder.glob("*"):
            yield f"{path.name} is left in {folder.name}"
    yield from _of_commits(night)
    yield from _of_hands(night)
    for ref in place.git("for-each-ref", "--format=%(refname)", "refs/cuggino").split():
        if not _REFS.fullmatch(ref):
            yield f"a ref is left: {ref}"
    yield from _of_growth(night.samples)
    yield from _of_totals(night)
    if not night.followed:
        yield "`follow` has printed nothing"
    if night.approvals < len(night.items):
        yield f"{night.approvals} of {len(night.items)} landings were approved"
    waits = sum("-wait" in name for name in night.items)
    if night.ready < waits:
        yield f"{night.ready} of {waits} waits for a file have ended"
    if not night.looks:
        yield "the page was never seen"
    yield from (f"the browser complains: {text}" for text in night.console)


def _of_commits(night: Night) -> Iterator[str]:
    """Check every commit of the branch, and look for words that are lost or landed twice."""
    place, tree = night.place, night.place.root / "checked"
    landed: Counter[str] = Counter()
    for commit in place.git("rev-list", "--first-parent", "work").split():
        place.git("worktree", "add", "-q", "--force", "--detach", str(tree), commit)
        done = subprocess.run(
            ["sh", "check.sh"], cwd=tree, env={**os.environ, STEADY: "1"}, check=False
        )
        if done.returncode:
            yield f"the check fails on {commit} with {done.returncode}"
        place.git("worktree", "remove", "--force", str(tree))
        landed.update(
            re.findall(r"^Item: (\S+)$", place.git("log", "-1", "--format=%B", commit), re.M)
        )
    for name in night.items:
        word = name.rpartition("-")[0]
        path = place.folder / "words" / f"{word}.txt"
        if not path.is_file() or path.read_text() != f"{word}\n":
            yield f"the work on {name} is lost"
        if landed[name] != 1:
            yield f"{name} has landed {landed[name]} times"


def _of_hands(night: Night) -> Iterator[str]:
    for word in HANDS:
        path = night.place.folder / "words" / f"{word}.txt"
        if not path.is_file() or path.read_text() != f"{word}\n":
            yield f"the work of the task {word} is lost"


def _of_growth(samples: list[Sample]) -> Iterator[str]:
    for process in dict.fromkeys(sample.process for sample in samples):
        own = [one for one in samples if one.process == process and one.at >= _SETTLED]
        if len(own) < 12:
            continue
        half = len(own) // 2
        before, after = own[:half], own[half:]
        rss = [max(one.rss for one in part) for part in (before, after)]
        if rss[1] > rss[0] * _GROWTH:
            yield f"memory has grown from {rss[0]:.0f} to {rss[1]:.0f} MiB"
        opened = [max(one.descriptors for one in part) for part in (before, after)]
        if opened[1] > opened[0] + _DESCRIPTORS:
            yield f"descriptors have grown from {opened[0]} to {opened[1]}"


def totals(night: Night) -> list[dict[str, Any]]:
    """Return the facts of the reports of all watches, of which the next resumes a killed one, and
    of the run with hands.
    """
    wholes = [
        one.run_id
        for one in night.place.journals
        if one.started.kind == "watch" or one.started.options.get("hands", 1) != 1
    ]
    return [json.loads(night.place.cuggino("report", run_id, "--json")) for run_id in wholes]


def journal_costs(night: Night) -> float:
    """Return what all sessions have cost, by the journals of all runs."""
    return sum(_spent(one) for one in night.place.journals if one.started.kind == "run")


def _spent(journal: JournalFile) -> float:
    """Return the cost of the sessions that have ended, and what those had told that were cut."""
    spent, at_work = 0.0, dict[str | None, float]()
    for event in (entry.event for entry in journal.entries):
        match event:
            case UsageUpdate(cost_usd=told, item=item):
                at_work[item] = told or 0.0
            case SessionEnded(cost_usd=cost, item=item):
                at_work.pop(item, None)
                spent += cost or 0.0
            case AgentFellBack(item=item) | AgentReplaced(item=item) | AgentRetry(item=item):
                spent += at_work.pop(item, 0.0)
            case RunContinued():  # of a killed process, all of whose sessions were cut
                spent += sum(at_work.values())
                at_work.clear()
            case _:
                pass
    return spent + sum(at_work.values())


def _of_totals(night: Night) -> Iterator[str]:
    told, spent = sum(facts["cost_usd"] for facts in totals(night)), journal_costs(night)
    if abs(told - spent) > 0.005:
        yield f"the reports say ${told:.4f}, the journals ${spent:.4f}"


def _flakes(night: Night) -> int:
    return sum(
        isinstance(entry.event, CheckFlaky)
        for journal in night.place.journals
        for entry in journal.entries
    )


def table(night: Night) -> str:
    """Return the figures of the night."""
    last = {sample.process: sample for sample in night.samples}
    peaks = max((sample.rss for sample in night.samples), default=0.0)
    place = night.place
    rows = [
        ("items", f"{len(night.items)}"),
        ("minutes", f"{night.seconds / 60:.1f}"),
        ("kills of the watch", f"{len(night.kills)}"),
        ("killed agents", f"{len(night.crashes)}"),
        ("watches that ended by themselves", f"{len(night.ends)}"),
        ("full disk", night.disk_full or "not tried"),
        ("usage limits", f"{len(night.model.limits)}"),
        ("answers at the page", f"{night.answers}"),
        ("approvals of landings", f"{night.approvals}"),
        ("files that agents waited for", f"{night.ready}"),
        ("flakes of the check", f"{_flakes(night)}"),
        ("requests", ", ".join(f"{n} {who}" for who, n in sorted(night.model.replies.items()))),
        ("lines of follow", f"{night.followed}"),
        ("looks at the page", f"{night.looks}"),
        ("commits", place.git("rev-list", "--count", "--first-parent", "work").strip()),
        ("memory, at most", f"{peaks:.0f} MiB"),
        (
            "each process at its end",
            "; ".join(
                f"{one.at / 60:.0f} min, {one.rss:.0f} MiB, {one.descriptors} descriptors, "
                f"{one.threads} threads"
                for one in last.values()
            ),
        ),
        ("cost by the journals", f"${journal_costs(night):.4f}"),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows)])
