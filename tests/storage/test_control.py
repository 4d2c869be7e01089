"""The control folder: signed commands, and everything else that may lie there."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.errors import ConfigError, StorageError
from cuggino.storage import LONGEST_MESSAGE, ControlFolder
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


def test_a_command_for_another_folder(control: ControlFolder, tmp_path: Path) -> None:
    """A file that was sent to another project counts for nothing here."""
    other = ControlFolder(tmp_path / "other" / "control", key=tmp_path / "state" / "key")
    other.send(ev.StopAsked())
    control.send(ev.PauseAsked())
    (file,) = files(other)
    (control.folder / "0.json").write_bytes(file.read_bytes())
    assert ["it is not signed by this user"] == ignored(control)


def test_a_command_by_another_key(control: ControlFolder, tmp_path: Path) -> None:
    """A file that was signed with another key counts for nothing."""
    ControlFolder(control.folder, key=tmp_path / "theirs").send(ev.StopAsked())
    control.send(ev.PauseAsked())
    assert ["it is not signed by this user"] == ignored(control)


def test_a_changed_command(control: ControlFolder) -> None:
    """The signature is that of the whole command."""
    control.send(ev.StopAsked())
    (file,) = files(control)
    said = json.loads(file.read_text())
    said["command"]["now"] = True
    file.write_text(json.dumps(said))
    assert ["it is not signed by this user"] == ignored(control)


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


def test_a_signed_event_that_is_no_command(control: ControlFolder) -> None:
    """A signed file of a newer version is ignored."""
    control.send(ev.PauseAsked())
    (file,) = files(control)
    said = json.loads(file.read_text())
    del said["signature"]
    said["command"] = {"_tag": "DanceAsked"}
    key = control._read_key()
    assert key is not None
    file.write_text(json.dumps({**said, "signature": control._signature(key, said)}))
    assert ["this version does not know the command"] == ignored(control)


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
