"""Runs, watches and deliveries whose processes are killed at random moments."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from cuggino.domain.deliverable_tools import agent_tool
from cuggino.events import (
    DeliverEnded,
    LoopApproved,
    StageFinished,
    ToolCall,
    ToolResult,
    WatchItemParked,
    WatchItemRetry,
)
from cuggino.storage import JournalFile, Workspace, list_journals, read_journal
from tests.cli.rounds import APPROVES, agent, implements, plans, reviews, works
from tests.git_project import isolate_git
from tests.limits import LIMIT
from tests.loops.real_watch import Watch, WatchProject
from tests.processes.subscribers import alive, eventually

pytestmark = pytest.mark.real_agent  # many processes for a long time: with the second command

SCENARIO = (
    "pause = 0.01\n"
    + plans("# Plan\n\n- [ ] one\n- [ ] two\n", cost_usd=0.01)
    + plans("# Plan\n\n- [ ] three\n")
    + implements("one.txt", "1\n", said="<PROGRESS>feat: one</PROGRESS>")
    + implements("two.txt", "2\n", said="<DONE>feat: two</DONE>")
    + implements("three.txt", "3\n", said="<DONE>feat: three</DONE>")
    + reviews("<REQUEST_CHANGES>three is missing</REQUEST_CHANGES>")
    + APPROVES
)

RUN = 1.6
"""Seconds over which the kills are spread: about what an undisturbed run takes."""


def git(folder: Path, *args: str) -> str:
    return subprocess.run(
        ["git", *args], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


def make_project(folder: Path) -> Path:
    (folder / ".specs").mkdir(parents=True)
    (folder / ".specs" / "a.md").write_text("one, two, three\n")
    (folder / "scenario.toml").write_text(SCENARIO)
    (folder / ".cuggino.json").write_text('{"commit": true, "agent": "scripted:scenario.toml"}')
    (folder / ".gitignore").write_text(".cuggino/\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.email", "a@example.org")
    git(folder, "config", "user.name", "a")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "init")
    return folder


def start(folder: Path, *args: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "cuggino_cli", "run", "--quiet", *args],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def finish(folder: Path) -> str:
    """Resume until the run has ended, or start again if it was killed before it started."""
    begun = bool(list_journals(Workspace(folder).journal))
    process = start(folder, *(["--resume"] if begun else ["--focus", "x"]))
    said, _ = process.communicate(timeout=LIMIT)
    assert 0 == process.returncode, said.decode()
    return said.decode()


@pytest.mark.parametrize("seed", range(2))
def test_killed_and_resumed(seed: int, tmp_path: Path) -> None:
    """After each kill the history, the files and the finished stages are those of one run."""
    moments = random.Random(seed)
    for number in range(2):
        folder = make_project(tmp_path / str(number))
        process = start(folder, "--focus", "x")
        time.sleep(moments.uniform(0.0, RUN))  # the moment of the kill is the case
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=LIMIT)
        approved = any(
            read_journal(path).state == "approved"
            for path in list_journals(Workspace(folder).journal)
        )
        if not approved:
            finish(folder)
        assert_as_undisturbed(folder)


def assert_as_undisturbed(folder: Path) -> None:
    """Assert that everything was done exactly once."""
    subjects = git(folder, "log", "--reverse", "--format=%s").splitlines()
    assert ["init", "feat: one", "feat: two", "feat: three"] == subjects
    assert "" == git(folder, "status", "--porcelain")
    texts = [(folder / f"{name}.txt").read_text() for name in ("one", "two", "three")]
    assert ["1\n", "2\n", "3\n"] == texts

    journal = read_journal(list_journals(Workspace(folder).journal)[0])
    finished = Counter(e.stage for e in journal.entries if isinstance(e.event, StageFinished))
    assert {1} == set(finished.values())
    assert 1 == sum(isinstance(e.event, LoopApproved) for e in journal.entries)
    assert [] == list(Workspace(folder).wip.iterdir())
    with Workspace(folder).lock():
        pass
    assert eventually(lambda: not working_in(folder)), working_in(folder)


def working_in(folder: Path) -> list[list[str]]:
    """Return the command lines of the processes that work in the folder."""
    found = psutil.process_iter(["cwd", "cmdline"])
    return [process.info["cmdline"] for process in found if process.info["cwd"] == str(folder)]


ITEMS = [f"{number}0-{name}.md" for number, name in enumerate(("alpha", "beta", "gamma"), 1)]

# One run of each role for all items: each agent detects the current one.
_ITEM = "item=.cuggino/backlog/$(ls .cuggino/backlog | head -n 1)"
_COPY = (
    "import os, shutil, sys; os.makedirs('words', exist_ok=True); shutil.copy(sys.argv[1], 'words')"
)
_PLAN = 'printf "# Plan\\n\\n- [ ] $(cat $item)\\n" > "$CUGGINO_PLAN_FILE"'
ITEMS_SCENARIO = (
    "pause = 0.02\nrepeat = true\n"
    + agent(
        "planning",
        {"run": f"{_ITEM}; {_PLAN}"},
        {"say": "<PLAN_COMPLETE>one task</PLAN_COMPLETE>"},
    )
    + works(f'{_ITEM}; "$CUGGINO_PYTHON" -c "{_COPY}" $item', "<DONE>feat: another word</DONE>")
    + APPROVES
)

SEEDS = 1
KILLS = 6
"""At most so often one watch after the other is killed; what is left is done in peace."""
STARTING, WORKING = 0.7, 0.5
"""Seconds: about what a watch takes to begin with its work, and a bit more than an item takes."""


@dataclass(frozen=True)
class Outcome:
    """The result of a project and its backlog."""

    history: str
    tree: str
    changes: str
    archived: tuple[str, ...]
    texts: tuple[str, ...]
    runs: int
    left: tuple[str, ...]
    """Names in the folders of what waits for somebody."""


class Killed:
    """A project with backlog items, and the watches that work on it."""

    def __init__(self, place: Path) -> None:
        place.mkdir()
        self.project = WatchProject(place)
        self.project.workspace.open()
        self.project.drop(*ITEMS)
        (place / "scenario.toml").write_text(ITEMS_SCENARIO)
        self._agent = f"scripted:{place / 'scenario.toml'}"
        self._started: set[int] = set()
        self.kills = 0

    def live(self, moments: random.Random) -> None:
        """Run a watch and kill it: one in four while it starts, the others while it works."""
        with Watch(self.project, "--agent", self._agent) as watch:
            if not (begins := moments.random() < 0.25):
                watch.until("WatchProcessingItem")
            time.sleep(moments.uniform(0, STARTING if begins else WORKING))  # the case
            self._started.update(watch.kill())
        self.kills += 1

    def finish(self) -> None:
        """Run a watch until nothing is left to do."""
        with Watch(self.project, "--agent", self._agent) as watch:
            watch.until("WatchBacklogWaiting")
            watch.interrupt()

    @property
    def outcome(self) -> Outcome:
        git, workspace = self.project.git.git, self.project.workspace
        waiting = (workspace.backlog, workspace.parked, workspace.spec_issues, workspace.tbd)
        return Outcome(
            history=git("log", "--reverse", "--name-status", "--format=%an %s"),
            tree=git("rev-parse", "HEAD^{tree}").strip(),
            changes=git("status", "--porcelain"),
            archived=tuple(self.project.archived),
            texts=tuple(path.read_text() for path in sorted(workspace.archive.iterdir())),
            runs=len(self.runs),
            left=tuple(path.name for folder in waiting for path in folder.iterdir()),
        )

    @property
    def journals(self) -> list[JournalFile]:
        return [read_journal(path) for path in list_journals(self.project.workspace.journal)]

    @property
    def runs(self) -> list[JournalFile]:
        """Return the runs of the items."""
        return [journal for journal in self.journals if journal.started.kind == "run"]

    def assert_sound(self) -> None:
        """Assert that each item was done once, without a failure, and that nothing is left."""
        words = [f"approved-{name}" for name in ITEMS]
        assert words == self.project.archived
        assert [] == self.project.session_files
        assert self.project.is_free
        for run in self.runs:
            assert "approved" == run.state
            assert 1 == sum(isinstance(entry.event, LoopApproved) for entry in run.entries)
            finished = Counter(
                entry.stage for entry in run.entries if isinstance(entry.event, StageFinished)
            )
            assert {1} == set(finished.values())
        failures = [
            entry.event
            for journal in self.journals
            for entry in journal.entries
            if isinstance(entry.event, WatchItemRetry | WatchItemParked)
        ]
        assert [] == failures
        assert eventually(lambda: not self._living())

    def _living(self) -> list[int]:
        here = str(self.project.folder)
        busy = [p.pid for p in psutil.process_iter(["cwd"]) if p.info["cwd"] == here]
        return [*busy, *(pid for pid in self._started if alive(pid))]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A canonical folder without git configuration."""
    folder = tmp_path_factory.mktemp("watches").resolve()
    with pytest.MonkeyPatch.context() as patch:
        isolate_git(patch, folder / "home")
        yield folder


