"""What people do on disk: signed commands, changed items, answers, and issues."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.errors import ConfigError, FileChanged, StorageError
from cuggino.storage import (
    LONGEST,
    LONGEST_MESSAGE,
    Backlog,
    ControlFolder,
    Issue,
    Workspace,
    answer_issue,
    move_item,
    read_written,
    rewrite,
    spec_files,
)
from tests.limits import LIMIT


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path / "project" / "control", key=tmp_path / "state" / "key")


def files(control: ControlFolder) -> list[Path]:
    return sorted(control.folder.iterdir())


def ignored(control: ControlFolder) -> list[str]:
    """Return the reasons for which commands are ignored."""
    events = [command.event for command in control.pending()]
    return [event.reason for event in events if isinstance(event, ev.ControlIgnored)]


COMMANDS: list[ev.ControlEvent] = [
    ev.PauseAsked(),
    ev.ContinueAsked(),
    ev.StopAsked(now=True),
    ev.SkipAsked(item="001-è.md"),
    ev.SteerAsked(text="use \u2028 flask\n", item="a"),
]


def test_commands_are_read_in_order(control: ControlFolder) -> None:
    """Commands are read as they were sent, the oldest first, and only new ones later."""
    for command in COMMANDS:
        control.send(command)
    seen: set[str] = set()
    assert COMMANDS == [command.event for command in control.pending()] == control.new(seen)
    control.send(ev.PauseAsked())
    assert [ev.PauseAsked()] == control.new(seen)


def test_only_the_user_reads_key_and_commands(control: ControlFolder, tmp_path: Path) -> None:
    """Key and commands have no permissions for others."""
    control.send(ev.PauseAsked())
    for path in (tmp_path / "state" / "key", *files(control)):
        assert 0o600 == path.stat().st_mode & 0o777


def test_settled_and_cleared(control: ControlFolder) -> None:
    """Commands that have taken effect are removed; messages can outlast a run."""
    control.send(ev.PauseAsked())
    control.send(ev.PauseAsked())
    control.send(ev.SteerAsked(text="x"))
    control.send(ev.StopAsked())
    control.settle(ev.PauseAsked())
    assert [ev.SteerAsked(text="x"), ev.StopAsked()] == [c.event for c in control.pending()]
    control.clear(messages=False)
    assert [ev.SteerAsked(text="x")] == [c.event for c in control.pending()]
    control.clear()
    assert [] == files(control)


@pytest.mark.parametrize("forged", ["folder", "key", "content", "tag"])
def test_a_forged_command(control: ControlFolder, tmp_path: Path, forged: str) -> None:
    """The signature is that of the whole command, for this folder, by the key of the user.

    A command of a newer version is not known.
    """
    control.send(ev.StopAsked())
    (file,) = files(control)
    said = json.loads(file.read_text())
    match forged:
        case "folder":
            other = ControlFolder(tmp_path / "other", key=tmp_path / "state" / "key")
            other.send(ev.StopAsked())
            said = json.loads(files(other)[0].read_text())
        case "key":
            file.unlink()
            ControlFolder(control.folder, key=tmp_path / "theirs").send(ev.StopAsked())
            (file,) = files(control)
            said = json.loads(file.read_text())
        case "content":
            said["command"]["now"] = True
        case _:
            said = {**said, "command": {"_tag": "DanceAsked"}}
            del said["signature"]
            key = control._read_key()
            assert key is not None
            said["signature"] = control._signature(key, said)
    file.write_text(json.dumps(said))
    unknown = "this version does not know the command"
    reason = unknown if forged == "tag" else "it is not signed by this user"
    assert [reason] == ignored(control)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not valid JSON"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b"[]", "it is not a command of cuggino"),
        (b'{"command": []}', "it is not a command of cuggino"),
        (b'{"command": {"_tag": "StopAsked"}}', "it is not signed"),
        (b'{"command": {"_tag": "StopAsked"}, "signature": 7}', "it is not signed"),
        (b'{"command": {"_tag": "StopAsked"}, "signature": "\xc3\xa8"}', "signed by this user"),
        (b"[" * 100_000, "nested"),
        (b" " * 200_000, "larger"),
    ],
)
def test_malformed_files(control: ControlFolder, content: bytes, reason: str) -> None:
    """A file that is not a command is renamed and reported once, with a reason."""
    control.send(ev.PauseAsked())
    (control.folder / "0.json").write_bytes(content)
    seen: set[str] = set()
    first, second = control.new(seen)
    assert isinstance(first, ev.ControlIgnored)
    assert "0.json" == first.source
    assert reason in first.reason
    assert ev.PauseAsked() == second
    assert [] == control.new(seen) == control.new(set())[1:]
    assert "0.ignored" in {path.name for path in files(control)}


def test_what_is_no_file(control: ControlFolder, tmp_path: Path) -> None:
    """A pipe, a folder and a dangling link neither block nor crash."""
    control.send(ev.PauseAsked())
    os.mkfifo(control.folder / "0.json")
    (control.folder / "1.json").mkdir()
    (control.folder / "2.json").symlink_to(tmp_path / "missing")
    events = control.new(set())
    assert ["0.json", "1.json", "2.json"] == [
        event.source for event in events if isinstance(event, ev.ControlIgnored)
    ]
    assert ev.PauseAsked() in events


@pytest.mark.parametrize("text", ["", " \n", "x" * (LONGEST_MESSAGE + 1)])
def test_messages_that_cannot_be_sent(control: ControlFolder, text: str) -> None:
    """An empty or too long message is refused, and writes nothing."""
    with pytest.raises(ConfigError):
        control.send(ev.SteerAsked(text=text))
    assert not control.folder.exists()


def test_without_a_key(tmp_path: Path) -> None:
    """Without a home folder nothing is sent or accepted."""
    control = ControlFolder(tmp_path / "control", key=tmp_path / "key")
    control.send(ev.PauseAsked())
    homeless = ControlFolder(tmp_path / "control", key=None)
    assert ["it is not signed"] == ignored(homeless)
    with pytest.raises(ConfigError, match="there is no home folder"):
        homeless.send(ev.PauseAsked())


def test_a_broken_key_is_replaced(control: ControlFolder, tmp_path: Path) -> None:
    """A key that cannot be used is replaced, so that commands work again."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "key").write_text("no key")
    control.send(ev.PauseAsked())
    assert [ev.PauseAsked()] == [command.event for command in control.pending()]


