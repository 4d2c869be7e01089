"""`cuggino doctor` on a deliverables project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino.doctor import loops
from cuggino.doctor.result import CheckResult
from tests.cli.looking import look


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "SPEC.md").write_text("A page.\n")
    (tmp_path / ".autonoe").mkdir()
    settings(tmp_path, {"mcpServers": {}})
    return tmp_path


def settings(folder: Path, value: dict[str, Any]) -> None:
    (folder / ".autonoe" / "agent.json").write_text(json.dumps(value))


def status(folder: Path, *flags: tuple[bool, bool]) -> None:
    items = [
        {
            "id": f"D{n}",
            "description": "x",
            "acceptanceCriteria": ["y"],
            "passed": passed,
            "blocked": blocked,
        }
        for n, (passed, blocked) in enumerate(flags)
    ]
    day = {"createdAt": "2026-01-02", "updatedAt": "2026-01-02"}
    text = json.dumps({**day, "deliverables": items})
    (folder / ".autonoe" / "status.json").write_text(text)


def test_nothing_elsewhere(tmp_path: Path) -> None:
    """Nothing is reported where the loop is not used."""
    assert [] == look("deliverables", tmp_path)


def test_no_other_specification_is_needed(project: Path) -> None:
    """A missing specs folder is a problem, but only a note next to a `SPEC.md`."""
    assert ["note"] == [one.status for one in look("specs", project)]
    (project / "SPEC.md").unlink()
    assert ["problem"] == [one.status for one in look("specs", project)]


def test_progress(project: Path) -> None:
    """The check reports how many are passed and blocked, or that there are none yet."""
    assert [CheckResult("ok", "deliverables: none yet")] == look("deliverables", project)
    status(project, (True, False), (False, True), (False, False))
    assert [CheckResult("ok", "deliverables: 1/3 passed, 1 blocked")] == look(
        "deliverables", project
    )


def test_missing_parts(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing specification is noted and a missing library is a problem, both with advice."""
    (project / "SPEC.md").unlink()
    monkeypatch.setattr(loops, "find_spec", lambda _name: None)
    note, problem, _ = look("deliverables", project)
    assert ("note", "deliverables: there is no SPEC.md") == (note.status, note.what)
    assert "problem" == problem.status
    assert "cuggino[deliver]" in str(problem.hint)


def test_broken_parts(project: Path) -> None:
    """A broken status file and an unknown profile are problems; oddities are notes."""
    file = project / ".autonoe" / "status.json"
    file.write_text("{")
    (broken,) = look("deliverables", project)
    assert ("problem", True) == (broken.status, "status.json is broken" in broken.what)
    status(project, (True, True))
    (odd,) = look("deliverables", project)
    assert "note" == odd.status
    file.unlink()
    settings(project, {"profile": "cobol"})
    assert "problem" in {found.status for found in look("deliverables", project)}
    settings(project, {"mcpServers": {"x": {"command": "no-such-program-here"}}, "sandbox": False})
    texts = [found.what for found in look("deliverables", project) if found.status == "note"]
    assert any("no-such-program-here is not installed" in text for text in texts)
    assert any('"sandbox" is ignored' in text for text in texts)
