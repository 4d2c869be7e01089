"""The status area: rows of text by the columns of the terminal, from the activity of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Self

from cuggino.events import Event
from cuggino.runs import RunState, Wait, cost_of, money
from cuggino.runs.words import format_duration
from cuggino_cli.screen.columns import cut, padded, width
from cuggino_cli.screen.fragments import Fragment, Label
from cuggino_cli.screen.text import first_line, flat, inert

Row = list[Fragment]

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_PER_S = 2
_BETWEEN = " · "
_NARROW = 36
"""Columns below which the stage of a slot is left out."""
_SHORT = 60
"""Columns below which the shortest words are used."""
_MEDIUM = 76
"""Columns from which the model of a slot is shown."""
_WIDE = 110
"""Columns from which the running tool shares the first row."""
_TOOL = 36
"""Columns that it needs there."""
_GAP = 2
"""Columns between the totals and the keys, at least."""
_LOW = 8
"""Rows of a terminal below which the status is one row."""
_SHARE = 3
"""The status takes at most one part in this many of the height."""

_ROLES: Mapping[str, str] = MappingProxyType(
    {"preparing": "prepare", "planning": "plan", "implementing": "implement", "reviewing": "review"}
)
_NAME, _LAP, _GOALS, _TASK, _ROLE, _MODEL = range(6)
_SHRINKING = (_MODEL, _TASK, _LAP, _TASK, _MODEL, _TASK, _GOALS, _NAME, _LAP)
"""The order in which the parts of the first row are shortened."""
_LIMITS: Mapping[str, str] = MappingProxyType(
    {"five_hour": "5 hours", "seven_day": "7 days", "seven_day_opus": "7 days, Opus"}
)
_WAITS: Mapping[str, str] = MappingProxyType({"login": "Log in to continue", "retry": "Failed"})


def usual_end_text(activity: RunState, now: datetime) -> str:
    """Return when the work usually ends, after that time how long it usually takes, or ""."""
    end, forecast = activity.usual_end, activity.forecast
    if end is None or forecast is None:
        return ""
    if end <= now:
        return f"usually takes {format_duration(forecast.duration)}"
    local = end.astimezone()
    is_today = local.date() == now.astimezone().date()
    return f"usually ends at {local:%H:%M}" + ("" if is_today else f" on {local:%Y-%m-%d}")


def spinner_line(index: int, elapsed_s: float) -> str:
    """Return `⠹ Working... (12s)`, with the time from one second on (CUG-134)."""
    time = f" ({format_duration(elapsed_s)})" if abs(elapsed_s) >= 1 else ""
    return f"{_FRAMES[index % len(_FRAMES)]} Working...{time}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys that work, as the status area names them."""

    more: bool = True
    """True if `v` shows more detail; otherwise it shows less."""
    controls: bool = True
    """True if the run can be paused, steered and stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """The status of a coding loop or a watch."""

    activity: RunState = field(default_factory=RunState)
    seen: datetime | None = None
    """The time of the last event, other than a ping."""
    keys: Keys | None = field(default_factory=Keys)
    """None without a keyboard."""
    note: str = ""
    """The action just requested with a key."""
    note_until: datetime | None = None
    """The time until which the note is shown; None for no limit."""
    project: str = ""
    """The folder that paths are relative to."""

    def add(self, event: Event, *, at: datetime) -> Self:
        return replace(self, activity=self.activity.add(event, at=at), seen=at)

    def rows(self, now: datetime, *, columns: int, height: int) -> list[Row]:
        """Return the rows, each short of the last column, the most important ones if few fit."""
        return status_rows(self, now, columns=columns, height=height)

    def title(self) -> str:
        """Return the title of the terminal: state, item, stage and cost."""
        activity = self.activity
        working = f"{len(activity.at_work)} at work" if activity.at_work else "working"
        words = [activity.state if activity.state != "working" else role_text(activity) or working]
        if activity.item:
            place = counted_of(activity.position, activity.total, "/")
            words.append(" ".join(filter(None, (place, activity.title))))
        if activity.cost_usd is not None:
            words.append(cost_of(activity))
        return "cuggino: " + ", ".join(flat(word) for word in words)


def status_rows(status: RunStatus, now: datetime, *, columns: int, height: int) -> list[Row]:
    """Return the rows of the status, by columns and height."""
    activity = status.activity
    special = special_row(activity, now, columns)
    call = special or _call(activity)
    if activity.at_work or activity.landing:
        return _rows_of_slots(status, call, now, columns=columns, height=height)
    place = _place(activity, columns)
    tool = _tool_row(status, now, columns)
    if columns >= _WIDE and tool and not special:
        left = columns - 1 - _width(place) - len(_BETWEEN)
        if left >= _TOOL:
            place += [Fragment("plain", _BETWEEN), *cut_row(tool, left + 1)]
            tool = []
    if special and activity.state not in ("pausing", "stopping"):
        tool = []  # nothing runs
    totals = total_rows(status, now, columns)
    rows = [row for row in (call, place, tool, *totals) if row]
    return [cut_row(row, columns) for row in rows[: most_rows(height)]]


def _rows_of_slots(
    status: RunStatus, special: Row, now: datetime, *, columns: int, height: int
) -> list[Row]:
    """Return a row for each slot at work and for the landing, between a wait and the totals."""
    totals = total_rows(status, now, columns)
    rows = list(_slot_rows(status, now, columns))
    room = most_rows(height) - len(totals) - bool(special)
    if len(rows) > room:
        left = len(rows) - max(room - 1, 0)
        more: list[Row] = [[Fragment("prose", f"and {left} more at work")]] if room > 0 else []
        rows = [*rows[: max(room - 1, 0)], *more]
    shown = [row for row in (special, *rows, *totals) if row]
    return [cut_row(row, columns) for row in shown[: most_rows(height)]]


def _slot_rows(status: RunStatus, now: datetime, columns: int) -> Iterator[Row]:
    """Yield a row for each item in a slot, and for the one that is being landed."""
    activity = status.activity
    items = [*activity.at_work, *filter(None, [activity.landing])]
    cells = [_slot_cells(item, columns) for item in items]
    widths = [max(map(width, column)) for column in zip(*cells, strict=True)]
    gap = " " * (1 if columns < _SHORT else _GAP)
    for item, texts in zip(items, cells, strict=True):
        number, name, *others = map(padded, texts, widths)
        head = [Fragment("heading", f"{number} {name}")]
        head += [Fragment("plain", f"{gap}{text}") for text in others if text]
        end = f"{gap}{since_text(item, now)}" if item.wait is None else ""
        if columns >= _WIDE:
            end += f"{cost_of(item):>10}"
        room = max(columns - 1 - _width(head) - len(gap) - len(end), 0)
        doing = doing_text(status, item, now, short=columns < _SHORT)
        words = gap + padded(cut(doing, room + 1), room)
        yield [*head, Fragment("tool", words), Fragment("plain", end)]


def _slot_cells(item: RunState, columns: int) -> list[str]:
    """Return slot, name, stage, model and worker, as far as there are columns for them."""
    is_landing = item.place == "landing"
    name = cut(flat(item.title or item.item), columns // (3 if columns < _SHORT else 4))
    stage = "land" if is_landing else role_text(item)
    if item.returns:
        stage = f"{stage} ↩{item.returns}"
    if item.iteration and not is_landing and columns >= _SHORT:
        stage = f"{counted_of(item.iteration, item.max_iterations, '/')} {stage}"
    model = _model(item) if columns >= _MEDIUM and not is_landing else []
    words = " ".join(model if columns >= _WIDE else model[-1:])
    stage = stage if columns >= _NARROW else ""
    worker = cut(flat(item.worker), columns // 6) if columns >= _MEDIUM else ""
    number = "→" if is_landing else str(item.slot)
    return [number, name, stage, cut(words, columns // 6), worker]


def since_text(item: RunState, now: datetime) -> str:
    """Return how long the tool runs, or how long the agent is silent."""
    since = item.tool.since if item.tool is not None else item.last or item.stage_began
    return "" if since is None else format_duration((now - since).total_seconds())


def doing_text(status: RunStatus, item: RunState, now: datetime, *, short: bool) -> str:
    """Return the running tool, with `short` its name only; a wait; or `…` for a silent agent."""
    if item.wait is not None:
        return wait_text(item.wait, now, short=True)
    if item.paused_since is not None:
        return "paused"
    if item.tool is None:
        return "…"
    words = flat(item.tool.name) if short else tool_words(item, item.folder or status.project)
    return f"▶ {words}"


def most_rows(height: int) -> int:
    """Return how many rows the status may take."""
    return 1 if height < _LOW else max(height // _SHARE, 1)


def special_row(activity: RunState, now: datetime, columns: int) -> Row:
    """Return the row of a pause, a stop or a wait; empty while the run works."""
    short = columns < _SHORT
    match activity.state:
        case "stopping":
            return [Fragment("caution", "STOPPING"), Fragment("plain", " after this stage")]
        case "pausing":
            return [Fragment("caution", "PAUSING"), Fragment("plain", " after this stage")]
        case "paused":
            since = activity.paused_since or now
            text = f" since {since.astimezone():%H:%M}" + ("" if short else " · nothing runs")
            return [Fragment("caution", "PAUSED"), Fragment("plain", text)]
        case "waiting" if activity.wait is not None:
            return [Fragment("warning", wait_text(activity.wait, now, short=short))]
        case "waiting":
            calls = "; ".join(activity.calls) or "`cuggino issues` lists the spec issues"
            return [Fragment("warning", f"⏳ Waiting for you: {calls}")]
        case _:
            return []


def _call(activity: RunState) -> Row:
    """Return the row that asks for the user while other slots keep working, or an empty one."""
    if activity.slots and activity.calls:
        return [Fragment("warning", "Waiting for you: " + "; ".join(activity.calls))]
    if activity.follow_delayed:
        text = f"Your branch does not follow yet: {flat(activity.follow_delayed)}"
        return [Fragment("caution", text)]
    return []


def wait_text(wait: Wait, now: datetime, *, short: bool) -> str:
    """Return what is waited for, and until when."""
    left = max((wait.until - now).total_seconds(), 0.0)
    at = f"{wait.until.astimezone():%H:%M}"
    if wait.reason == "quota":
        if short:
            return f"⏳ quota: {format_duration(left)} left, until {at}"
        limit = f" ({_LIMITS.get(wait.limit, flat(wait.limit))})" if wait.limit else ""
        return f"⏳ Usage limit{limit} · resumes at {at}, in {format_duration(left)}"
    if wait.target:
        has_end = wait.has_end and not short
        limit = f" · until {at} at most, {format_duration(left)} left" if has_end else ""
        return f"⏳ {flat(wait.target)}{limit}"
    if wait.reason == "hours":
        if short:
            return f"⏳ hours: until {at}"
        return f"⏳ Outside of the hours · resumes at {at}, in {format_duration(left)}"
    what = _WAITS.get(wait.reason, flat(wait.reason).replace("_", " "))
    attempt = counted_of(wait.attempt, wait.max_attempts)
    again = f"retry {attempt}" if attempt else "again"
    return f"⏳ {what} · {again} in {format_duration(left)}"


def _place(activity: RunState, columns: int) -> Row:
    """Return the row with item, iteration, task, stage and model."""
    if not activity.role and not activity.item:
        idle = _idle(activity)
        return [Fragment("plain", idle)] if idle else []
    room = columns - 1
    short = columns < _SHORT
    item = activity.title or first_line(activity.focus)
    name = cut(flat(item), max(columns // 3, 12)) if item else ""
    where = counted_of(activity.position, activity.total, "/" if short else " of ")
    if name and where:
        name = f"{where}{' ' if short else ': '}{name}"
    lap = ""
    if activity.iteration:
        lap = counted_of(activity.iteration, activity.max_iterations, "/")
        unit = "session" if activity.kind == "deliver" else "iteration"
        lap = lap if short else f"{unit} {lap}"
    goals = f"{activity.goals_met}/{activity.goals} done" if activity.goals else ""
    model = _model(activity)
    parts = [
        [name, cut(name, max(columns // 4, 10))],
        [lap, lap.rpartition(" ")[2], ""],
        [goals, ""],
        _task(activity),
        [role_text(activity)],
        [" ".join(model), model[-1], ""] if model else [""],
    ]
    for shrunk in _SHRINKING:
        if width(_BETWEEN.join(part[0] for part in parts if part[0])) <= room:
            break
        parts[shrunk] = parts[shrunk][1:] or parts[shrunk]
    labels: list[Label] = ["heading", "plain", "plain", "plain", "plain", "prose"]
    row: Row = []
    for (text, *_), label in zip(parts, labels, strict=True):
        if text:
            row += [Fragment("prose", _BETWEEN)] if row else []
            row.append(Fragment(label, text))
    return row


def _idle(activity: RunState) -> str:
    if activity.kind == "watch" and activity.state in ("idle", "waiting"):
        return "Waiting for work" if activity.state == "idle" else ""
    return flat(first_line(activity.focus)) or "Starting"


def _task(activity: RunState) -> list[str]:
    """Return the task in words, from the longest to none."""
    if not activity.task or activity.role != "implementing":
        return ["", "", "", ""]
    number = f"task {counted_of(activity.task, len(activity.tasks))}"
    title = flat(activity.task_title)
    return [
        f"{number}: {title}" if title else number,
        f"{number}: {cut(title, 24)}" if title else number,
        number,
        "",
    ]


def role_text(activity: RunState) -> str:
    """Return the stage, as a verb."""
    return flat(_ROLES.get(activity.role, activity.role))


def counted_of(count: int, total: int | None, of: str = " of ") -> str:
    """Return `2 of 5`, `2` if the total is unknown, or "" for none."""
    return f"{count}{of}{total}" if count and total else str(count or "")


def _model(activity: RunState) -> list[str]:
    agent = flat(activity.agent).partition(":")[0]
    return [word for word in (agent, flat(activity.model or "")) if word]


def _tool_row(status: RunStatus, now: datetime, columns: int) -> Row:
    """Return the running tool with its time, or how long the agent is silent."""
    activity, tool = status.activity, status.activity.tool
    if tool is None:
        if activity.state == "idle":
            return []
        silent = (now - (status.seen or now)).total_seconds()
        index = int(now.timestamp() * _FRAMES_PER_S)
        return [Fragment("plain", spinner_line(index, silent))]
    since = f"  {format_duration((now - tool.since).total_seconds())}"
    others = f" +{len(activity.tools) - 1}" if len(activity.tools) > 1 else ""
    words = f"▶ {tool_words(activity, status.project)}"
    head = cut(words, max(columns - len(since) - len(others), 4))
    return [Fragment("tool", head), Fragment("prose", others), Fragment("plain", since)]


def tool_words(activity: RunState, project: str) -> str:
    """Return name and target of the running tool, with paths relative to the project."""
    tool = activity.tool
    assert tool is not None
    target = flat(tool.target)
    if project:
        target = target.replace(f"{project.rstrip('/')}/", "")
    return " ".join(filter(None, (flat(tool.name).rpartition("__")[2], target)))


def total_rows(status: RunStatus, now: datetime, columns: int) -> list[Row]:
    """Return the row of time, cost and keys; two rows if they do not fit one."""
    room = columns - 1
    keys = _key_words(status)
    texts = _total_texts(status, now)
    for words, enough in zip(keys, (5, 5, 6), strict=False):
        for text in texts[:enough]:
            gap = room - width(text) - width(words)
            if gap >= _GAP or (gap >= 0 and not words):
                return [[Fragment("plain", text + " " * gap), Fragment("prose", words)]]
    least = next((text for text in texts if width(text) <= room), texts[-1])
    last = next((words for words in keys if width(words) <= room), "")
    return [[Fragment("plain", cut(least, columns))], [Fragment("prose", last)]]


def _total_texts(status: RunStatus, now: datetime) -> list[str]:
    """Return time, cost and counts, from the longest to the shortest."""
    activity = status.activity
    if status.note and (status.note_until is None or now < status.note_until):
        return [flat(status.note), cut(flat(status.note), 30)]
    time = format_duration(activity.elapsed(now))
    cost, short_cost = "", ""
    if activity.cost_usd is not None or activity.budget is not None:
        spent = cost_of(activity) or money(0.0)
        limit = activity.budget
        cost = spent + ("" if limit is None else f" of {money(limit)}")
        short_cost = spent + ("" if limit is None else f"/{limit:g}")
    tokens = _count(activity.tokens)
    long_tokens = f"{tokens} {activity.token_words}" if tokens else ""
    if tokens and activity.max_tokens is not None:
        long_tokens = f"{tokens} of {_count(activity.max_tokens)} {activity.token_words}"
    said = f"{len(activity.steering)} queued" if activity.steering else ""
    done = ""
    if activity.kind == "watch":
        counts = ((activity.done, "done"), (activity.parked, "parked"))
        done = ", ".join(f"{count} {word}" for count, word in counts if count)
    queued = f"{activity.queued} waiting" if activity.kind == "watch" and activity.queued else ""
    waits = ((activity.queue, "to land"), (activity.proposed, "proposed"))
    to_land = ", ".join(f"{len(items)} {word}" for items, word in waits if items)
    fewer = activity.active_slots < activity.slots
    slots = f"{activity.active_slots} of {activity.slots} slots" if fewer else ""
    many = ", ".join(filter(None, (done, to_land, queued, slots, free_text(activity))))
    done = ", ".join(filter(None, (done, to_land)))
    usual = usual_end_text(activity, now)
    variants = (
        (time, usual, cost, many, long_tokens, said),
        (time, cost, many, long_tokens, said),
        (time, cost, done, long_tokens, said),
        (time, cost, done, tokens, said),
        (time, short_cost, done.replace(",", ""), "" if done else tokens, said),
        (time, short_cost, said),
        (time, short_cost),
        (time,),
    )
    return [_BETWEEN.join(filter(None, variant)) for variant in variants]


def free_text(activity: RunState) -> str:
    """Return the free places of the cluster, or ""."""
    workers = activity.workers
    if not workers:
        return "" if workers is None else "no workers"
    return f"{sum(one.free for one in workers)} of {sum(one.places for one in workers)} places free"


def _key_words(status: RunStatus) -> tuple[str, ...]:
    """Return the keys in words, from the longest to the shortest."""
    keys = status.keys
    if keys is None:
        return ("",)
    detail = "more" if keys.more else "less"
    state = status.activity.state
    if not keys.controls or state in ("stopping", "ended"):
        return (f"v {detail}", "v")
    if state in ("pausing", "paused"):
        return (f"p continue  s steer  v {detail}  q stop", "p go on  s v q", "p s v q")
    return (f"p pause  s steer  v {detail}  q stop", "p s v q")


def _count(tokens: int) -> str:
    if tokens < 1000:
        return str(tokens or "")
    return f"{tokens / 1000:.0f}k" if tokens < 999_500 else f"{tokens / 1_000_000:.2f}M"


def _width(row: Sequence[Fragment]) -> int:
    return sum(width(fragment.text) for fragment in row)


def cut_row(row: Sequence[Fragment], columns: int) -> Row:
    """Cut the row short of the last column."""
    left, kept = columns, []
    for label, given in row:
        text = inert(given).replace("\n", " ").replace("\t", " ")
        shown = cut(text, left)
        if shown:
            kept.append(Fragment(label, shown))
        left -= width(shown)
        if shown != text:
            break
    return kept
