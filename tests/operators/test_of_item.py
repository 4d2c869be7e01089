"""`of_item`: the events of an attempt name its backlog item."""

from __future__ import annotations

import reactivex as rx

from cuggino.events import AgentMessage, Note, ToolCall
from cuggino.operators import EventBatch, events_in, of_item
from cuggino.operators.batches import Batched, carrier
from cuggino.testing import Marbles

TEXT, CALL = AgentMessage(text="a"), ToolCall(name="Bash")


def test_marks_each_event() -> None:
    """Every event is marked in its instant; one of an item keeps it, another value passes."""
    marked = Note(content="a", item="1.md")
    t = Marbles(a=Note(content="a"), b=marked, c=Note(content="a", item="2.md"), n=3)
    t.check(t.cold("-a-bn-(c|)").pipe(of_item("1.md")), "-b-bn-(c|)")
    t.check(t.cold("a-#").pipe(of_item("1.md")), "b-#")


def test_marks_a_batch_as_one() -> None:
    """A batch stays one batch, which is cut when the session is, and opens to marked events."""
    source: rx.Observable[object] = Batched(rx.of(EventBatch([TEXT, CALL], is_cut=lambda: cut)))
    seen: list[object] = []
    cut = False
    carrier(of_item("1.md")(source)).subscribe(seen.append)
    (batch,) = seen
    assert type(batch) is EventBatch
    assert list(events_in(batch)) == [TEXT.of_item("1.md"), CALL.of_item("1.md")]
    cut = True
    assert batch.is_cut()
    assert (TEXT.item, CALL.item) == (None, None)
