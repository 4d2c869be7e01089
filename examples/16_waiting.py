"""A durable wait: the flow is left while it waits for a file, and waits on when run again."""

from pathlib import Path

import cuggino
from cuggino import emit
from cuggino.events import FileExists, Note, WaitingStarted
from cuggino.loops import durable
from cuggino.operators import Flow
from cuggino.stages import waiting


def story() -> Flow[None]:
    """Wait up to an hour for a report; what has happened is in the journal."""
    yield from emit(Note(content="waiting for the report"))
    ended = yield from waiting(FileExists(path="report.xml", within=3600, default="give up"))
    yield from emit(Note(content=f"{ended.outcome}: {ended.answer or 'the report is there'}"))


for number in (1, 2):
    for event in cuggino.iterate(durable(story, Path("journal.jsonl"))):
        print(number, event.content if isinstance(event, Note) else event.tag)
        if number == 1 and isinstance(event, WaitingStarted):
            break  # as if this process were killed
        if number == 2:
            Path("report.xml").touch()

# prints:
# 1 waiting for the report
# 1 WaitingStarted
# 2 WaitingStarted
# 2 WaitingEnded
# 2 happened: the report is there
