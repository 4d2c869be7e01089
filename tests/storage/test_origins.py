"""Origins of imported items."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from cuggino.errors import StorageError
from cuggino.storage import Origin, Origins, Workspace, imported_name


@pytest.fixture
def origins(tmp_path: Path) -> Origins:
    return Origins(Workspace(tmp_path))


def test_an_item_that_was_not_imported_has_none(origins: Origins) -> None:
    assert origins.read("001-login.md") is None
    assert origins.all() == {}


def test_a_change_keeps_the_other_fields(origins: Origins, tmp_path: Path) -> None:
    origins.change("github-00007.md", source="github", id="7", number=7)
    changed = origins.change("github-00007.md", begun=True)
    assert changed == Origin(source="github", id="7", number=7, begun=True)
    again = Origins(Workspace(tmp_path))
    assert again.read("github-00007.md") == changed
    assert again.all() == {"github-00007.md": changed}


def test_another_process_is_noticed(origins: Origins, tmp_path: Path) -> None:
    origins.change("github-00007.md", source="github", id="7")
    Origins(Workspace(tmp_path)).change("github-00007.md", held="a stranger has edited it")
    found = origins.read("github-00007.md")
    assert found is not None
    assert found.held == "a stranger has edited it"


def test_nothing_is_written_without_a_change(origins: Origins) -> None:
    origins.change("github-00007.md", source="github", id="7")
    before = origins.file("github-00007.md").path.stat().st_ino
    origins.change("github-00007.md", source="github")
    assert origins.file("github-00007.md").path.stat().st_ino == before


def test_a_field_of_a_later_version_is_ignored(origins: Origins) -> None:
    path = origins.file("a.md").path
    path.parent.mkdir(parents=True)
    path.write_text('{"source": "github", "id": "7", "later": 1}')
    assert origins.read("a.md") == Origin(source="github", id="7")


def test_an_unknown_field_is_an_error(origins: Origins) -> None:
    with pytest.raises(TypeError, match="an origin has no begin"):
        origins.change("a.md", source="github", id="7", begin=True)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"source": 1, "id": "7"}', "\udc80"])
def test_a_damaged_file_is_an_error_and_is_not_listed(origins: Origins, text: str) -> None:
    path = origins.file("a.md").path
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(StorageError, match=r"a\.md\.json"):
        origins.read("a.md")
    with pytest.raises(StorageError):
        origins.change("a.md", begun=True)
    assert origins.all() == {}


def test_a_linked_folder_is_not_written_to(origins: Origins, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".cuggino").mkdir()
    (tmp_path / ".cuggino/origins").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="is a link"):
        origins.change("a.md", source="github", id="7")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\0"])
def test_a_name_is_a_file_name(origins: Origins, name: str) -> None:
    with pytest.raises(StorageError, match="is not a file name"):
        origins.read(name)


def test_a_slot_has_those_of_its_project(tmp_path: Path) -> None:
    home = Workspace(tmp_path / "project")
    assert home.desk(tmp_path / "slot").origins == home.origins


@pytest.mark.parametrize(
    ("id", "name"),
    [
        ("7", "github-00007.md"),
        ("123456", "github-123456.md"),
        ("PROJ-12", "github-proj-00012-"),
        ("007", "github-00007-"),
        ("../../etc/passwd", "github-etc-passwd-"),
        ("\u0661", "github-"),
        ("", "github-"),
        ("x" * 10_000, f"github-{'x' * 48}-"),
    ],
)
def test_a_name_is_made_from_the_id(id: str, name: str) -> None:
    found = imported_name("github", id)
    assert found.startswith(name)
    assert found.endswith(".md")


def test_names_sort_by_number() -> None:
    names = [imported_name("jira", f"PROJ-{number}") for number in (2, 10, 100)]
    assert names == sorted(names)


@given(st.lists(st.text(max_size=20), min_size=2, max_size=20, unique=True))
def test_no_two_ids_have_the_same_name(ids: list[str]) -> None:
    names = {imported_name("tracker", id) for id in ids}
    assert len(names) == len(ids)
    for name in names:
        assert name.isascii()
        assert len(name) < 100
        assert not set(name) & set("/\\\0: \n")


def test_the_page_of_an_item(origins: Origins) -> None:
    """An origin that cannot be read has none, and does not fail a view of it."""
    origins.change("github-00007.md", source="github", id="7", url="https://example.org/7")
    assert origins.page("github-00007.md") == "https://example.org/7"
    assert origins.page("001-login.md") == ""
    origins.file("github-00007.md").path.write_text("{")
    assert origins.page("github-00007.md") == ""
    assert origins.readable("github-00007.md") is None
