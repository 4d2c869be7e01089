"""A journal in which every text of every event tries to break out of the page."""

from __future__ import annotations

from datetime import datetime
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from cuggino import events as ev
from cuggino.report import CommitDiff, FileChange, RunReport, build_report
from cuggino.report.cutting import Cut
from cuggino.storage.journal import Entry
from tests.report.journals import START, after

BAD = (
    "</script><script>document.title='owned'</script>"
    "<img src=x onerror=\"document.title='owned'\"><!--<script>"
    "\"'><b onmouseover='document.title=1'>&lt;%{x}]]>\u2028\x00\x1b\u202e\ud800"
    "<a href='javascript:document.title=1'>x</a>"
)


MARKDOWN = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<a href=javascript:alert(1)>x</a>",
    "<style>*{background:url(https://evil.example/x)}</style>",
    "<details open ontoggle=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<form action=https://evil.example><button>go</button></form>",
    "<base href=https://evil.example/>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<div style='position:fixed;inset:0'>x</div>",
    "<p id=main class=card>x</p>",
    "<!-- --!><script>alert(1)</script> -->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "</style></title></textarea></template><script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](jav%0Aascript:alert(1))",
    "[x](\x01javascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:msgbox(1))",
    "[x](file:///etc/passwd)",
    "[x](/r/1/stop)",
    "[x](//evil.example)",
    "[x](x)",
    "[x](#main)",
    "[x](mailto:a@b.example)",
    '[x](https://a.example "" onmouseover=alert(1) x="")',
    '[x](https://a.example/"onmouseover=alert(1))',
    "![x](https://evil.example/leak.png)",
    "![x](javascript:alert(1))",
    "![x][1]\n\n[1]: https://evil.example/leak.png",
    "[x][2]\n\n[2]: javascript:alert(1)",
    "<javascript:alert(1)>",
    "<https://a.example/><script>alert(1)</script>",
    '```"><script>alert(1)</script>\ncode\n```',
    '``` x" onmouseover=alert(1) class="card\ncode\n```',
    "| a |\n|:-:|\n| <img src=x onerror=alert(1)> |",
    "7. <b onclick=alert(1)>x</b>",
    "# <script>alert(1)</script>",
    "> <object data=https://evil.example></object>",
)
"""Markdown that tries to become active, to load something, or to look like the page."""

VECTORS = "\n\n".join(MARKDOWN)


def hostile_report(*, kind: Literal["run", "deliver"] = "run") -> RunReport:
    """Return a report on one event of each kind with all texts `BAD`, names included."""
    events = [
        _filled(ev.RunStarted).model_copy(update={"kind": kind}),
        ev.StageStarted(name=BAD),
        *(_filled(cls) for cls in ev.event_types().values() if cls is not ev.RunStarted),
        ev.UnknownEvent(raw={"_tag": BAD, BAD: [BAD]}),
        ev.ToolCall(name=BAD, input={BAD: BAD, "command": BAD}, id="1"),
        ev.ToolResult(name="1", output=BAD, is_error=True),
        ev.AgentMessage(text=VECTORS),
        ev.StageFinished(outcome={"_tag": BAD, "content": BAD}),
        ev.CommitPerformed(iteration=1, commit_hash=BAD, message=f"title\n{BAD}"),
    ]
    entries = [
        Entry(seq=n, at=after(n), stage=f"{BAD}#1" if n > 1 else None, event=event)
        for n, event in enumerate(events, start=1)
    ]
    return build_report(
        entries, diffs={BAD: CommitDiff((FileChange(BAD, 1, 1),), Cut(f"+{BAD}\n-{BAD}\n@@{BAD}"))}
    )


def _filled(cls: type[ev.Event]) -> ev.Event:
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
    if origin is dict and (inner[1] is str or get_origin(inner[1]) is tuple):
        return {BAD: _value(inner[1])}
    if origin is dict:
        return {BAD: 1 if inner[1:] in ((int,), (float,)) else [BAD, {BAD: BAD}]}
    if origin is tuple:
        return tuple(_value(one) for one in inner if one is not Ellipsis)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return _fields(kind)
    samples: dict[Any, Any] = {str: BAD, int: 1, float: 1.5, bool: True, datetime: START}
    # The remaining type is JSON: nested text.
    return samples.get(kind, {BAD: [BAD, {BAD: BAD}]})
