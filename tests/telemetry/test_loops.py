"""Telemetry of whole loops, in virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.errors import AgentFailed
from cuggino.storage import list_journals
from cuggino.testing import VirtualRuntime, Wait
from tests.telemetry.exported import Exported, needs_otel
from tests.testing.one_task import DONE, HOUR, runs

pytestmark = [needs_otel, pytest.mark.usefixtures("nothing_is_left")]


def test_a_watch(tmp_path: Path) -> None:
    """An item is worked on within its span, in the trace of the watch."""
    cousin, memory = VirtualRuntime(tmp_path, runs([Wait("10m"), *DONE])), Exported()
    cousin.at("3h", lambda: cousin.write(".cuggino/backlog/page.md", "A blue page."))
    journals = cousin.runtime.workspace.journal
    watch = cousin.runtime.watch().pipe(memory.operator(journals))
    cousin.play(watch, until="1d")
    begun = 3 * HOUR + 30
    root, item = memory.spans[:2]
    assert ("invoke_workflow cuggino watch", "", 0, 24 * HOUR) == root.times
    assert "interrupted" == root.attributes["cuggino.run.outcome"]
    assert ("item", root.name, begun, begun + 600) == item.times
    assert {"cuggino.item": "page.md", "cuggino.item.outcome": "completed"} == item.attributes
    assert {
        ("planning", "item", begun, begun),
        ("implementing", "item", begun, begun + 600),
        ("reviewing", "item", begun + 600, begun + 600),
    } == {span.times for span in memory.spans if span.parent == "item"}
    watched = list_journals(journals)[-1]
    assert {watched.stem.replace("-", "")} == {span.trace for span in memory.spans}


def test_a_run_that_is_resumed(tmp_path: Path) -> None:
    """Both processes are in one trace, each with its own span of the run."""
    cousin = VirtualRuntime(tmp_path, runs([AgentFailed("key", reason="auth")], DONE))
    journals = cousin.runtime.workspace.journal
    first, second = Exported(), Exported()
    run = cousin.runtime.run(focus="the page").pipe(first.operator(journals))
    assert cousin.play(run).error is not None
    again = cousin.runtime.resume().pipe(second.operator(journals))
    assert cousin.play(again).completed
    before, after = first.spans[0], second.spans[0]
    assert "invoke_workflow cuggino run" == before.name == after.name
    assert ("failed", "approved") == (
        before.attributes["cuggino.run.outcome"],
        after.attributes["cuggino.run.outcome"],
    )
    assert (False, True) == (
        before.attributes["cuggino.run.resumed"],
        after.attributes["cuggino.run.resumed"],
    )
    (journal,) = list_journals(journals)
    assert journal.stem.replace("-", "") == before.trace == after.trace