@pytest.fixture(scope="module")
def undisturbed(place: Path) -> Outcome:
    """Return the result of an undisturbed watch."""
    killed = Killed(place / "undisturbed")
    killed.finish()
    killed.assert_sound()
    assert len(ITEMS) == killed.outcome.runs
    assert len(ITEMS) + 1 == killed.project.git.count()
    assert () == killed.outcome.left
    return killed.outcome


@pytest.mark.parametrize("seed", range(SEEDS))
def test_killed_again_and_again(seed: int, place: Path, undisturbed: Outcome) -> None:
    """However often a watch is killed, history, files and archive are those of one watch."""
    moments = random.Random(seed)
    killed = Killed(place / str(seed))
    while killed.project.backlog and killed.kills < KILLS:
        killed.live(moments)
    killed.finish()
    assert killed.kills
    killed.assert_sound()
    assert undisturbed == killed.outcome


NAMES = [f"D{n:02}" for n in range(12)]
COMMAND = [sys.executable, "-m", "cuggino_cli", "deliver", "--agent", "scripted:scenario.toml"]

PARTS = {
    "cuggino": lambda words: "deliver" in words,
    "agent": lambda words: any("scripted/process.py" in word for word in words),
    "tools": lambda words: any("mcp_server.py" in word for word in words),
}
"""The processes of a run, by their command lines."""