def test_the_folder_is_a_file(control: ControlFolder) -> None:
    """A file in place of the folder is an error for who sends, and no command for a run."""
    control.folder.parent.mkdir(parents=True)
    control.folder.write_text("")
    with pytest.raises(StorageError, match="control"):
        control.send(ev.PauseAsked())
    assert [] == control.pending()
    assert [] == control.new(set())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(control: ControlFolder) -> None:
    """A folder that cannot be written is an error for who sends; a run goes on."""
    control.send(ev.PauseAsked())
    control.folder.chmod(0o500)
    try:
        with pytest.raises(StorageError, match="control"):
            control.send(ev.PauseAsked())
        control.settle(ev.PauseAsked())
        assert [ev.PauseAsked()] == [command.event for command in control.pending()]
    finally:
        control.folder.chmod(0o700)


def _send(folder: Path, key: Path, number: int) -> None:
    ControlFolder(folder, key=key).send(ev.SteerAsked(text=f"{number}"))


def test_two_processes_make_the_key_at_once(control: ControlFolder, tmp_path: Path) -> None:
    """Of several first commands at once, all are signed with the key that stays."""
    context = multiprocessing.get_context("fork")
    key = tmp_path / "state" / "key"
    senders = [
        context.Process(target=_send, args=(control.folder, key, number)) for number in range(8)
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(LIMIT)
    assert [0] * 8 == [sender.exitcode for sender in senders]
    assert {f"{number}" for number in range(8)} == {
        command.event.text
        for command in control.pending()
        if isinstance(command.event, ev.SteerAsked)
    }
    assert ["key"] == [path.name for path in key.parent.iterdir()]


AT = datetime(2026, 11, 23, tzinfo=UTC)


def fill(workspace: Workspace, *names: str) -> None:
    """Write items that hold their own names."""
    for name in names:
        (workspace.backlog / name).write_text(name)


def order(workspace: Workspace) -> list[tuple[str, str]]:
    """Return the items in their order, each with its content."""
    return [(name, (workspace.backlog / name).read_text()) for name in Backlog(workspace).items()]


class TestRewrite:
    def test_text(self, tmp_path: Path) -> None:
        """The text is written with one line break at its end; a new digest is returned."""
        path = tmp_path / "a.md"
        path.write_text("one\n")
        before = read_written(path)
        after = rewrite(path, "two\r\nlines\r\n\r\n", digest=before.digest)
        assert b"two\nlines\n" == path.read_bytes()
        assert read_written(path) == after
        assert before.digest != after.digest

    def test_line_endings_are_kept(self, tmp_path: Path) -> None:
        """A file with the line endings of Windows keeps them."""
        path = tmp_path / "a.md"
        path.write_bytes(b"one\r\ntwo\r\n")
        rewrite(path, "one\r\nthree", digest=read_written(path).digest)
        assert b"one\r\nthree\r\n" == path.read_bytes()

    def test_a_changed_file_is_not_overwritten(self, tmp_path: Path) -> None:
        """A file that someone else saved meanwhile stays as it is."""
        path = tmp_path / "a.md"
        path.write_text("one\n")
        shown = read_written(path)
        path.write_text("by an editor\n")
        with pytest.raises(FileChanged, match="has changed since it was shown"):
            rewrite(path, "by the page\n", digest=shown.digest)
        assert "by an editor\n" == path.read_text()

    def test_a_missing_file_is_not_created(self, tmp_path: Path) -> None:
        """A file that is gone is an error, not a new file."""
        with pytest.raises(StorageError, match="is gone"):
            rewrite(tmp_path / "a.md", "text", digest="")
        assert [] == list(tmp_path.iterdir())

    def test_blank(self, tmp_path: Path) -> None:
        """A blank text is refused, and the file unchanged."""
        path = tmp_path / "a.md"
        path.write_text("one\n")
        with pytest.raises(ConfigError, match="the text is empty"):
            rewrite(path, " \n", digest=read_written(path).digest)
        assert "one\n" == path.read_text()

    @pytest.mark.parametrize("content", [b"\xff", b"a\0b", b"x" * (LONGEST + 1)])
    def test_not_editable(self, tmp_path: Path, content: bytes) -> None:
        """A file whose text could not be given back exactly is not edited."""
        path = tmp_path / "a.md"
        path.write_bytes(content)
        with pytest.raises(StorageError, match="cannot be edited here"):
            read_written(path)


class TestMove:
    @pytest.mark.parametrize(
        ("name", "up", "moved", "after"),
        [
            ("003-c.md", True, "002-c.md", ["001-a.md", "002-c.md", "003-b.md"]),
            ("001-a.md", False, "002-a.md", ["001-b.md", "002-a.md", "003-c.md"]),
            ("001-a.md", True, "001-a.md", ["001-a.md", "002-b.md", "003-c.md"]),
            ("003-c.md", False, "003-c.md", ["001-a.md", "002-b.md", "003-c.md"]),
        ],
    )
    def test_numbers_are_exchanged(
        self,
        workspace: Workspace,
        backlog: Backlog,
        name: str,
        up: bool,
        moved: str,
        after: Sequence[str],
    ) -> None:
        """An item takes the number of its neighbor, and the neighbor its own."""
        fill(workspace, "001-a.md", "002-b.md", "003-c.md")
        assert moved == move_item(backlog, name, up=up)
        assert list(after) == backlog.items()
        assert [item[-4:] for item in after] == [text[-4:] for _, text in order(workspace)]

    def test_a_kept_item_is_passed_over(self, workspace: Workspace, backlog: Backlog) -> None:
        """An item at work keeps its name; its neighbors exchange theirs around it."""
        fill(workspace, "001-a.md", "002-b.md", "003-c.md")
        assert "001-c.md" == move_item(backlog, "003-c.md", up=True, keep=["002-b.md"])
        assert ["001-c.md", "002-b.md", "003-a.md"] == backlog.items()
        with pytest.raises(ConfigError, match=r"002-b\.md is at work"):
            move_item(backlog, "002-b.md", up=True, keep=["002-b.md"])

    def test_names_without_numbers(self, workspace: Workspace, backlog: Backlog) -> None:
        """Without distinct numbers all items get new ones, in their order."""
        fill(workspace, "b.md", "001-a.md", "001-z.md")
        assert "002-b.md" == move_item(backlog, "b.md", up=True)
        assert [("001-a.md", "001-a.md"), ("002-b.md", "b.md"), ("003-z.md", "001-z.md")] == order(
            workspace
        )

    def test_the_same_words(self, workspace: Workspace, backlog: Backlog) -> None:
        """Two items with the same words change places without losing either."""
        fill(workspace, "001-x.md", "002-x.md")
        move_item(backlog, "002-x.md", up=True)
        assert ["002-x.md", "001-x.md"] == [text for _, text in order(workspace)]

    def test_gone(self, backlog: Backlog) -> None:
        """An item that is gone is an error."""
        with pytest.raises(StorageError, match="is gone"):
            move_item(backlog, "001-a.md", up=True)


class TestAnswer:
    def test_first_and_second(self, workspace: Workspace, tmp_path: Path) -> None:
        """Answers are added at the end of one specification; the issues are archived."""
        specs = tmp_path / "docs" / "specs"
        for number in (1, 2):
            workspace.write_spec_issue(f"# Question {number}\n\nWhich?")
            (issue,) = workspace.issues()
            archived = answer_issue(workspace, issue, f"This {number}.\r\n", specs=specs, at=AT)
            assert archived.endswith(f"-resolved-{issue.name}")
        text = (specs / "decisions.md").read_text()
        assert 1 == text.count("# Decisions\n")
        assert text.endswith(
            "\n## 2026-11-23: Question 2\n\n> # Question 2\n>\n> Which?\n\nThis 2.\n"
        )
        assert "\n\nThis 1.\n\n## " in text
        assert [] == workspace.issues()

    def test_twice(self, workspace: Workspace, tmp_path: Path) -> None:
        """A second answer to a settled question is an error, and not written."""
        workspace.write_spec_issue("Which?")
        (issue,) = workspace.issues()
        answer_issue(workspace, issue, "This.", specs=tmp_path, at=AT)
        before = (tmp_path / "decisions.md").read_text()
        with pytest.raises(StorageError, match="is gone"):
            answer_issue(workspace, issue, "That.", specs=tmp_path, at=AT)
        assert before == (tmp_path / "decisions.md").read_text()

    def test_a_link_is_not_followed(self, workspace: Workspace, tmp_path: Path) -> None:
        """If the specification is a link, nothing is written and the issue stays."""
        workspace.write_spec_issue("Which?")
        (issue,) = workspace.issues()
        elsewhere = tmp_path / "elsewhere"
        elsewhere.write_text("")
        (tmp_path / "decisions.md").symlink_to(elsewhere)
        with pytest.raises(StorageError):
            answer_issue(workspace, issue, "This.", specs=tmp_path, at=AT)
        assert "" == elsewhere.read_text()
        assert [issue] == workspace.issues()

    def test_blank(self, workspace: Workspace, tmp_path: Path) -> None:
        """A blank answer settles nothing."""
        workspace.write_spec_issue("Which?")
        (issue,) = workspace.issues()
        with pytest.raises(ConfigError, match="the answer is empty"):
            answer_issue(workspace, issue, " \n", specs=tmp_path, at=AT)
        assert [issue] == workspace.issues()


def test_spec_files(tmp_path: Path) -> None:
    """Text files are listed in order, without hidden ones and links."""
    for name in ("b.md", "a/z.txt", ".hidden.md", ".git/x.md", "logo.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "link.md").symlink_to("b.md")
    assert ["b.md", "a/z.txt"] == spec_files(tmp_path)


FOUND_AT = datetime(2026, 3, 1, 9, tzinfo=UTC)


def test_they_are_listed_in_order(workspace: Workspace) -> None:
    """Spec issues come first, then findings, each in order of time."""
    finding = workspace.write_tbd_item("\n## A finding\nmore")
    issues = [workspace.write_spec_issue(f"Issue {n}\n\ntext") for n in range(2)]
    (workspace.spec_issues / ".hidden").write_text("x")
    (workspace.spec_issues / "folder").mkdir()
    expected = [
        ("spec-issue", issues[0], "Issue 0"),
        ("spec-issue", issues[1], "Issue 1"),
        ("tbd", finding, "A finding"),
    ]
    found = workspace.issues()
    assert expected == [(issue.kind, issue.name, issue.title) for issue in found]
    assert workspace.tbd / finding == found[2].path


def test_without_folders(tmp_path: Path) -> None:
    """A workspace that was never opened has no issues and no memory."""
    assert ([], "") == (Workspace(tmp_path).issues(), Workspace(tmp_path).read_memory())


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("", "(empty)"),
        ("\n#\n \n", "(empty)"),
        ("\ufffe\n", "\ufffe"),
        ("x" * 5_000_000, "x" * 200 + "..."),
        ("#hashtag", "hashtag"),
    ],
)
def test_titles(workspace: Workspace, text: str, title: str) -> None:
    """The title is the first line with text, truncated, and never an error."""
    workspace.write_tbd_item(text)
    assert [title] == [issue.title for issue in workspace.issues()]


