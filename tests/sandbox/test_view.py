"""Tests for `role_view`: what each role may write."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.guard import ROLES
from cuggino.sandbox import ROWS, RoleView, ViewRole, make_granted, role_view


def view_of(role: ViewRole, project: Path) -> RoleView:
    return role_view(role, project=project, folder=project / ".cuggino/wip/one")


def below(view: RoleView, paths: tuple[Path, ...]) -> list[str]:
    return [str(path.relative_to(view.project)) for path in paths]


def test_every_role_has_a_row() -> None:
    """A new role cannot be started without a decision on its write access."""
    assert {*ROLES, "pm"} == set(ROWS)


@pytest.mark.parametrize(
    ("role", "writable"),
    [
        ("planning", []),
        ("implementing", ["."]),
        ("reviewing", []),
        ("audit", []),
        (
            "pm",
            [
                *(".cuggino/spec-issues", ".cuggino/backlog", ".cuggino/tbd"),
                *(".cuggino/memory.md", ".specs"),
            ],
        ),
        ("initializer", [".", ".cuggino/browser", ".specs"]),
        ("coding", [".", ".cuggino/browser", ".specs"]),
        ("sync", [".autonoe-note.md"]),
        ("verify", [".cuggino/browser", ".autonoe-note.md"]),
        ("plan", ["docs/requirements", ".specs"]),
        ("build", [".", ".specs"]),
        ("judge", []),
    ],
)
def test_what_a_role_may_write(tmp_path: Path, role: ViewRole, writable: list[str]) -> None:
    """The table of roles; no role may write the deliverables' status or cuggino's settings."""
    view = view_of(role, tmp_path)
    assert writable == below(view, view.writable)
    if "." in writable or role == "pm":
        protected = below(view, view.read_only)
        assert {".autonoe", ".cuggino", ".cuggino.json", ".claude", ".mcp.json"} <= {*protected}
        assert (".specs" in protected) == (role == "implementing")
    else:
        assert view.copy_on_write


def test_specifications_around_the_project_are_not_protected(tmp_path: Path) -> None:
    """They cannot be separated from the project."""
    view = role_view("implementing", project=tmp_path, specs=".")
    assert tmp_path not in view.read_only


def test_what_may_be_written_is_created(tmp_path: Path) -> None:
    """A missing path cannot be shown, so it is created; an existing file keeps its content."""
    (tmp_path / ".cuggino").mkdir()
    (tmp_path / ".cuggino/memory.md").write_text("known")
    make_granted(view_of("pm", tmp_path))
    make_granted(view_of("verify", tmp_path))
    assert "known" == (tmp_path / ".cuggino/memory.md").read_text()
    for name in (".cuggino/wip/one", ".cuggino/backlog", ".autonoe-note.md"):
        assert (tmp_path / name).exists()


def test_the_folder_of_an_enclosing_repository(tmp_path: Path) -> None:
    """An implementer of a subfolder commits to the repository around it."""
    (tmp_path / ".git").mkdir()
    project = tmp_path / "part"
    project.mkdir()
    view = view_of("implementing", project)
    assert tmp_path / ".git" in view.writable
    assert tmp_path / ".git/hooks" in view.read_only
