"""Choosing the run to resume among the journals."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cuggino.errors import RunNotResumable
from cuggino.events import AgentMessage, Event, KnownState, RunEnded, RunStarted
from cuggino.storage import find_run, origin_of
from cuggino.storage.journal import Journal

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def add(folder: Path, run_id: str, state: KnownState = "unfinished", **fields: Any) -> Path:
    """Return the journal of a run in this state."""
    given = {"kind": "run", "command": "cuggino run", **fields}
    journal = Journal.create(folder, RunStarted(run_id=run_id, **given), at=NOW, sync=False)
    last: Event = AgentMessage(text="x")
    if state != "unfinished":
        last = RunEnded(state=state)
    journal.append(last, at=NOW)
    journal.close()
    return journal.path


def test_the_latest_that_is_unfinished(tmp_path: Path) -> None:
    """Without an ID it is the newest unfinished run of this loop outside of any watch."""
    add(tmp_path, "1")
    add(tmp_path, "2", "failed")
    add(tmp_path, "3", "approved")
    add(tmp_path, "4", kind="deliver")
    add(tmp_path, "5", item="a.md 1")
    add(tmp_path, "6", kind="watch")
    (tmp_path / "7.jsonl").write_text("{}\n", encoding="utf-8")
    assert "2" == find_run(tmp_path, None).run_id
    assert "4" == find_run(tmp_path, None, kind="deliver").run_id
    with pytest.raises(RunNotResumable, match="no unfinished run to resume"):
        find_run(tmp_path, None, kind="loop")


def test_by_a_unique_prefix(tmp_path: Path) -> None:
    """A unique prefix of the ID is enough."""
    add(tmp_path, "abc1")
    add(tmp_path, "abd2")
    assert "abc1" == find_run(tmp_path, "abc").run_id
    with pytest.raises(RunNotResumable, match=r"^2 runs begin with ab$"):
        find_run(tmp_path, "ab")
    with pytest.raises(RunNotResumable, match=r"^there is no run x$"):
        find_run(tmp_path, "x")


@pytest.mark.parametrize(
    ("state", "fields", "message", "hint"),
    [
        ("unfinished", {"kind": "watch"}, "1 is a watch", "which resumes it"),
        ("unfinished", {"kind": "loop"}, "1 is a run of `cuggino loop`", "cuggino loop --resume 1"),
        (
            "unfinished",
            {"item": "login.md 2"},
            "run 1 is for the backlog item login.md",
            "`cuggino watch` resumes it",
        ),
        ("spec_issue", {}, "run 1 has ended (spec issue)", "cuggino run TEXT"),
    ],
)
def test_a_run_that_cannot_be_resumed(
    state: KnownState, fields: dict[str, Any], message: str, hint: str, tmp_path: Path
) -> None:
    """The error has the reason and an alternative."""
    add(tmp_path, "1", state, **fields)
    with pytest.raises(RunNotResumable) as caught:
        find_run(tmp_path, "1")
    assert message == caught.value.message
    assert hint in (caught.value.hint or "")


def test_of_another_loop_that_has_ended(tmp_path: Path) -> None:
    """The hint is a command that starts a new run of the same loop."""
    add(tmp_path, "1", "approved", kind="deliver")
    with pytest.raises(RunNotResumable) as caught:
        find_run(tmp_path, "1", kind="deliver")
    assert "start a new one with `cuggino deliver`" == caught.value.hint


@pytest.mark.parametrize("text", ["", "{}\n", "no json\n"])
def test_a_foreign_file(text: str, tmp_path: Path) -> None:
    """A file that does not start like a run is ignored."""
    path = tmp_path / "1.jsonl"
    path.write_text(text, encoding="utf-8")
    assert origin_of(path) is None
