"""The text of `cuggino status`: what runs in a project, and what waits for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import groupby
from types import MappingProxyType

from cuggino.runs import LastRun, ProjectStatus, RunState, Waiting, cost_of, money, window_text
from cuggino.runs.words import format_duration, sent_back_text
from cuggino_cli.screen.columns import cut
from cuggino_cli.screen.fragments import Fragment, Label, joined
from cuggino_cli.screen.runs import STATES
from cuggino_cli.screen.status import counted_of, free_text, tool_words, usual_end_text
from cuggino_cli.screen.text import flat, inert

_NAMES = 11
_MOST_WAITING = 20
_MOST_WORKERS = 10
_LONGEST_NAME = 60
_MOST_HELD = 5
_LONGEST = 200
"""Characters of a text where the terminal's width is unknown."""

Fact = tuple[str, str]
"""A label and its value."""


def status_fragments(
    status: ProjectStatus, *, columns: int | None, page: str | None = None
) -> list[Fragment]:
    """Return the status; `page` is the link of a live page."""
    lines = [_headline(status)]
    if status.activity is not None:
        lines += [_fact(fact, columns) for fact in _running(status.activity, status)]
    elif status.owner is not None:
        why = status.problem or "it writes no journal, so nothing more is known"
        lines.append(_fact(("Problem" if status.problem else "Journal", why), columns))
    elif status.last is not None:
        lines += [_fact(fact, columns) for fact in _last(status.last, status.at)]
    if page is not None:
        lines.append(_fact(("Page", page), columns))
    if status.waiting:
        lines += [[], [Fragment("heading", "Waiting for you")]]
        lines += [_waiting(one, columns) for one in status.waiting[:_MOST_WAITING]]
        if (more := len(status.waiting) - _MOST_WAITING) > 0:
            lines.append([Fragment("prose", f"  and {more} more")])
    return joined(lines)


def _headline(status: ProjectStatus) -> list[Fragment]:
    owner = status.owner
    if owner is None:
        return [Fragment("heading", "Nothing runs here.")]
    label, word = _word(status.activity, is_anything_open=bool(status.waiting))
    facts = [f"process {owner.pid}"] if owner.pid is not None else []
    if owner.since is not None:
        facts.append(f"since {when_text(owner.since, status.at)}")
    what = inert(flat(owner.command or "cuggino"))
    rest = f" ({', '.join(facts)})" if facts else ""
    return [Fragment("heading", f"{what}: "), Fragment(label, word), Fragment("plain", rest)]


_STATES: Mapping[str, tuple[Label, str]] = MappingProxyType(
    {
        "paused": ("caution", "paused"),
        "pausing": ("caution", "pausing after this stage"),
        "stopping": ("caution", "stopping after this stage"),
        "idle": ("progress", "waiting for work"),
        "ended": ("progress", "ending"),
        "working": ("progress", "running"),
    }
)


_PLACES: Mapping[str, str] = MappingProxyType(
    {
        "queue": "To land",
        "landing": "Landing",
        "proposed": "Proposed",
        "sent-back": "Sent back",
        "retry": "Retry",
    }
)
"""The label of an item by its place; at work, it has the number of its slot."""


def _word(activity: RunState | None, *, is_anything_open: bool) -> tuple[Label, str]:
    if activity is None or activity.state != "waiting":
        return _STATES[activity.state if activity is not None else "working"]
    if activity.wait is not None:
        return "warning", "waiting"
    # Without an open question it was settled, which a watch notices soon.
    return ("caution", "waiting for you") if is_anything_open else ("progress", "resuming shortly")


