"""What an agent that is replaced has left."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import cuggino
from cuggino.stages import handover, work_left
from tests.git_project import GitProject


def left(folder: Path) -> str:
    """Return the work that is left in the folder."""
    return cuggino.run(work_left(folder)) or ""


@pytest.fixture
def begun(project: GitProject) -> GitProject:
    """Return a project with one commit."""
    project.write("a.py", "old\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "a")
    return project


class TestWorkLeft:
    def test_changes_and_new_files(self, begun: GitProject) -> None:
        """The diff of tracked files, and the names of new ones."""
        assert "" == left(begun.root)
        begun.write("a.py", "new\n")
        begun.write("b/c.py")
        text = left(begun.root)
        assert "-old\n+new" in text
        assert text.endswith("\n\nnew file: b/c.py")

    def test_attributes_hide_nothing(self, begun: GitProject) -> None:
        """A file that the project calls binary is shown as text."""
        begun.write(".gitattributes", "*.py binary\n")
        begun.write("a.py", "new\n")
        assert "-old\n+new" in left(begun.root)

    def test_without_a_commit(self, project: GitProject) -> None:
        """New files are named although nothing can be compared."""
        project.write("a.py")
        assert "new file: a.py" == left(project.root)

    def test_without_a_repository(self, project: GitProject) -> None:
        """Without a repository it is unknown."""
        folder = project.root.parent / "plain"
        folder.mkdir()
        (folder / "a.py").write_text("new\n")
        assert "" == left(folder)


@pytest.mark.parametrize(
    ("words", "changes", "ending"),
    [
        ("", "", "none of it has been reviewed."),
        ("I am\ndone.", " \n", "Its last words:\n\n> I am\n> done."),
        ("", "+1", "What is not committed now:\n\n```diff\n+1\n```"),
        ("", "+```", "````diff\n+```\n````"),
        ("", "+" * 30_000, "(More changes follow; see `git diff`.)"),
    ],
)
def test_handover(words: str, changes: str, ending: str) -> None:
    """The prompt quotes what was found, and leaves out what is missing."""
    assert handover(words, changes).endswith(ending)


@given(st.text(max_size=50), st.integers(0, 4).map(lambda n: 10**n))
def test_handover_is_short(text: str, times: int) -> None:
    """Neither words nor changes fill the prompt."""
    assert len(handover(text * times, text * times)) < 60_000
