"""The scenarios of the watch, in virtual time with real folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cuggino.events import LoopSpecIssue
from tests.loops.watching import Watching, audit_run
from tests.vectors import not_followed, rows

ROWS = rows("cuggino_watch_scenarios")


def watch(row: dict[str, Any], folder: Path) -> Watching:
    """The case's folders, loops, audits and timeline."""
    watching = Watching(
        folder,
        loops=[(run["duration"], run.get("outcome", run.get("error"))) for run in row["loops"]],
        audits=[audit_run(run) for run in row["audit_runs"]] if row["config"]["audit"] else None,
    )
    folders = {
        "backlog": watching.workspace.backlog,
        "spec_issues": watching.workspace.spec_issues,
    }
    for kind, files in row["initial"].items():
        for name, text in files.items():
            (folders[kind] / name).write_text(text)
    for entry in row["timeline"]:
        place = folders[entry["dir"]]
        watching.at(entry["t"], deed(entry, place), place)
    return watching


def deed(entry: dict[str, Any], folder: Path) -> Callable[[], object]:
    """Apply an entry of the timeline to a folder."""
    if entry["op"] != "remove":
        return lambda: (folder / entry["file"]).write_text(entry["content"])
    if entry["file"] == "<ISSUE>":
        return lambda: next(folder.glob("*.md")).unlink()
    return lambda: (folder / entry["file"]).unlink()


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_scenario(row: dict[str, Any], tmp_path: Path) -> None:
    """A case gives its events at their seconds, or is listed with its reason and then differs."""
    watching = watch(row, tmp_path)
    seen = watching.play(row["until"], dispose_at=row.get("interrupt_at"))
    expected = [
        (e["t"], e["event"], *([e["filename"]] if e.get("filename") else []))
        for e in row["expected"]
    ]
    actual = [
        (when, event.tag)
        if isinstance(event, LoopSpecIssue) or getattr(event, "filename", None) is None
        else (when, event.tag, event.filename)
        for when, _, event in seen
    ]
    followed = expected == actual
    for place, names in row.get("expected_files", {}).items():
        assert "backlog" == place
        followed = followed and names == watching.backlog
    if "expected_focus" in row:
        path = row["expected_focus"].removeprefix("@<CWD>/")
        followed = followed and path in watching.loop.options[0].focus
    assert (row["id"] not in not_followed("cuggino_watch_scenarios")) == followed, actual
    assert [] == watching.watched