def scenario() -> str:
    """Return sessions that report one deliverable after another, each reporting all of them.

    They wait for the file `killed` before the last one, so that they can be killed in time.
    """
    items = [
        f'{{ id = "{name}", description = "do {name}", acceptanceCriteria = ["it is"] }}'
        for name in NAMES
    ]
    steps = [
        '[[coding.steps]]\ntool = "set_deliverable_status"\n'
        f'input = {{ deliverableId = "{name}", status = "passed" }}\n'
        for name in NAMES
    ]
    steps.insert(-1, '[[coding.steps]]\nrun = "until test -e killed; do sleep 0.02; done"\n')
    return (
        "pause = 0.02\nrepeat = true\n\n[[initializer]]\n[[initializer.steps]]\n"
        f'tool = "create_deliverable"\ninput.deliverables = [{", ".join(items)}]\n\n'
        "[[coding]]\n" + "\n".join(steps)
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".autonoe").mkdir()
    (tmp_path / ".autonoe" / "agent.json").write_text('{"mcpServers": {}}')
    (tmp_path / "SPEC.md").write_text("Twelve things.\n")
    (tmp_path / "scenario.toml").write_text(scenario())
    (tmp_path / ".cuggino.json").write_text('{"maxRetries": 20}')
    return tmp_path


def run(project: Path, *options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "--json", *options],
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def statuses(project: Path) -> dict[str, bool]:
    """Return which deliverables are passed; a missing file has none."""
    file = project / ".autonoe" / "status.json"
    if not file.exists():
        return {}
    kept = json.loads(file.read_text())
    return {item["id"]: item["passed"] for item in kept["deliverables"]}


def acknowledged(project: Path) -> set[str]:
    """Return the deliverables that the journals show as acknowledged to an agent."""
    told: set[str] = set()
    calls: dict[tuple[str | None, str], str] = {}
    for path in list_journals(project / ".cuggino" / "journal"):
        for entry in read_journal(path).entries:
            match entry.event:
                case ToolCall(name=name, id=call, input={"deliverableId": str(item)}):
                    if name == agent_tool("set_deliverable_status"):
                        calls[entry.stage, call] = item
                case ToolResult(name=call, output=output, is_error=False):
                    if (entry.stage, call) in calls and json.loads(output).get("success"):
                        told.add(calls[entry.stage, call])
                case _:
                    pass
    return told


def kill(root: psutil.Process, part: str) -> bool:
    """Kill that part of the run; return False if it is not running."""
    with suppress(psutil.Error):
        for process in [root, *root.children(recursive=True)]:
            with suppress(psutil.Error):
                if PARTS[part](process.cmdline()):
                    os.kill(process.pid, signal.SIGKILL)
                    return True
    return False


@pytest.mark.parametrize("part", PARTS)
def test_acknowledged_statuses_survive(part: str, project: Path) -> None:
    """After a SIGKILL at a random moment the file is valid and complete, and the run succeeds."""
    chance = random.Random(part)
    after = 1 + chance.randrange(len(NAMES) - 2)
    with run(project) as command:
        root = psutil.Process(command.pid)
        assert eventually(lambda: sum(statuses(project).values()) >= after)
        moment = chance.random() * 0.03
        eventually(lambda: False, limit=moment)  # somewhere within the next call
        assert kill(root, part)
        (project / "killed").touch()
        if part == "cuggino":
            assert -signal.SIGKILL == command.wait(LIMIT)
        else:
            assert 0 == command.wait(LIMIT)
    told = acknowledged(project)
    assert told <= {name for name, passed in statuses(project).items() if passed}
    assert list(statuses(project)) == NAMES
    if part != "cuggino":
        return
    with run(project, "--resume") as command:
        assert 0 == command.wait(LIMIT)
    assert all(statuses(project).values())
    (path,) = list_journals(project / ".cuggino" / "journal")
    entries = read_journal(path).entries
    (ended,) = (entry.event for entry in entries if isinstance(entry.event, DeliverEnded))
    assert "all_passed" == ended.reason
