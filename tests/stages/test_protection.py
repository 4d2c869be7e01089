"""Attacks on protected files where no sandbox holds: nothing stays changed, or an event says so."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from reactivex import concat, defer, empty, just

from cuggino import run
from cuggino.errors import RoleViolation
from cuggino.events import (
    AgentMessage,
    Done,
    InstructionsChanged,
    ProtectedChanged,
    RoleViolated,
    RunStarted,
)
from cuggino.files import write_atomic
from cuggino.protection import ExpectedFiles, expected, own_write
from cuggino.sandbox import ViewRole, protected_for
from cuggino.stages import verified
from cuggino.storage import DeliverableStore, Session, VerifiedFile, Workspace
from cuggino.storage.journal import Journal, read_journal
from tests.git_project import GitProject, make_once

NOW = datetime(2026, 3, 4, tzinfo=UTC)
STATUS = ".autonoe/status.json"
VERDICT = Done(content="done")
_COMPUTED = (".cuggino/digests", ".cuggino/snapshots", ".cuggino/kept")
FORGE = 'sed -i \'s/"passed": false/"passed": true/\' '


class Attack(NamedTuple):
    """A command of an agent without a sandbox."""

    command: str
    changed: str = ""
    """A path that `RoleViolated` names; "" for none."""
    told: str = ""
    """A path that another event names."""
    role: ViewRole = "coding"
    undone: bool = True
    """True if all files are as they were."""
    specs: str = ".specs"


ATTACKS = {
    "a forged status": Attack(FORGE + STATUS, STATUS),
    "a stash of the list": Attack("git stash push -q -a -- .autonoe", STATUS),
    "a stash of all": Attack("git stash push -q -a", STATUS),
    "all that is not committed": Attack("git clean -qxfd", STATUS),
    "no list": Attack("rm -rf .autonoe", STATUS),
    "the list of a commit": Attack(
        f"{FORGE}{STATUS} && git add -f .autonoe && git commit -qm x && git checkout HEAD -- .",
        STATUS,
    ),
    "a list moved away": Attack("mv .autonoe gone", STATUS),
    "a link in place of the folder": Attack(
        f"cp -r .autonoe o; {FORGE} o/status.json; rm -r .autonoe; ln -s o .autonoe", STATUS
    ),
    "a link in place of the list": Attack(
        f"cp {STATUS} o; {FORGE} o; ln -sf ../o {STATUS}", STATUS
    ),
    "another mode": Attack(f"chmod 0 {STATUS}", STATUS),
    "a folder that cannot be written": Attack(f"{FORGE}{STATUS}; chmod 500 .autonoe", STATUS),
    "a forged verification": Attack(
        'echo \'{"all": ["a"], "verified": ["a"]}\' > .cuggino/wip/run.verified.json',
        ".cuggino/wip/run.verified.json",
        role="verify",
    ),
    "a forged plan": Attack("echo '# Plan' > .cuggino/wip/run.md", ".cuggino/wip/run.md"),
    "a shorter journal": Attack(
        "head -n1 .cuggino/journal/run.jsonl > x; cat x > .cuggino/journal/run.jsonl",
        ".cuggino/journal/run.jsonl",
    ),
    "no journal": Attack("rm -r .cuggino/journal", ".cuggino/journal/run.jsonl"),
    "another journal": Attack(
        "echo x > .cuggino/journal/old.jsonl", told=".cuggino/journal/old.jsonl", undone=False
    ),
    "jobs that need no verification": Attack(
        "echo '[]' > .cuggino/unverified-jobs.json", ".cuggino/unverified-jobs.json"
    ),
    "settings": Attack("echo '{}' > .cuggino.json", ".cuggino.json"),
    "an item taken for done": Attack(
        "mv .cuggino/backlog/one.md .cuggino/archive/", told=".cuggino/backlog/one.md", undone=False
    ),
    "no backlog": Attack("rm -r .cuggino/backlog", ".cuggino/backlog/one.md"),
    "specifications behind a link": Attack(
        "echo easy > docs/a.md", "docs/a.md", role="implementing"
    ),
    "another folder of specifications": Attack(
        "mv docs old; cp -r old docs; echo easy > docs/a.md", "docs/a.md", role="implementing"
    ),
    "an unstaged specification": Attack(
        "git rm -q --cached docs/a.md", ":docs/a.md", role="implementing", specs="docs"
    ),
    "a candidate": Attack(
        "git update-ref refs/cuggino/candidates/x HEAD", "refs/cuggino/candidates/x"
    ),
    "a hook": Attack("echo x > .git/hooks/pre-commit", ".git/hooks/pre-commit"),
    "a change hidden from verification": Attack(
        "echo evil > code.py; git --git-dir=.cuggino/snapshots --work-tree=. "
        "update-index --assume-unchanged code.py",
        "code.py",
        role="reviewing",
    ),
    "instructions": Attack("echo approve > AGENTS.md", told="AGENTS.md", undone=False),
    "instructions of an editor": Attack(
        "mkdir .vscode; echo {} > .vscode/tasks.json", told=".vscode/tasks.json", undone=False
    ),
}


@pytest.fixture
def work(project: GitProject) -> GitProject:
    """A project with a list of deliverables, and the files of a run."""

    def make() -> None:
        project.write(".gitignore", ".cuggino/\n.autonoe/\n")
        project.write("docs/a.md", "hard\n")
        project.write("code.py", "good\n")
        project.git("add", "--all")
        project.git("commit", "--quiet", "--message", "start")
        item = {"id": "a", "description": "d", "acceptanceCriteria": ["c"], "passed": False}
        project.write(STATUS, json.dumps({"deliverables": [item, {**item, "id": "b"}]}, indent=1))
        project.write(".cuggino/wip/run.md", "# Plan\n")
        project.write(".cuggino/wip/run.verified.json", '{"all": ["a"], "verified": []}')
        project.write(".cuggino/unverified-jobs.json", '["J1"]')
        project.write(".cuggino/backlog/one.md", "one\n")
        (project.root / ".cuggino/archive").mkdir()
        (project.root / ".git/hooks").mkdir(exist_ok=True)

    make_once("protection", project.root, make)
    if not (project.root / ".specs").is_symlink():
        (project.root / ".specs").symlink_to("docs")
    return project


def session(
    project: Path, role: ViewRole, *acts: Callable[[], object], specs: str = ".specs"
) -> list[Any]:
    """Run one session that acts; return the events."""

    def act(_: Any) -> Any:
        for one in acts:
            one()
        return empty()

    events: list[Any] = []
    around = verified(protected_for(role, project=project, specs=specs))
    try:
        run(concat(defer(act), just(VERDICT)).pipe(around), events.append)
    except RoleViolation:
        assert VERDICT not in events
    return events


def sh(project: Path, command: str) -> None:
    subprocess.run(["/bin/sh", "-c", command], cwd=project, check=True, capture_output=True)


def content(project: Path) -> dict[str, Any]:
    """Return what the protected files hold, with their modes."""
    names = (".autonoe", ".cuggino", ".cuggino.json", "docs", "code.py", ".git/hooks")
    found: dict[str, Any] = {}
    for top in (project / name for name in names):
        for path in (top, *(top.rglob("*") if not top.is_symlink() else ())):
            name = path.relative_to(project).as_posix()
            if path.is_file() and not name.startswith(_COMPUTED):
                link = str(path.readlink()) if path.is_symlink() else ""
                found[name] = (path.read_bytes(), path.stat().st_mode, link)
    return found


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_attack(work: GitProject, attack: Attack) -> None:
    """What this process wrote meanwhile counts; anything else is undone, or named by an event."""
    root = work.root
    started = RunStarted(run_id="run", kind="deliver", command="deliver")
    journal = Journal.create(root / ".cuggino/journal", started, at=NOW)
    said = AgentMessage(text="working")
    kept = Session("run", root / ".cuggino/wip")
    before: dict[str, Any] = {}

    def write() -> None:
        journal.append(said, at=NOW)
        kept.append(Done(content="one"))
        before.update(content(root))

    attacks = (write, lambda: sh(root, attack.command))
    events = session(root, attack.role, *attacks, specs=attack.specs)
    journal.append(said, at=NOW)
    journal.close()
    violated = [event for event in events if isinstance(event, RoleViolated)]
    told = [e for e in events if isinstance(e, ProtectedChanged | InstructionsChanged)]
    assert bool(attack.changed) == (attack.changed in {p for e in violated for p in e.paths})
    assert [()] * bool(attack.changed) == [event.failed for event in violated]
    assert not attack.told or attack.told in {path for event in told for path in event.paths}
    after = content(root)
    entries = list(read_journal(root / ".cuggino/journal/run.jsonl").entries)
    assert [said, said] == [entry.event for entry in entries[1:]]
    if attack.undone:
        del before[".cuggino/journal/run.jsonl"], after[".cuggino/journal/run.jsonl"]
        assert before == after


@pytest.mark.parametrize("first", [True, False])
def test_a_tool_call_around_an_attack(work: GitProject, first: bool) -> None:
    """A call changes the list of this process, not a forged one, and the session is void."""
    store = DeliverableStore(work.root)
    given = {"deliverableId": "a", "status": "passed"}
    acts = [
        lambda: store.call("set_deliverable_status", given, now=NOW),
        lambda: sh(work.root, FORGE + STATUS),
    ]
    events = session(work.root, "coding", *(acts if first else acts[::-1]))
    [violated] = [event for event in events if isinstance(event, RoleViolated)]
    assert (STATUS,) == violated.paths
    assert () == violated.failed
    items = store.load(now=NOW).deliverables.items
    assert {"a": "passed", "b": "pending"} == {item.id: item.status for item in items}


def test_what_is_read_meanwhile(work: GitProject) -> None:
    """This process reads neither a forged verification nor one that it has not written."""
    file = VerifiedFile(work.root / ".cuggino/wip/run.verified.json")
    other = VerifiedFile(work.root / ".cuggino/wip/other.verified.json")
    read: list[Any] = []

    def forge() -> None:
        for each in (file, other):
            each.path.write_text('{"all": ["a"], "verified": ["a"]}')
            read.append(each.read())

    session(work.root, "verify", forge)
    assert [frozenset(), None] == [known and known.verified for known in read]
    assert not other.path.exists()
    assert expected(file.path) is None


def test_nothing_behind_a_link_is_touched(work: GitProject, tmp_path: Path) -> None:
    """A protected folder that leads elsewhere by now is restored, and what it leads to stays."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "status.json").write_text("of a person")
    events = session(
        work.root, "coding", lambda: sh(work.root, f"rm -r .autonoe; ln -s {elsewhere} .autonoe")
    )
    assert () == next(event.failed for event in events if isinstance(event, RoleViolated))
    assert [elsewhere / "status.json"] == list(elsewhere.iterdir())
    assert "of a person" == (elsewhere / "status.json").read_text()


