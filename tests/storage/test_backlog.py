"""The backlog: its items, their order, moving, adding and removing them."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from cuggino.errors import ConfigError, StorageError
from cuggino.storage import Backlog, Workspace
from cuggino.storage.backlog import next_number
from cuggino.storage.moving import visible_entries
from tests.vectors import each


def drop(workspace: Workspace, name: str, text: str = "do it") -> str:
    """Write an item and return the digest of its bytes."""
    (workspace.backlog / name).write_text(text)
    return hashlib.sha256(text.encode()).hexdigest()


def names(folder: Path) -> list[str]:
    """Return all names in the folder, including hidden files."""
    return sorted(path.name for path in folder.iterdir())


class TestItems:
    def test_they_are_sorted_by_name(self, workspace: Workspace, backlog: Backlog) -> None:
        """Visible files are the items, sorted by name."""
        for name in ("b.md", "010-x.md", "002-y.md", ".hidden.md", "z"):
            drop(workspace, name)
        assert ["002-y.md", "010-x.md", "b.md", "z"] == backlog.items()
        assert {} == backlog.problems()

    def test_problems(self, workspace: Workspace, backlog: Backlog) -> None:
        """Folders, pipes, dangling links and blank files are problems, each with a reason."""
        drop(workspace, "good.md")
        drop(workspace, "empty.md", "")
        drop(workspace, "blank.md", " \n\t\n" * 50_000)
        (workspace.backlog / "folder").mkdir()
        (workspace.backlog / ".git").mkdir()
        os.mkfifo(workspace.backlog / "pipe")
        (workspace.backlog / "dangling").symlink_to("nowhere")
        (workspace.backlog / "link.md").symlink_to("good.md")
        assert ["good.md", "link.md"] == backlog.items()
        assert {
            "blank.md": "empty",
            "dangling": "cannot be read: No such file or directory",
            "empty.md": "empty",
            "folder": "a folder",
            "pipe": "not a regular file",
        } == backlog.problems()

    def test_an_unreadable_file(
        self, workspace: Workspace, backlog: Backlog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A file that cannot be opened is a problem with the system's reason."""
        drop(workspace, "secret.md")

        def refuse(*_args: object, **_kwargs: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("cuggino.storage.backlog.open", refuse, raising=False)
        assert {"secret.md": "cannot be read: Permission denied"} == backlog.problems()
        assert [] == backlog.items()

    def test_a_name_that_is_not_utf8(self, workspace: Workspace, backlog: Backlog) -> None:
        """A file whose name is not UTF-8 is a problem with an escaped name."""
        try:
            drop(workspace, os.fsdecode(b"caf\xe9.md"))
        except OSError:
            pytest.skip("this file system takes UTF-8 names only")
        assert [] == backlog.items()
        assert {"caf\N{REPLACEMENT CHARACTER}.md": "its name is not UTF-8"} == backlog.problems()

    def test_a_change_is_detected(self, workspace: Workspace, backlog: Backlog) -> None:
        """An emptied file is not an item until it is filled again."""
        drop(workspace, "a.md")
        assert ["a.md"] == backlog.items()
        drop(workspace, "a.md", "")
        assert [] == backlog.items()
        drop(workspace, "a.md", "again")
        assert ["a.md"] == backlog.items()

    def test_a_known_item_is_not_read_again(
        self, workspace: Workspace, backlog: Backlog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A known file is opened again only after a change."""
        drop(workspace, "a.md")
        assert ["a.md"] == backlog.items()
        opened: list[Path] = []

        def note(path: str, mode: str, *, buffering: int) -> object:
            opened.append(Path(path))
            return open(path, mode, buffering=buffering)  # noqa: PTH123

        monkeypatch.setattr("cuggino.storage.backlog.open", note, raising=False)
        assert ["a.md"] == backlog.items()
        assert [] == opened
        os.utime(workspace.backlog / "a.md", (1, 1))
        assert ["a.md"] == backlog.items()
        assert [workspace.backlog / "a.md"] == opened

    def test_without_a_folder(self, tmp_path: Path) -> None:
        """A backlog that is missing or a file has no items and no problems."""
        backlog = Backlog(Workspace(tmp_path))
        assert ([], {}, {}) == (backlog.items(), backlog.problems(), backlog.parked())
        (tmp_path / ".cuggino").write_text("a file")
        assert ([], {}, {}) == (backlog.items(), backlog.problems(), backlog.parked())

    def test_digest(self, workspace: Workspace, backlog: Backlog) -> None:
        """The digest is the SHA-256 of the bytes; missing files and other things have none."""
        assert drop(workspace, "a.md", "x") == backlog.digest("a.md")
        assert backlog.digest("gone.md") is None
        os.mkfifo(workspace.backlog / "pipe")
        (workspace.backlog / "folder").mkdir()
        assert (None, None) == (backlog.digest("pipe"), backlog.digest("folder"))

    @pytest.mark.parametrize("name", ["", ".", "..", "../x", "/etc/passwd", "a/b", "a\0b"])
    def test_names_stay_inside(self, backlog: Backlog, name: str) -> None:
        """Anything but a plain file name is rejected everywhere."""
        for deed in (backlog.path, backlog.digest, backlog.remove, backlog.unpark):
            with pytest.raises(StorageError, match="is not a file name in"):
                deed(name)


class TestArchive:
    def test_an_unchanged_item_is_moved(self, workspace: Workspace, backlog: Backlog) -> None:
        """The item becomes `<uuid7>-<outcome>-<name>` in the archive, byte for byte."""
        digest = drop(workspace, "001-a.md", "x\r\n")
        assert backlog.archive("001-a.md", "approved", digest)
        (name,) = names(workspace.archive)
        assert 7 == UUID(name[:36]).version
        assert "-approved-001-a.md" == name[36:]
        assert b"x\r\n" == (workspace.archive / name).read_bytes()
        assert [] == names(workspace.backlog)

    def test_a_changed_item_stays(self, workspace: Workspace, backlog: Backlog) -> None:
        """An edited or missing item is not moved."""
        digest = drop(workspace, "a.md", "old")
        drop(workspace, "a.md", "new")
        assert not backlog.archive("a.md", "approved", digest)
        assert not backlog.archive("gone.md", "approved", digest)
        assert (["a.md"], []) == (names(workspace.backlog), names(workspace.archive))

    def test_an_edit_at_the_last_moment(
        self, workspace: Workspace, backlog: Backlog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An edit between the check and the move puts the item back."""
        digest = drop(workspace, "a.md", "old")
        monkeypatch.setattr(Backlog, "digest", lambda *_: digest)
        drop(workspace, "a.md", "edited")
        assert not backlog.archive("a.md", "approved", digest)
        assert "edited" == (workspace.backlog / "a.md").read_text()
        assert [] == names(workspace.archive)

    def test_missing_at_the_last_moment(
        self, workspace: Workspace, backlog: Backlog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An item that disappears between the check and the move leaves no archive entry."""
        monkeypatch.setattr(Backlog, "digest", lambda *_: "d")
        assert not backlog.archive("a.md", "approved", "d")
        assert [] == names(workspace.archive)


class TestParking:
    def test_park_and_unpark(self, workspace: Workspace, backlog: Backlog) -> None:
        """A parked item has its reason beside it; an unparked one returns without it."""
        drop(workspace, "a.md", "text")
        assert "a.md" == backlog.park("a.md", "the agent\nwas ill\n")
        assert ["a.md", "a.md.reason.txt"] == names(workspace.parked)
        assert {"a.md": "the agent\nwas ill"} == backlog.parked()
        assert [] == backlog.items()
        assert "a.md" == backlog.unpark("a.md")
        assert ([], ["a.md"]) == (names(workspace.parked), backlog.items())
        assert "text" == (workspace.backlog / "a.md").read_text()

    def test_taken_names(self, workspace: Workspace, backlog: Backlog) -> None:
        """For a taken name, parking and unparking use a similar free one."""
        for n in range(3):
            drop(workspace, "a.md", f"text {n}")
            assert ["a.md", "a-2.md", "a-3.md"][n] == backlog.park("a.md", f"reason {n}")
        expected = {"a-2.md": "reason 1", "a-3.md": "reason 2", "a.md": "reason 0"}
        assert expected == backlog.parked()
        drop(workspace, "a-2.md", "new")
        assert "a-2-2.md" == backlog.unpark("a-2.md")
        texts = {name: backlog.path(name).read_text() for name in backlog.items()}
        assert {"a-2.md": "new", "a-2-2.md": "text 1"} == texts

    def test_an_item_named_like_a_reason(self, workspace: Workspace, backlog: Backlog) -> None:
        """An item named like another one's reason file is parked as an item."""
        drop(workspace, "a.md.reason.txt", "mine")
        assert "a.md.reason.txt.md" == backlog.park("a.md.reason.txt", "why")
        assert {"a.md.reason.txt.md": "why"} == backlog.parked()

    def test_a_missing_reason(self, workspace: Workspace, backlog: Backlog) -> None:
        """An item without a readable reason is parked."""
        (workspace.parked / "a.md").write_text("x")
        assert {"a.md": "no reason recorded"} == backlog.parked()

    def test_missing_items(self, workspace: Workspace, backlog: Backlog) -> None:
        """Parking a missing item does nothing; unparking or removing it is an error."""
        assert backlog.park("a.md", "why") is None
        assert [] == names(workspace.parked)
        with pytest.raises(StorageError, match=r"parked/a\.md is gone"):
            backlog.unpark("a.md")
        with pytest.raises(StorageError, match=r"backlog/a\.md is gone"):
            backlog.remove("a.md")
        assert ([], []) == (names(workspace.backlog), names(workspace.archive))


class TestAdding:
    def test_numbering(self, workspace: Workspace, backlog: Backlog) -> None:
        """A new item's number follows the highest in the backlog, parked items and archive."""
        assert "001-add-a-login-page.md" == backlog.add("Add a login page!", "With a form.\n")
        added = (workspace.backlog / "001-add-a-login-page.md").read_bytes()
        assert b"# Add a login page!\n\nWith a form.\n" == added
        assert "002-b.md" == backlog.add(" b\n")
        assert b"# b\n" == (workspace.backlog / "002-b.md").read_bytes()
        drop(workspace, "041-x.md")
        backlog.park("041-x.md", "why")
        assert "042-c.md" == backlog.add("c")
        backlog.remove("042-c.md")
        assert "043-d.md" == backlog.add("d")
        digest = backlog.digest("043-d.md")
        assert digest is not None
        backlog.archive("043-d.md", "max-iterations", digest)
        drop(workspace, "7-of-9.md")
        assert "044-e.md" == backlog.add("e")

    def test_a_thousand_items(self, workspace: Workspace, backlog: Backlog) -> None:
        """Items are processed in the order of their addition, beyond the 999th."""
        drop(workspace, "101-old.md")
        drop(workspace, "998-old.md")
        added = [backlog.add(title) for title in ("z", "y", "x")]
        assert ["999-z.md", "999001-y.md", "999002-x.md"] == added
        assert ["101-old.md", "998-old.md", *added] == backlog.items()

    @pytest.mark.parametrize(
        ("title", "name"),
        [
            ("Größe / Länge", "001-größe-länge.md"),
            ("../../etc/passwd", "001-etc-passwd.md"),
            ("?!", "001-item.md"),
            ("x" * 300, f"001-{'x' * 48}.md"),
            ("\x1b[2J wipe", "001-2j-wipe.md"),
            ("日本語 " * 40, None),
        ],
    )
    def test_names_from_titles(self, backlog: Backlog, title: str, name: str | None) -> None:
        """The name has the letters and digits of the title, in any script, up to a limit."""
        added = backlog.add(title)
        assert name is None or name == added
        assert [added] == backlog.items()
        assert "/" not in added

    def test_a_full_disk(
        self, workspace: Workspace, backlog: Backlog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A failed write leaves no empty item that a watch would pick up."""

        def full(_path: Path, _text: str) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("cuggino.storage.backlog.write_atomic", full)
        with pytest.raises(StorageError, match="No space left on device"):
            backlog.add("Log in")
        assert [] == names(workspace.backlog)

    def test_a_blank_title(self, backlog: Backlog) -> None:
        """An item needs a title."""
        with pytest.raises(ConfigError, match="the title is empty"):
            backlog.add(" \n ")
        assert [] == backlog.items()

    def test_removed_is_archived(self, workspace: Workspace, backlog: Backlog) -> None:
        """A removed item is in the archive."""
        drop(workspace, "a.md", "text")
        name = backlog.remove("a.md")
        assert name.endswith("-removed-a.md")
        assert "text" == (workspace.archive / name).read_text()
        assert [] == backlog.items()

    def test_a_parked_one_can_be_removed(self, workspace: Workspace, backlog: Backlog) -> None:
        """Removal falls back to a parked item if the backlog has none of the name."""
        drop(workspace, "a.md", "parked")
        backlog.park("a.md", "why")
        drop(workspace, "a.md", "new")
        assert "new" == (workspace.archive / backlog.remove("a.md")).read_text()
        assert "parked" == (workspace.archive / backlog.remove("a.md")).read_text()
        assert [] == names(workspace.parked)


AFTER_A = "---\nafter: a\n---\n# B\n"

Write = Callable[..., None]


@pytest.fixture
def write(backlog: Backlog) -> Write:
    def write(**texts: str) -> None:
        for name, text in texts.items():
            backlog.path(f"{name}.md").write_text(text)

    return write


def archive(backlog: Backlog, name: str, outcome: str) -> None:
    digest = backlog.digest(name)
    assert digest is not None
    assert backlog.archive(name, outcome, digest)


def test_an_item_waits_for_the_one_before_it(backlog: Backlog, write: Write) -> None:
    """It may begin once that is archived, approved or at its last iteration."""
    for outcome in ("approved", "max-iterations"):
        write(a="# A\n", b=AFTER_A)
        order = backlog.order(backlog.items())
        assert ("a.md",) == order.ready
        assert {"b.md": ("a.md",)} == order.waiting
        archive(backlog, "a.md", outcome)
        assert ("b.md",) == backlog.order(backlog.items()).ready


def test_an_item_waits_for_its_time(backlog: Backlog, write: Write) -> None:
    """Of several times the latest counts; those after the item wait for it; a bad time holds it."""
    write(
        a="---\nafter: [2026-12-01 UTC, 2026-12-01 08:00 UTC]\n---\n# A\n",
        b=AFTER_A,
        c="---\nafter:\n  - 2026-13-01\n---\n# C\n",
    )
    for hour, ready in ((7, ()), (8, ("a.md",))):
        now = datetime(2026, 12, 1, hour, tzinfo=UTC)
        order = backlog.order(backlog.items(), now=now)
        assert ready == order.ready
        assert {"b.md": ("a.md",)} == order.waiting
        assert bool(ready) is backlog.may_begin("a.md", now)
        bad = "comes after 2026-13-01, which is not a time: month must be in 1..12"
        until = {} if ready else {"a.md": "until 2026-12-01 08:00 UTC"}
        assert {"c.md": bad, **until} == order.reasons


def test_what_a_person_took_out_holds_an_item(backlog: Backlog, write: Write) -> None:
    """A parked item and a removed one have not landed, even if they had before."""
    write(a="# A\n", b=AFTER_A)
    archive(backlog, "a.md", "approved")
    write(a="# A\n")
    backlog.park("a.md", "failed")
    assert {"b.md": "comes after a.md, which is parked"} == backlog.order(backlog.items()).held
    backlog.remove("a.md")
    assert {"b.md": "comes after a.md, which was removed"} == backlog.order(backlog.items()).held
    write(a="# A\n")
    archive(backlog, "a.md", "approved")
    assert ("b.md",) == backlog.order(backlog.items()).ready


def test_a_parked_item_of_the_same_name_holds_nothing(backlog: Backlog, write: Write) -> None:
    """Only the item in the backlog counts, not the parked one."""
    write(a="# A\n", b=AFTER_A)
    backlog.park("a.md", "failed")
    write(a="# A\n")
    assert ("a.md",) == backlog.order(backlog.items()).ready


def test_items_held_for_other_reasons(backlog: Backlog, write: Write) -> None:
    """They hold what comes after them, and nothing else."""
    write(a="# A\n", b=AFTER_A, c="# C\n")
    order = backlog.order(backlog.items(), held={"a.md": "has a spec issue"})
    assert ("c.md",) == order.ready
    assert {
        "a.md": "has a spec issue",
        "b.md": "comes after a.md, which has a spec issue",
    } == order.held


def test_an_edited_item(backlog: Backlog, write: Write) -> None:
    """Each survey reads what has changed."""
    write(a="# A\n", b=AFTER_A)
    assert ("a.md",) == backlog.order(backlog.items()).ready
    write(b="# B, without anything before it\n")
    assert ("a.md", "b.md") == backlog.order(backlog.items()).ready


def test_the_focus_has_no_front_matter(backlog: Backlog, write: Write) -> None:
    """Agents read the text of the item."""
    write(b=f"{AFTER_A}\nBlue.\n", c="---\nprose\n---\nmore\n")
    assert "The file `.cuggino/backlog/b.md`, with this content:\n\n# B\n\nBlue." == backlog.focus(
        "b.md"
    )
    assert backlog.focus("c.md").endswith("content:\n\n---\nprose\n---\nmore")
    assert "B" == backlog.title("b.md")


@pytest.mark.parametrize("text", ["\nBlue.\n", ""])
def test_an_added_item_keeps_its_front_matter(backlog: Backlog, text: str) -> None:
    """The title follows it."""
    first = backlog.add("A")
    second = backlog.add("B", f"---\nafter: {first}\n---\n{text}")
    assert {second: (first,)} == backlog.order(backlog.items()).waiting
    assert "B" == backlog.title(second)
    assert backlog.focus(second).endswith(f"content:\n\n# B\n{text}".strip())


def test_front_matter_alone_is_no_item(backlog: Backlog, write: Write) -> None:
    """There is nothing to work on."""
    write(a="---\nafter: b\n---\n\n", b="# B\n")
    survey = backlog.survey()
    assert ["b.md"] == survey.items
    assert {"a.md": "empty"} == survey.problems
    with pytest.raises(ConfigError, match="is empty"):
        backlog.focus("a.md")


def test_a_long_item(backlog: Backlog, write: Write) -> None:
    """An item is blank only if all of it is."""
    write(a=f"{AFTER_A[:18]}\n{' ' * 100_000}x", b=" " * 100_000, c=f"{' ' * 100_000}x")
    assert ["a.md", "c.md"] == backlog.items()


SEPARATED = st.tuples(
    st.integers(0, 999_999), st.integers(3, 6), st.sampled_from(["-a.md", ".md"])
).map(lambda drawn: f"{drawn[0]:0{drawn[1]}}{drawn[2]}")


@each(
    "expected, names",
    [
        ("001", []),
        ("001", ["login.md", "7-of-9.md", "12-x.md", "20261121-x.md", "0015x.md"]),
        ("002", ["001-a.md"]),
        ("011", ["010.md", "009-b.md"]),
        ("0012", ["0011-a.md"]),
        ("101", ["0999-a.md", "100-b.md"]),
        ("999", ["998-a.md"]),
        ("999001", ["999-a.md"]),
        ("999001", ["999-a.md", "1000-b.md"]),
        ("999002", ["999-a.md", "999001-b.md", "1000-c.md"]),
        ("1002", ["100-a.md", "1001-b.md"]),
        ("999999001", ["999999-a.md"]),
        ("999999002", ["999999001-a.md"]),
        ("9999001", ["9999-a.md"]),
        ("9999002", ["9999001-a.md"]),
    ],
)
def test_next_number(expected: str, names: list[str]) -> None:
    """It follows the last number in its width, and never gets wider."""
    assert expected == next_number(names)


@given(names=st.lists(SEPARATED, max_size=8), more=st.integers(1, 40))
def test_each_new_name_comes_last(names: list[str], more: int) -> None:
    """For any numbers, each added name sorts after all others."""
    for _ in range(more):
        added = f"{next_number(names)}-new.md"
        assert all(name < added for name in names)
        names = [*names, added]


def test_two_thousand_and_more() -> None:
    """Names added one after another stay in order across every overflow."""
    names = ["000-first.md"]
    for _ in range(2500):
        names.append(f"{next_number(names[-1:])}-x.md")
    assert sorted(names) == names
    assert len(set(names)) == len(names)
    assert "999999502-x.md" == names[-1]


def filled(folder: Path) -> Workspace:
    """A workspace with the items `a.md` and `b.md` and an empty file."""
    workspace = Workspace(folder)
    workspace.open()
    for name, text in (("b.md", "x"), ("a.md", "x"), ("empty.md", "")):
        (workspace.backlog / name).write_text(text)
    return workspace


def test_items_and_problems_come_from_one_listing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is listed once for both."""
    backlog = Backlog(filled(tmp_path))
    looked: list[Path] = []

    def note(folder: Path) -> list[os.DirEntry[str]]:
        looked.append(folder)
        return visible_entries(folder)

    monkeypatch.setattr("cuggino.storage.backlog.visible_entries", note)
    assert (["a.md", "b.md"], {"empty.md": "empty"}) == backlog.survey()
    assert 1 == len(looked)


def test_a_file_deleted_during_the_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file deleted after the listing is neither an item nor a problem."""

    def listed(folder: Path) -> list[os.DirEntry[str]]:
        entries = visible_entries(folder)
        (folder / "a.md").unlink()
        return entries

    backlog = Backlog(filled(tmp_path))
    monkeypatch.setattr("cuggino.storage.backlog.visible_entries", listed)
    assert (["b.md"], {"empty.md": "empty"}) == backlog.survey()


def test_an_item_that_cannot_be_read_is_not_archived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unreadable item may have changed, so it stays."""
    workspace = filled(tmp_path)
    backlog = Backlog(workspace)
    digest = backlog.digest("a.md")
    assert digest is not None

    def refuse(_path: Path) -> str | None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("cuggino.storage.backlog.digest_of", refuse)
    assert not backlog.archive("a.md", "approved", digest)
    assert backlog.is_there("a.md")
    assert [] == list(workspace.archive.iterdir())