def test_resolved_is_archived(workspace: Workspace) -> None:
    """A resolved issue is in the archive, and not in the memory."""
    workspace.write_spec_issue("text")
    (issue,) = workspace.issues()
    name = workspace.resolve(issue)
    assert name.endswith(f"-resolved-{issue.name}")
    assert "text" == (workspace.archive / name).read_text()
    assert ([], "") == (workspace.issues(), workspace.read_memory())


def test_dismissed_is_remembered(workspace: Workspace) -> None:
    """Each dismissed issue is in the archive, and in the memory with date, reason and text."""
    workspace.write_tbd_item("# Two names\n\nfor one thing")
    workspace.write_tbd_item("y" * 3000)
    first, second = workspace.issues()
    name = workspace.dismiss(first, "both\nare fine", at=FOUND_AT)
    assert "-dismissed-" in name
    assert (workspace.archive / name).exists()
    expected = """\
# Memory

What was discussed and dismissed. The audit agent reads this and does not raise it again.

## 2026-03-01: Two names

Dismissed: both are fine

> # Two names
>
> for one thing
"""
    assert expected == workspace.read_memory()
    workspace.dismiss(second, "no", at=FOUND_AT)
    memory = workspace.read_memory()
    assert memory.startswith(expected)
    assert memory.endswith("> " + "y" * 1000 + " ...\n")
    assert [] == workspace.issues()