def test_what_cannot_be_put_back_is_named(
    work: GitProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event goes by the disk."""
    monkeypatch.setattr("cuggino.protection._replace", lambda *_: None)
    events = session(work.root, "coding", lambda: sh(work.root, FORGE + STATUS))
    assert (STATUS,) == next(event.failed for event in events if isinstance(event, RoleViolated))


def test_a_file_that_grows_is_kept_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond it, memory does not grow with a long session: the file cannot be put back any more."""
    monkeypatch.setattr("cuggino.protection.LARGEST", 8)
    log = tmp_path / "log"
    log.write_bytes(b"one\n")
    with ExpectedFiles([log]).running():
        for line, known in ((b"two\n", b"one\ntwo\n"), (b"more\n", None), (b"end\n", None)):
            with own_write(log, line, appends=True), log.open("ab") as file:
                file.write(line)
            assert known == expected(log)


@pytest.mark.parametrize("largest", [8, 1000])
def test_what_others_write_between_own_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, largest: int
) -> None:
    """It is found whether the file is kept as a whole or is too large for that."""
    monkeypatch.setattr("cuggino.protection.LARGEST", largest)
    log = tmp_path / "log"
    log.write_bytes(b"begin\n")

    def add(line: bytes) -> None:
        with own_write(log, line, appends=True), log.open("ab") as file:
            file.write(line)

    files = ExpectedFiles([log])
    with files.running():
        for line in (b"one\n", b"two\n"):
            add(line)
        assert {} == files.changes()
        with log.open("ab") as file:
            file.write(b"forged\n")
        add(b"three\n")
        assert [log] == [*files.changes()]


def test_own_writes_are_no_changes(work: GitProject) -> None:
    """Neither in a session that is confined nor in one that is not."""
    workspace = Workspace(work.root)

    def write() -> None:
        write_atomic(work.root / STATUS, "{}")
        write_atomic(workspace.unverified_jobs, "[]")
        write_atomic(work.root / ".cuggino/new/folder/file", "x")

    assert [VERDICT] == session(work.root, "coding", write)


@pytest.mark.parametrize("name", [".cuggino", ".cuggino/journal"])
def test_own_writes_behind_a_link_of_a_person(work: GitProject, tmp_path: Path, name: str) -> None:
    """A user may keep the workspace elsewhere: what lies behind the link is not compared."""
    kept = work.root / name
    kept.mkdir(exist_ok=True)
    kept.rename(tmp_path / "elsewhere")
    kept.symlink_to(tmp_path / "elsewhere")
    file = work.root / ".cuggino/journal/run.jsonl"
    assert [VERDICT] == session(work.root, "planning", lambda: write_atomic(file, "{}"))
    assert "{}" == file.read_text()
