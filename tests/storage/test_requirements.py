"""Looking up requirement codes in a project's files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from cuggino.domain.job_verification import VerificationResult
from cuggino.storage.jobs import check_requirement
from tests.vectors import rows, snake

ROWS = {row["id"]: row for row in rows("lopen_verification") if row["fn"] == "requirement"}
KEYS = ("complete", "testsPass", "documentationExists", "buildSucceeds", "requirementValid")


def project(root: Path, files: dict[str, str]) -> Path:
    """A project with these files."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def specified(root: Path, text: str) -> Path:
    """Return a project with this specification."""
    return project(root, {"docs/requirements/m/SPECIFICATION.md": text})


@pytest.mark.parametrize("case", ROWS)
def test_a_code_is_looked_up(case: str, tmp_path: Path) -> None:
    """Each recorded look-up is answered as its case expects; recommendations take precedence."""
    row = ROWS[case]
    result = check_requirement(project(tmp_path, row["files"]), row["code"])
    if "recommended_complete" in row:
        assert row["recommended_complete"] == result.complete == result.requirement_valid
        assert 1 == len(result.issues)
        return
    found = {key: getattr(result, snake(key)) for key in KEYS}
    assert row["expected"] == {**found, "issues": list(result.issues)}


@pytest.mark.parametrize(
    "text",
    [
        "REQ-030",
        "| REQ-030 | Loop |",
        "see [REQ-030](#req-030-loop).",
        "`REQ-030`, REQ-031",
        "**req-030**: x",
        "REQ-030.\n",
        "REQ-029/REQ-030: x",
        "REQ-030 - loop",
        "REQ-030-\n",
    ],
)
def test_whole_words_are_found(text: str, tmp_path: Path) -> None:
    """A code is found wherever it is a whole word."""
    assert check_requirement(specified(tmp_path, text), " REQ-030 ").complete


@pytest.mark.parametrize(
    "text", ["REQ-0301", "XREQ-030", "REQ-030-01", "REQ-030.1", "NO-REQ-030", "REQ_030", "REQ-030a"]
)
def test_partial_matches(text: str, tmp_path: Path) -> None:
    """A code within another one does not match."""
    expected = VerificationResult.failed(
        "Requirement code REQ-030 not found in any SPECIFICATION.md file"
    )
    assert expected == check_requirement(specified(tmp_path, text), "REQ-030")


@pytest.mark.parametrize("code", ["", " ", "\n"])
def test_a_blank_code_is_invalid(code: str, tmp_path: Path) -> None:
    """A job without a code has no valid one."""
    expected = VerificationResult.failed("The job names no requirement code")
    assert expected == check_requirement(specified(tmp_path, "REQ-030"), code)


def test_without_a_folder_there_is_no_code(tmp_path: Path) -> None:
    """A missing requirements folder, or a file in its place, has no codes."""
    assert not check_requirement(tmp_path, "REQ-1").complete
    (tmp_path / "docs").write_text("REQ-1")
    assert not check_requirement(tmp_path, "REQ-1").complete


def test_unreadable_files_are_skipped(tmp_path: Path) -> None:
    """Pipes, folders and non-UTF-8 bytes do not hide codes in other files."""
    base = tmp_path / "docs/requirements"
    (base / "a/SPECIFICATION.md").mkdir(parents=True)
    (base / "b").mkdir()
    os.mkfifo(base / "b/SPECIFICATION.md")
    (base / "c").mkdir()
    (base / "c/SPECIFICATION.md").write_bytes(b"\xff\xfe REQ-1 \xff")
    assert check_requirement(tmp_path, "REQ-1").complete
    assert not check_requirement(tmp_path, "REQ-2").complete


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip))
def test_a_code_is_no_pattern(tmp_path_factory: pytest.TempPathFactory, code: str) -> None:
    """A code is matched literally, and none breaks the look-up."""
    root = tmp_path_factory.mktemp("project")
    assert not check_requirement(specified(root, "nothing of that"), f"[{code}](").complete
