"""`kill -9` of `cuggino watch` at random moments: the result equals an undisturbed one."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from cuggino.events import LoopApproved, StageFinished, WatchItemParked, WatchItemRetry
from cuggino.storage import JournalFile, list_journals, read_journal
from tests.git_project import isolate_git
from tests.loops.real_watch import Watch, WatchProject
from tests.processes.subscribers import alive, eventually

pytestmark = pytest.mark.real_agent  # many processes for a long time: with the second command

ITEMS = [f"{number}0-{name}.md" for number, name in enumerate(("alpha", "beta", "gamma"), 1)]

# One run of each role for all items: each agent detects the current one.
_ITEM = "item=.cuggino/backlog/$(ls .cuggino/backlog | head -n 1)"
_COPY = (
    "import os, shutil, sys; os.makedirs('words', exist_ok=True); shutil.copy(sys.argv[1], 'words')"
)
SCENARIO = f"""
pause = 0.02
repeat = true
[[planning]]
[[planning.steps]]
run = '{_ITEM}; printf "# Plan\\n\\n- [ ] $(cat $item)\\n" > "$CUGGINO_PLAN_FILE"'
[[planning.steps]]
say = "<PLAN_COMPLETE>one task</PLAN_COMPLETE>"
[[implementing]]
[[implementing.steps]]
run = '''{_ITEM}; "$CUGGINO_PYTHON" -c "{_COPY}" $item'''
[[implementing.steps]]
say = "<DONE>feat: another word</DONE>"
[[reviewing]]
[[reviewing.steps]]
say = "<APPROVED>fine</APPROVED>"
"""

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
        (place / "scenario.toml").write_text(SCENARIO)
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
