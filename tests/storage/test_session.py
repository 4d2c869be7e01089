"""The files of one run, ids, and requirement codes in a project's files."""

from __future__ import annotations

import os
import time
from itertools import pairwise
from pathlib import Path
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given, strategies as st

from cuggino.domain.job_verification import VerificationResult
from cuggino.errors import SessionError, StorageError
from cuggino.events import LlmMarkerEvent, NoMoreWork, Note, event_types
from cuggino.storage import Session
from cuggino.storage.ids import new_id
from cuggino.storage.jobs import check_requirement
from tests.vectors import not_followed, rows, snake

ROWS = [row for row in rows("session_and_telegram") if row.get("fn") != "telegram_split"]
FOLLOWED = [row for row in ROWS if row["id"] not in not_followed()]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    made = Session("the-id", tmp_path)
    made.create()
    for folder in made.folders[:2]:
        folder.mkdir()
    return made


@pytest.mark.parametrize("row", FOLLOWED, ids=lambda row: row["id"])
def test_markers_match_the_original(session: Session, row: dict[str, str]) -> None:
    """A marker is added to the session file as the original did."""
    marker = event_types()[row["marker"]].model_validate({"content": row["content"]})
    assert isinstance(marker, LlmMarkerEvent)
    session.append(marker)
    assert row["output"] == session.session_file.read_text()


def test_exceptions_are_of_later_revisions() -> None:
    """Every row of the first revision is followed, and the others are listed."""
    assert {row["id"] for row in ROWS if row["rev"] == "seed"} == {row["id"] for row in FOLLOWED}
    assert 16 == len(ROWS)


def test_the_files(session: Session, tmp_path: Path) -> None:
    """All files start with the ID; only the empty session file exists at the start."""
    assert [
        "the-id.md",
        "the-id.planning/plan.md",
        "the-id.reviewing/review.md",
        "the-id.check.txt",
        "the-id.copy.txt",
        "the-id.setup.txt",
        "the-id.verified.json",
    ] == [str(file.relative_to(tmp_path)) for file in session.files]
    Session("another", tmp_path).create()
    assert {"the-id.md", "another.md"} == {f.name for f in tmp_path.iterdir() if f.is_file()}
    assert "" == session.session_file.read_text()


def test_markers_are_appended(session: Session) -> None:
    """Markers of any text are appended in order."""
    session.append(Note(content="späße\r\n</NOTE> 家"))
    session.append(NoMoreWork(content=""))
    assert (
        "\n<NOTE>\nspäße\r\n</NOTE> 家\n</NOTE>\n\n<NO_MORE_WORK>\n\n</NO_MORE_WORK>\n"
    ).encode() == session.session_file.read_bytes()


class TestPlan:
    @pytest.mark.parametrize(
        ("plan", "expected"),
        [
            ("# Plan\n\n## Task 1\n", "# Plan\n\n## Task 1\n\n# Progress Log\n"),
            ("\n\n# Plan of the page\nx\n\n\n", "# Plan of the page\nx\n\n# Progress Log\n"),
            ("## Task 1", "# Plan\n\n## Task 1\n\n# Progress Log\n"),
        ],
    )
    def test_it_moves_into_the_session_file(
        self, session: Session, plan: str, expected: str
    ) -> None:
        """The plan replaces the content, gets its heading and an empty log; its file is removed."""
        session.append(Note(content="of the round before"))
        session.plan_file.write_text(plan)
        session.commit_plan()
        assert expected == session.session_file.read_text()
        assert not session.plan_file.exists()

    @pytest.mark.parametrize("plan", [None, "", " \n\t"])
    def test_without_a_plan(self, session: Session, plan: str | None) -> None:
        """A missing or blank plan file is a session error, and the session file is unchanged."""
        if plan is not None:
            session.plan_file.write_text(plan)
        session.append(Note(content="kept"))
        with pytest.raises(SessionError) as caught:
            session.commit_plan()
        assert "Session commitTempPlan failed (session: the-id)" == caught.value.message
        assert ("commitTempPlan", "the-id") == (caught.value.operation, caught.value.session_id)
        assert "wrote no plan file" in str(caught.value.hint)
        assert "kept" in session.session_file.read_text()

    def test_a_plan_that_is_no_file(self, session: Session) -> None:
        """A pipe at its place is not a plan, and is not waited for."""
        os.mkfifo(session.plan_file)
        with pytest.raises(SessionError):
            session.commit_plan()

    def test_text_in_another_encoding(self, session: Session) -> None:
        """Invalid UTF-8 is replaced."""
        session.plan_file.write_bytes(b"# Plan\xff")
        session.commit_plan()
        assert "# Plan\ufffd\n\n# Progress Log\n" == session.session_file.read_text()


