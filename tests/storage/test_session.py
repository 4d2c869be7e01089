"""The files of one run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuggino.errors import SessionError, StorageError
from cuggino.events import LlmMarkerEvent, NoMoreWork, Note, event_types
from cuggino.storage import Session
from tests.vectors import not_followed, rows

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