def _running(activity: RunState, status: ProjectStatus) -> Iterator[Fact]:
    now = status.at
    if activity.item:
        place = counted_of(activity.position, activity.total)
        name = f" ({activity.item})" if activity.title not in ("", activity.item) else ""
        yield "Item", f"{place}{': ' if place else ''}{activity.title or activity.item}{name}"
        if issue := status.issues.get(activity.item):
            yield "Issue", issue
    elif activity.focus:
        yield "Focus", activity.focus
    yield from _slots(activity, status)
    if activity.role:
        since = activity.stage_began
        how_long = f", for {_ago(since, now)}" if since is not None else ""
        yield "Stage", f"{activity.role}{_task(activity)}{how_long}"
    if activity.iteration:
        yield "Iteration", counted_of(activity.iteration, activity.max_iterations)
    if activity.goals:
        yield "Goals", f"{activity.goals_met} of {activity.goals}"
    if activity.agent:
        yield "Agent", " ".join(filter(None, (activity.agent, activity.model)))
    if (tool := activity.tool) is not None:
        yield "Tool", f"{tool_words(activity, '')}, for {_ago(tool.since, now)}"
    if activity.words:
        yield "Says", activity.words
    if (wait := activity.wait) is not None:
        reason = wait.target or ("usage limit" if wait.reason == "quota" else wait.reason)
        end = f", until {when_text(wait.until, now)}" if wait.has_end else ""
        yield "Waits for", f"{reason}{end}"
    if activity.paused_since is not None:
        yield "Paused", f"for {_ago(activity.paused_since, now)}; `cuggino continue` ends it"
    for text in activity.steering:
        yield "Steered", f"{text} (not delivered yet)"
    usual = usual_end_text(activity, now)
    yield "Time", format_duration(activity.elapsed(now)) + (f", {usual}" if usual else "")
    yield from _cost(activity)
    yield from _quota(activity, now)
    if activity.done or activity.parked:
        yield "Items", f"{activity.done} done, {activity.parked} parked"
    if activity.run_id:
        yield "Run", activity.run_id


def _slots(activity: RunState, status: ProjectStatus) -> Iterator[Fact]:
    """Yield the items of a watch with slots, or of hands: at work, landing, waiting."""
    if activity.slots and activity.active_slots < activity.slots:
        yield "Slots", f"{activity.active_slots} of {activity.slots} may be at work"
    yield from _workers(activity)
    if activity.hands and activity.slots:
        yield "Tasks", f"{activity.position} of {activity.total} landed"
    for item in activity.placed:
        where = "Hand" if item.slot <= activity.hands else "Slot"  # an attempt beside a hand
        yield _PLACES.get(item.place or "", f"{where} {item.slot}"), _item(item, status)
    for name, reason in activity.held[:_MOST_HELD]:
        yield "Held", f"{name}: {reason}"
    if (more := len(activity.held) - _MOST_HELD) > 0:
        yield "", f"and {more} more"
    if activity.follow_delayed:
        yield "Branch", f"does not follow yet: {activity.follow_delayed}"


def _workers(activity: RunState) -> Iterator[Fact]:
    """Yield the workers of the cluster with their free places, and its dashboard."""
    workers = activity.workers
    if workers is None:
        return
    count = f"{len(workers)} workers, " if workers else ""
    yield "Cluster", f"{count}{free_text(activity)}"
    for worker in workers[:_MOST_WORKERS]:
        taken = (
            f"{name} {worker.used.get(name, 0):g} of {amount:g} used"
            for name, amount in worker.resources.items()
        )
        facts = (f"{worker.free} of {worker.places} places free", *taken)
        yield "Worker", f"{cut(flat(worker.name), _LONGEST_NAME)}: {', '.join(facts)}"
    if (more := len(workers) - _MOST_WORKERS) > 0:
        yield "", f"and {more} more"
    if activity.dashboard:
        yield "Dashboard", activity.dashboard


def _item(item: RunState, status: ProjectStatus) -> str:
    now = status.at
    facts = [f"on {cut(flat(item.worker), _LONGEST_NAME)}"] if item.worker else []
    if item.lost and item.place == "slot":
        facts.append(f"{cut(flat(item.lost[-1]), _LONGEST_NAME)} was lost")
    if item.place == "proposed":
        note = f" ({flat(item.pull_note)})" if item.pull_note else ""
        facts.append(f"{flat(item.pull_words)}{note} {flat(item.pull_url)}".rstrip())
    if item.role:
        facts.append(f"{item.role}{_task(item)}")
    if item.stage_began is not None:
        facts.append(f"for {_ago(item.stage_began, now)}")
    if item.wait is not None and item.place == "retry":
        facts = [f"again in {format_duration((item.wait.until - now).total_seconds())}"]
        if item.wait.attempt:
            facts.append(f"attempt {item.wait.attempt} of {item.wait.max_attempts}")
    elif item.state in ("waiting", "paused"):
        facts.append(item.wait.reason if item.wait is not None else item.state)
    if item.returns:
        facts.append(sent_back_text(item.returns, item.return_reason))
    if item.place == "slot" and (usual := usual_end_text(item, now)):
        facts.append(usual)
    if item.cost_usd is not None:
        facts.append(cost_of(item))
    facts += [f"message queued: {text}" for text in item.steering]
    if item.tool is not None:
        facts.append(tool_words(item, item.folder))
    if issue := status.issues.get(item.item):
        facts.append(issue)
    return f"{item.title or item.item}: {'; '.join(facts)}"


