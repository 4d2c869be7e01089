"""A journal in which every text of every event tries to break out of the page."""

from __future__ import annotations

from datetime import datetime
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from cuggino.events import (
    CommitPerformed,
    Event,
    RunStarted,
    StageFinished,
    StageStarted,
    UnknownEvent,
    event_types,
)
from cuggino.report import FileChange, RunReport, build_report
from cuggino.storage.journal import Entry
from tests.report.journals import START, after

BAD = (
    "</script><script>document.title='owned'</script>"
    "<img src=x onerror=\"document.title='owned'\"><!--<script>"
    "\"'><b onmouseover='document.title=1'>&lt;%{x}]]>\u2028\x00\x1b\u202e\ud800"
    "<a href='javascript:document.title=1'>x</a>"
)


def hostile_report(*, kind: Literal["run", "deliver"] = "run") -> RunReport:
    """Return a report on one event of each kind with all texts `BAD`, names included."""
    events = [
        _filled(RunStarted).model_copy(update={"kind": kind}),
        StageStarted(name=BAD),
        *(_filled(cls) for cls in event_types().values() if cls is not RunStarted),
        UnknownEvent(raw={"_tag": BAD, BAD: [BAD]}),
        StageFinished(outcome={"_tag": BAD, "content": BAD}),
        CommitPerformed(iteration=1, commit_hash=BAD, message=f"title\n{BAD}"),
    ]
    entries = [
        Entry(seq=n, at=after(n), stage=f"{BAD}#1" if n > 1 else None, event=event)
        for n, event in enumerate(events, start=1)
    ]
    return build_report(entries, diffs={BAD: (FileChange(BAD, 1, 1),)})


def _filled(cls: type[Event]) -> Event:
    return cls.model_validate(_fields(cls))


def _fields(cls: type[BaseModel]) -> dict[str, Any]:
    return {name: _value(field.annotation) for name, field in cls.model_fields.items()}


def _value(kind: Any) -> Any:
    """Return a value of the type, with `BAD` wherever it may hold text."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return inner[0]
    if origin in (Union, UnionType):
        return _value(next(one for one in inner if one is not NoneType))
    if origin is dict:
        return {BAD: 1 if inner[1:] == (int,) else [BAD, {BAD: BAD}]}
    if origin is tuple:
        return tuple(_value(one) for one in inner if one is not Ellipsis)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return _fields(kind)
    samples: dict[Any, Any] = {str: BAD, int: 1, float: 1.5, bool: True, datetime: START}
    # The remaining type is JSON: nested text.
    return samples.get(kind, {BAD: [BAD, {BAD: BAD}]})
