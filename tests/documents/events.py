"""`docs/events.md`: every event, from the models, and their order, from the services."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel

from cuggino.events import (
    CommitPerformed,
    DeliverableState,
    DeliverStreamEvent,
    Event,
    LlmMarkerEvent,
    LlmTerminalMarkerEvent,
    LoopEvent,
    PlanBuildStreamEvent,
    Usage,
    WatchEvent,
    dump_event,
    guards,
)
from cuggino.loops import DeliverService, LoopService, PlanBuildService, WatchService
from cuggino_cli.topics import (
    categories,
    default_text,
    field_docs,
    plain,
    type_name,
    who_says,
)
from tests.documents.markdown import drawing, item, paragraphs, table

_EXAMPLE = CommitPerformed(iteration=1, commit_hash="d97a60c", message="Add conversions")

_INTRO = f"""\
# Events

<!-- Written by `python -m tests.documents` from the models: change those. -->

Everything that a loop says is an event: a frozen pydantic model in the library, a line of JSON with
`--json` and in the journal. `_tag` is the name of its class, the other fields are in snake_case:

```json
{json.dumps(json.loads(dump_event(_EXAMPLE)))}
```

`cuggino.dump_event` writes that line and `cuggino.parse_event` reads it. A tag that this version
does not know becomes an `UnknownEvent` with the whole object in `raw`, and fields that it does not
know are passed over, so that a reader keeps working with a newer writer. `cuggino help events
NAME` tells one event, `cuggino help events --json` gives the JSON Schema of a line.

An event's base class is its category, and each category has a guard:

```python
from reactivex import operators as ops

markers = runtime.run(focus="the login page").pipe(ops.filter(cuggino.is_llm_marker_event))
```
"""

_ORDER = """\
## Order

`[x]` may be missing, `{x}` is repeated, `x|y` is one of them, a `|` at the end is the end of the
stream, and `agent` is a session of an agent. Policy events may come anywhere within a stage, one
of a resumed run (`RunResumed`) first of all. An error ends a stream with no further event, but
where it is told otherwise.
"""

_AGENT = """\
### A session of an agent

```text
[SystemMessage] { [Thinking] {MessageDelta} AgentMessage | ToolCall [GuardDenied] ToolResult
  | PingEvent | UsageUpdate | RateLimited | UserMessage } SessionEnded|
```

In a loop a marker stands where its tag stood: the text before it, the marker, the text after it.
The first terminal marker ends the stage.
"""

_RUN = """\
`RequestChanges` in the place of `Approved` is followed by the `IterationStart` of the next round,
or by `LoopMaxIterations` when there is none; so is an `Approved` that does not count, after
`ApprovalBlocked`. `SpecIssue` of any agent is followed by `LoopSpecIssue`, the last event.
`CommitFailed` and `PushFailed` stand where the other would. `TaskLimitReached` comes before a
review that is early. `LoopStalled` ends a loop that gets nowhere.
"""

_WATCH = """\
`WatchSpecIssueWaiting` stands in the place of `WatchBacklogWaiting` while issues are open. The
audit is
`WatchAuditStarted`, a session with `ToBeDiscussed WatchTbdItemFound` in it, then `WatchAuditEnded`,
`WatchAuditInterrupted` or `WatchAuditFailed`. An item ends with `WatchItemCompleted`,
`WatchItemRetained`, `WatchItemRetry` or `WatchItemParked`, or with none of them after a spec issue.
"""

_LOOPS: Mapping[str, tuple[Any, Any, str]] = {
    "`cuggino run`": (LoopService, LoopEvent, _RUN),
    "`cuggino watch`": (WatchService, WatchEvent, _WATCH),
    "`cuggino deliver`": (DeliverService, DeliverStreamEvent, ""),
    "`cuggino loop`": (PlanBuildService, PlanBuildStreamEvent, ""),
}


def events() -> str:
    """The whole document."""
    return "\n".join(_lines()).rstrip("\n") + "\n"


def _lines() -> Iterator[str]:
    yield _INTRO
    yield from _categories()
    yield _ORDER
    yield _AGENT
    for command, (service, union, note) in _LOOPS.items():
        yield f"### {command}"
        yield ""
        yield from drawing(service.run.__doc__)
        if note:
            yield from paragraphs(note)
        names = ", ".join(f"`{one.__name__}`" for one in get_args(union))
        yield f"Categories: {names}."
        yield ""
    for category, members in categories().items():
        yield f"## {category.__name__}"
        yield ""
        yield from paragraphs(_of_category(category))
        for cls in members:
            yield from _event(cls)
    yield "## Values in events"
    yield ""
    for value in (Usage, DeliverableState):
        yield from _event(value)


def _categories() -> Iterator[str]:
    functions = {name: value for name, value in vars(guards).items() if name.startswith("is_")}

    def row(cls: type[Event]) -> tuple[str, str, str]:
        guard = f"is_{_snake(cls.__name__)}"
        return (
            f"[`{cls.__name__}`](#{cls.__name__.lower()})",
            _of_category(cls).split("\n\n")[0].replace("\n", " "),
            f"`{guard}`" if guard in functions else "",
        )

    yield from table(("category", "events", "guard"), map(row, categories()))


def _snake(name: str) -> str:
    return "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in name).lstrip("_")


def _of_category(cls: type[Event]) -> str:
    text = inspect.cleandoc(cls.__doc__ or "").removeprefix("Category: ")
    return text[0].upper() + text[1:]


def _event(cls: type[BaseModel]) -> Iterator[str]:
    yield f"### {cls.__name__}"
    yield ""
    yield from paragraphs(cls.__doc__ or "")
    if issubclass(cls, LlmMarkerEvent):
        ends = " It ends the stage." if issubclass(cls, LlmTerminalMarkerEvent) else ""
        yield item(f"as an agent writes it: `<{cls.tag_name()}>...</{cls.tag_name()}>`.{ends}")
        yield item(f"said by: {', '.join(who_says(cls))}")
    docs = field_docs(cls)
    for name, field in cls.model_fields.items():
        default = default_text(field)
        shown = f" = `{default}`" if default else ""
        told = f". {plain(docs[name])}" if name in docs else ""
        yield item(f"`{name}`: {type_name(field.annotation)}{shown}{told}")
    if cls.model_fields:
        yield ""