def _task(activity: RunState) -> str:
    if not activity.task:
        return ""
    title = f" ({activity.task_title})" if activity.task_title else ""
    return f", task {counted_of(activity.task, len(activity.tasks))}{title}"


def _cost(activity: RunState) -> Iterator[Fact]:
    parts = []
    if activity.cost_usd is not None:
        budget = activity.budget
        of = f" of {money(budget)}" if budget is not None else ""
        parts.append(f"{cost_of(activity)}{of}")
    if activity.tokens:
        limit = f" of {activity.max_tokens:,}" if activity.max_tokens is not None else ""
        parts.append(f"{activity.tokens:,}{limit} {activity.token_words}")
    if parts:
        yield "Cost", ", ".join(parts)


def _quota(activity: RunState, now: datetime) -> Iterator[Fact]:
    """Yield the usage windows of each agent's account."""
    for agent, windows in groupby(activity.windows_at(now), key=lambda one: one.agent):
        texts = (
            window_text(one)
            + (f", resets {when_text(one.resets_at, now)}" if one.resets_at else "")
            for one in windows
        )
        yield "Quota", f"{agent}: {'; '.join(texts)}" if agent else "; ".join(texts)


def _last(last: LastRun, now: datetime) -> Iterator[Fact]:
    state = last.shown_state
    word = STATES[state][1] if state in STATES else state
    kind = f"cuggino {last.started.kind}" if last.started is not None else "run"
    how = "was killed" if last.state == "killed" else word
    yield "Last", f"{kind} {last.run_id}: {how}, {last.at.astimezone():%Y-%m-%d %H:%M}"
    if last.started is not None and last.started.focus:
        yield "Focus", last.started.focus
    if last.message:
        yield "Reason", last.message
    yield from _cost(last.activity)
    yield from _quota(last.activity, now)
    if last.resume is not None:
        yield "Resume it", last.resume


def _fact(fact: Fact, columns: int | None) -> list[Fragment]:
    name, text = fact
    keeps = name in ("Resume it", "Run", "Last", "Page")  # which are there to be copied
    return _line("prose", name, text, None if keeps else _room(columns))


_NAMED_BY_IDS = ("approval", "spec-issue", "finding")


def _waiting(waiting: Waiting, columns: int | None) -> list[Fragment]:
    text = ": ".join(filter(None, (waiting.name, waiting.title)))
    if (
        waiting.kind in ("approval", "spec-issue", "finding") and waiting.title
    ):  # their names are ids
        text = f"{waiting.title} ({waiting.hint})"
    return _line("caution", waiting.kind, text, _room(columns))


def _room(columns: int | None) -> int:
    return _LONGEST if columns is None else max(columns - _NAMES - 3, 10)


def _line(label: Label, name: str, text: str, room: int | None) -> list[Fragment]:
    shown = cut(inert(flat(text)), room)
    return [Fragment(label, f"  {name:<{_NAMES}}"), Fragment("plain", shown)]


def _ago(since: datetime, now: datetime) -> str:
    return format_duration(max((now - since).total_seconds(), 0.0))


def when_text(at: datetime, now: datetime) -> str:
    """Return the local time, with the date unless it is today."""
    local = at.astimezone()
    is_today = local.date() == now.astimezone().date()
    return f"{local:%H:%M}" if is_today else f"{local:%Y-%m-%d %H:%M}"
