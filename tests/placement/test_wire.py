"""Messages between a client and its attempts, and those that are refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cuggino import errors
from cuggino.config import Config
from cuggino.errors import (
    AgentFailed,
    CugginoError,
    LoopError,
    ProcessFailed,
    QuotaExceeded,
    RoleViolation,
    SpawnFailed,
    StorageError,
    WorkspaceLocked,
)
from cuggino.events import LoopApproved, QuotaUsed, WatchCandidate, WatchSentBack
from cuggino.loops import LoopRunOptions
from cuggino.operators.supervision import QuotaGate
from cuggino.placement.assignment import Assignment, Carried, carry, unpack
from cuggino.placement.limits import (
    ACCOUNT,
    Limit,
    add_windows,
    close_gates,
    limits_met,
    windows_known,
)
from cuggino.placement.mirror import Growth, Kept
from cuggino.placement.wire import Failed, FileGone, FileGrown, Limits, Said, decode, encode
from cuggino.stages.slots import Slot
from cuggino.storage import Workspace
from cuggino.testing import InMemoryAgent
from tests.placement.test_faults import NONSENSE
from tests.vectors import each

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
JOURNAL = "journal/01a20886-dc05-752e-872a-41b48325e2ab.jsonl"
LIMIT = Limit(account="a", agents="claude", until=NOW, resets_at=NOW, message="used up")

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, CugginoError)
]


@each("kind", KINDS)
def test_every_error(kind: type[CugginoError]) -> None:
    """An error keeps its class, its fields, its words and its exit code."""
    error = kind.__new__(kind)
    CugginoError.__init__(error, "it failed", hint="mend it")
    if isinstance(error, LoopError):
        error = LoopError("planning", "no", cause=QuotaExceeded("used up", resets_at=NOW))
    returned = decode(encode(Failed(error)))
    assert isinstance(returned, Failed)
    again = returned.error
    assert (kind, str(error), error.message) == (type(again), str(again), again.message)
    assert (error.hint, error.code) == (again.hint, again.code)


@pytest.mark.parametrize(
    "error",
    [
        QuotaExceeded("used up", resets_at=NOW),
        AgentFailed("no", reason="overloaded", hint="wait"),
        RoleViolation("planning", ("a", "b"), kept="refs/x"),
        ProcessFailed("git", 128, "fatal: no\n"),
        SpawnFailed("git", OSError(24, "too many")),
        StorageError("write", "full"),
        WorkspaceLocked("/x", 7, since=NOW, command="cuggino watch"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_fields_of_errors(error: CugginoError) -> None:
    """Fields that are decided on are the same on the other side."""
    returned = decode(encode(Failed(LoopError("planning", "no", cause=error))))
    assert isinstance(returned, Failed)
    assert isinstance(returned.error, LoopError)
    cause = returned.error.cause
    assert cause is not None
    assert cause is returned.error.__cause__
    assert vars(error) == vars(cause)


@pytest.mark.parametrize(
    "raw",
    [
        {"type": "Unheard", "fields": {"message": "new"}},
        {"type": "errno", "fields": {"message": "new"}},
        {"type": "PlaceGone", "fields": {"message": "new", "__class__": "x", "code": 7}},
    ],
)
def test_unknown_error(raw: object) -> None:
    """An error of another version is still an error, and changes nothing but its fields."""
    returned = decode(json.dumps({"error": raw}))
    assert isinstance(returned, Failed)
    assert ("new", 1) == (returned.error.message, returned.error.code)


@pytest.mark.parametrize(
    "said",
    [
        FileGrown(JOURNAL, 7, b"\0line\n"),
        FileGrown("attempt.json", None, b""),
        FileGone("MERGE_HEAD"),
        Limits((LIMIT,)),
        LoopApproved(iteration=2),
    ],
    ids=lambda said: type(said).__name__,
)
def test_round_trip(said: Said) -> None:
    assert said == decode(encode(said))


@pytest.mark.parametrize("text", NONSENSE[:3] + NONSENSE[7:])
def test_no_message(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(text)


def test_assignment(tmp_path: Path) -> None:
    """An assignment is the same on the worker, bytes and options included."""
    sent_back = WatchSentBack(filename="a.md", reason="conflict", paths=("x",), returns=1)
    given = Assignment.of(
        config=Config(commit=True),
        options=LoopRunOptions(cwd=tmp_path, item="a.md 0", env={"A": "1"}, focus="it"),
        key="k",
        item="a.md 0",
        slot=2,
        number=3,
        base="b",
        remote="r",
        agent="claude",
        settings=(("user.name", "A"), ("user.name", "B")),
        candidate=WatchCandidate(filename="a.md", slot=2, commit="c", base="b", attempt=2),
        sent_back=sent_back,
        files=(Carried(path="a", content=bytes(range(256)), mode=0o755),),
        limits=(LIMIT,),
    )
    again = Assignment.model_validate_json(given.model_dump_json())
    assert given == again
    assert Config(commit=True) == again.configuration()
    there = again.loop_options(tmp_path / "there")
    assert (tmp_path / "there", {"A": "1"}, "it") == (there.cwd, there.env, there.focus)


def test_files_travel(tmp_path: Path) -> None:
    """Contents, modes and links arrive; a file that is named twice travels once."""
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "run.sh").write_bytes(b"\0\xff")
    (source / "deep" / "run.sh").chmod(0o755)
    (source / "link").symlink_to("deep/run.sh")
    names = [(source / name, name) for name in ("deep/run.sh", "link", "link", "deep")]
    target.mkdir()
    for _ in range(2):
        unpack(carry(names), target)  # type: ignore[arg-type]
    assert b"\0\xff" == (target / "link").read_bytes()
    assert (target / "link").is_symlink()
    assert 0o755 == (target / "deep" / "run.sh").stat().st_mode & 0o777


@pytest.mark.parametrize("path", ["../out", "/out", "a/../../out", "link/out", "."])
def test_paths_that_leave(tmp_path: Path, path: str) -> None:
    """No file is written outside of the folder, also not through a link that came along."""
    (tmp_path / "outside").mkdir()
    folder = tmp_path / "folder"
    folder.mkdir()
    link = Carried(path="link", content=str(tmp_path / "outside").encode(), link=True)
    with pytest.raises(ValueError, match="leads out of the folder"):
        unpack([link, Carried(path=path, content=b"x")], folder)
    assert not list((tmp_path / "outside").iterdir())
    assert not (tmp_path / "out").exists()


def kept(folder: Path) -> Kept:
    home = Workspace(folder)
    home.open()
    return Kept(home, "a.md")


@pytest.mark.parametrize(
    "name",
    [
        *("../x", "memory.md", "journal/x.jsonl", f"{JOURNAL}/x", "wip/../x", "wip/a/b/c/d/e"),
        *("spec-issues/../x", "spec-issues/a/b", "tbd/..", "/etc/passwd", "wip", "", "lock"),
        *("backlog/a.md", "control/stop", "attempt.json\n", "prompts/x"),
    ],
)
def test_names_of_no_attempt(tmp_path: Path, name: str) -> None:
    """A worker changes no file of the project but its journals, its issues and its own."""
    for change in (FileGrown(name, None, b"x"), FileGrown(name, 0, b"x"), FileGone(name)):
        with pytest.raises(ValueError, match="a worker may not"):
            kept(tmp_path).apply(change)


@pytest.mark.parametrize("name", [JOURNAL, "spec-issues/a.md", "tbd/a.md"])
def test_nothing_of_the_project_is_removed(tmp_path: Path, name: str) -> None:
    """A worker removes nothing of the project, and replaces nothing that is there."""
    mirror = kept(tmp_path)
    mirror.apply(FileGrown(name, None, b"first\n"))
    mirror.apply(FileGrown(name, None, b"second\n"))
    with pytest.raises(ValueError, match="a worker may not remove"):
        mirror.apply(FileGone(name))
    assert b"first\n" == (tmp_path / ".cuggino" / name).read_bytes()


def test_journal_of_an_attempt(tmp_path: Path) -> None:
    """Parts that come again change nothing; one that is missing is an error."""
    mirror = kept(tmp_path)
    for start, content in ((0, b"one\n"), (0, b"one\n"), (0, b"one\ntwo\n"), (4, b"two\nthree\n")):
        mirror.apply(FileGrown(JOURNAL, start, content))
    with pytest.raises(ValueError, match="lacks 3 bytes"):
        mirror.apply(FileGrown(JOURNAL, 17, b"four\n"))
    assert b"one\ntwo\nthree\n" == (tmp_path / ".cuggino" / JOURNAL).read_bytes()


def test_unsaved_stage(tmp_path: Path) -> None:
    """The end of a stage is not sent before its work is saved, nor are later events."""
    home, desk = Workspace(tmp_path / "home"), Workspace(tmp_path / "desk")
    home.open()
    desk.open()
    slot = Slot(number=1, root=tmp_path / "desk", folder=tmp_path / "desk", project=tmp_path)
    growth = Growth(home, desk, slot)
    journal = home.folder / JOURNAL
    journal.parent.mkdir()
    lines = [
        *(b'{"event":"begin"}\n', b'{"_tag":"StageFinished"}\n', b'{"event":"later"}\n'),
        b'{"_tag":"StageFinished"}\n',
    ]

    def told(*new: bytes) -> bytes:
        with journal.open("ab") as file:
            file.writelines(new)
        return b"".join(change.content for change in growth.news() if isinstance(change, FileGrown))

    assert lines[0] == told(lines[0], lines[1][:5])
    assert b"" == told(lines[1][5:], lines[2])
    growth.saved()
    assert b"".join(lines[1:3]) == told(lines[3])
    assert b"" == told()
    growth.saved()
    assert lines[3] == told()


def test_files_that_were_given(tmp_path: Path) -> None:
    """Files that a new attempt no longer has are gone, but only once it has taken over."""
    home, desk = Workspace(tmp_path / "home"), Workspace(tmp_path / "desk")
    home.open()
    desk.open()
    slot = Slot(number=1, root=tmp_path / "desk", folder=tmp_path / "desk", project=tmp_path)
    growth = Growth(home, desk, slot, ["MERGE_HEAD", "wip/old.md", "attempt.json"])
    assert [] == list(growth.news())
    (desk.folder / "attempt.json").write_text("{}")
    changes = list(growth.news())
    assert [FileGone("MERGE_HEAD"), FileGone("wip/old.md")] == changes[1:]
    assert FileGrown("attempt.json", None, b"{}") == changes[0]


@pytest.mark.parametrize(("account", "is_closed"), [("", True), ("team", False)])
def test_limits_bind_one_account(
    monkeypatch: pytest.MonkeyPatch, account: str, is_closed: bool
) -> None:
    """A worker waits for limits that others with its account have met."""
    agent, gate = InMemoryAgent({}), QuotaGate()
    until = NOW.replace(hour=15)
    gate.close(until, now=NOW, resets_at=until, message="used up")
    limits = limits_met(gate, agent, NOW)
    assert {until} == {limit.until for limit in limits}
    monkeypatch.setenv(ACCOUNT, account)
    other = QuotaGate()
    close_gates(other, agent, limits, NOW)
    assert is_closed == (other.remaining(NOW) > 0)


@pytest.mark.parametrize(("account", "expected"), [("", [0.85]), ("team", [])])
def test_windows_are_those_of_one_account(
    monkeypatch: pytest.MonkeyPatch, account: str, expected: list[float]
) -> None:
    """A worker knows the usage windows that others with its account have seen."""
    gate, resets_at = QuotaGate(), NOW.replace(hour=15)
    gate.windows.add(QuotaUsed(window="five_hour", used=0.85, resets_at=resets_at, agent="claude"))
    said = decode(encode(Limits((), windows_known(gate, NOW))))
    assert isinstance(said, Limits)
    monkeypatch.setenv(ACCOUNT, account)
    other = QuotaGate()
    add_windows(other, said.windows)
    assert expected == [one.used for one in other.windows.at(NOW)]


@pytest.mark.parametrize("planned", [False, True])
def test_planned_limits_are_shared(planned: bool) -> None:
    """A worker knows whether a limit is the configuration's."""
    agent, gate, other = InMemoryAgent({}), QuotaGate(), QuotaGate()
    until = NOW.replace(hour=15)
    gate.close(until, now=NOW, resets_at=until, planned=planned)
    said = decode(encode(Limits(limits_met(gate, agent, NOW))))
    assert isinstance(said, Limits)
    close_gates(other, agent, said.limits, NOW)
    assert planned == other.is_planned
