"""Sessions that have waited (`<WAITING>`): the instructions for agents, and the resuming."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from reactivex.subject import Subject

from cuggino.agents.base import SpawnOptions
from cuggino.domain import waited_text
from cuggino.events import AgentMessage, Event, Waiting, WaitingEnded, WaitingRefused
from cuggino.operators import Flow, extract_markers, marker_tags
from cuggino.stages.handover import handover
from cuggino.stages.sessions import Resumes

WAITING = """\
- `<WAITING>` `ci`, `process 4711`, `file build/report.xml`, `time 2026-12-01 06:00`, or `person`
  and a question `</WAITING>` when you can only go on after that: its first line names what to wait
  for, and waiting costs nothing, unlike `sleep`. Your session, and all that it started, ends; it is
  resumed with what happened."""
"""How an agent waits, for a list of the markers of its role."""

WAITING_SECTION = f"""\
## Waiting

A session may also end before its work is done, with this at the very beginning of a line:

{WAITING}"""


class Waited(NamedTuple):
    """A session that ended in order to wait, and how its wait ended."""

    marker: Waiting
    result: WaitingEnded | WaitingRefused


def resumed_session(
    begin: Callable[[SpawnOptions], Flow[SpawnOptions]], options: SpawnOptions, waited: Waited
) -> Flow[tuple[SpawnOptions, Resumes | None]]:
    """Return the options of a session that goes on after a wait, and the session to resume.

    `begin` runs before it. A fresh session instead gets its task, the last words of the other, and
    the same news.
    """
    news = yield from begin(replace(options, prompt=waited_text(waited.result)))
    prompt = f"{options.prompt}\n\n{handover(waited.marker.words, '')}\n\n{news.prompt}"
    session_id = waited.marker.session_id
    resumes = Resumes(session_id, news.prompt) if session_id is not None else None
    return replace(news, prompt=prompt), resumes


def waiting_in(message: str) -> str | None:
    """Return the content of the `<WAITING>` in a session's last message; None without one."""
    found: list[Event] = []
    messages: Subject[Event] = Subject()  # read at once, on whatever thread
    tags = marker_tags(Waiting)
    messages.pipe(extract_markers(tags, at_line_start=tags)).subscribe(found.append)
    messages.on_next(AgentMessage(text=message))
    messages.on_completed()
    return next((event.content for event in found if isinstance(event, Waiting)), None)