def test_manual_memory_is_kept(workspace: Workspace) -> None:
    """Text that a person wrote into the memory is kept."""
    workspace.memory.write_text("Never mention tabs.\n")
    workspace.write_tbd_item("Tabs")
    workspace.dismiss(workspace.issues()[0], "see above", at=FOUND_AT)
    assert workspace.read_memory().startswith("Never mention tabs.\n\n## 2026-03-01: Tabs\n")


def test_a_missing_issue(workspace: Workspace) -> None:
    """A missing issue is an error, and is not remembered."""
    issue = Issue(kind="tbd", name="x.md", path=workspace.tbd / "x.md", title="x")
    with pytest.raises(StorageError, match=r"x\.md is gone"):
        workspace.resolve(issue)
    with pytest.raises(StorageError, match=r"x\.md is gone"):
        workspace.dismiss(issue, "why", at=FOUND_AT)
    assert "" == workspace.read_memory()


def test_a_full_disk(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the memory cannot be written, it is unchanged and the issue stays."""
    workspace.memory.write_text("Mine.\n")
    workspace.write_tbd_item("text")
    (issue,) = workspace.issues()

    def refuse(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(StorageError, match="No space left on device"):
            workspace.dismiss(issue, "why", at=FOUND_AT)
    assert "Mine.\n" == workspace.read_memory()
    assert [issue] == workspace.issues()
