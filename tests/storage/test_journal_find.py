"""Which run a person goes on with, by the journals that are there."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cuggino.domain.run_state import KnownState
from cuggino.errors import RunNotResumable
from cuggino.events import AgentMessage, Event, RunEnded, RunStarted
from cuggino.storage import find_run, started_of
from cuggino.storage.journal import Journal

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def add(folder: Path, run_id: str, state: KnownState = "unfinished", **fields: Any) -> Path:
    """The journal of a run that is in this state."""
    given = {"kind": "run", "command": "cuggino run", **fields}
    journal = Journal.create(folder, RunStarted(run_id=run_id, **given), at=NOW, sync=False)
    last: Event = AgentMessage(text="x")
    if state != "unfinished":
        last = RunEnded(state=state)
    journal.append(last, at=NOW)
    journal.close()
    return journal.path


def test_the_latest_that_is_unfinished(tmp_path: Path) -> None:
    """Without an id it is the newest of this loop that can go on and is nobody else's."""
    add(tmp_path, "1")
    add(tmp_path, "2", "failed")
    add(tmp_path, "3", "approved")
    add(tmp_path, "4", kind="deliver")
    add(tmp_path, "5", item="a.md 1")
    add(tmp_path, "6", kind="watch")
    (tmp_path / "7.jsonl").write_text("{}\n", encoding="utf-8")
    assert "2" == find_run(tmp_path, None).run_id
    assert "4" == find_run(tmp_path, None, kind="deliver").run_id
    with pytest.raises(RunNotResumable, match="no unfinished run to go on with"):
        find_run(tmp_path, None, kind="loop")


def test_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    """So much of the id is enough as tells it from all others."""
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
        ("unfinished", {"kind": "watch"}, "1 is a watch", "it goes on by itself"),
        ("unfinished", {"kind": "loop"}, "1 is a run of `cuggino loop`", "cuggino loop --resume 1"),
        (
            "unfinished",
            {"item": "login.md 2"},
            "run 1 is for the backlog item login.md",
            "`cuggino watch` goes on with it",
        ),
        ("spec_issue", {}, "run 1 has ended (spec issue)", "cuggino run --focus"),
    ],
)
def test_a_run_that_is_not_to_be_gone_on_with(
    state: KnownState, fields: dict[str, Any], message: str, hint: str, tmp_path: Path
) -> None:
    """It is told why, and what to do instead."""
    add(tmp_path, "1", state, **fields)
    with pytest.raises(RunNotResumable) as caught:
        find_run(tmp_path, "1")
    assert message == caught.value.message
    assert hint in (caught.value.hint or "")


def test_of_another_loop_that_has_ended(tmp_path: Path) -> None:
    """The hint is a command that begins a new one of the same loop."""
    add(tmp_path, "1", "approved", kind="deliver")
    with pytest.raises(RunNotResumable) as caught:
        find_run(tmp_path, "1", kind="deliver")
    assert "start a new one with `cuggino deliver`" == caught.value.hint


@pytest.mark.parametrize("text", ["", "{}\n", "no json\n"])
def test_a_file_of_somebody_else(text: str, tmp_path: Path) -> None:
    """What does not begin as a run is none."""
    path = tmp_path / "1.jsonl"
    path.write_text(text, encoding="utf-8")
    assert started_of(path) is None