class TestReview:
    def test_the_file_takes_precedence(self, session: Session) -> None:
        """The review is the agent's file, not its marker."""
        session.review_file.write_text("findings\n")
        assert "findings\n" == session.review_text("marker")

    @pytest.mark.parametrize("text", [None, "", " \n"])
    def test_the_marker_is_the_fallback(self, session: Session, text: str | None) -> None:
        """Without a file, or with a blank one, the marker's text becomes the review file."""
        if text is not None:
            session.review_file.write_text(text)
        assert "marker" == session.review_text("marker")
        assert "marker" == session.review_file.read_text()

    def test_a_review_that_is_no_file(self, session: Session) -> None:
        """A link without an end is not a review; the marker's text takes its place."""
        session.review_file.symlink_to("/dev/zero")
        assert "marker" == session.review_text("marker")
        assert "marker" == session.review_file.read_text()

    def test_it_is_cleared(self, session: Session) -> None:
        """A review is removed; clearing it twice is not an error."""
        session.review_file.write_text("stale")
        session.clear_review()
        session.clear_review()
        assert "fresh" == session.review_text("fresh")


def test_removal(session: Session, tmp_path: Path) -> None:
    """All files of the run are removed, missing ones are no error, others stay."""
    for file in session.files[::2]:
        file.write_text("x")
    other = tmp_path / "other.md"
    other.write_text("x")
    session.remove()
    session.remove()
    assert [other] == list(tmp_path.iterdir())


def test_a_missing_folder(tmp_path: Path) -> None:
    """Without its folder every operation of a session is a storage error that names it."""
    session = Session("the-id", tmp_path / "gone")
    for operation, deed in (
        ("create session", session.create),
        ("append marker", lambda: session.append(Note(content=""))),
        ("read review", lambda: session.review_text("x")),
    ):
        with pytest.raises(StorageError) as caught:
            deed()
        assert operation == caught.value.operation
        assert caught.value.hint


def test_an_id_is_a_uuid_of_version_7() -> None:
    """Other programs read its time."""
    before = time.time_ns() // 1_000_000
    made = UUID(new_id())
    after = time.time_ns() // 1_000_000
    assert (7, RFC_4122) == (made.version, made.variant)
    assert before <= made.int >> 80 <= after + 1


def test_ids_ascend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids of the same moment, and of an earlier one after the clock was set back, are in order."""
    now = time.time_ns()
    made = [new_id() for _ in range(1000)]
    monkeypatch.setattr(time, "time_ns", lambda: now - 10**9)
    made += [new_id() for _ in range(1000)]
    assert all(one < other for one, other in pairwise(made))


def test_ids_of_the_same_time_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes that begin at once have ids of their own."""
    monkeypatch.setattr(time, "time_ns", lambda: 2**60)
    made = set()
    for _ in range(100):
        monkeypatch.setattr("cuggino.storage.ids._last", 0)
        made.add(new_id())
    assert 100 == len(made)


CODES = {row["id"]: row for row in rows("lopen_verification") if row["fn"] == "requirement"}
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


@pytest.mark.parametrize("case", CODES)
def test_a_code_is_looked_up(case: str, tmp_path: Path) -> None:
    """Each recorded look-up is answered as its case expects; recommendations take precedence."""
    row = CODES[case]
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
        *("REQ-030", "| REQ-030 | Loop |", "see [REQ-030](#req-030-loop).", "`REQ-030`, REQ-031"),
        *("**req-030**: x", "REQ-030.\n", "REQ-029/REQ-030: x", "REQ-030 - loop", "REQ-030-\n"),
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
