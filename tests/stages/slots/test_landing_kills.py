"""Landings that are killed: the next start brings everything to order."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from cuggino.events import WatchCandidate, WatchFollowHealed, WatchLanded
from cuggino.stages.slots import TRUNK
from tests.limits import LIMIT
from tests.processes.subscribers import eventually, words_of
from tests.stages.slots.landings import Landings, events

_STORY = """
import os, sys
from pathlib import Path
from cuggino import iterate
from cuggino.events import WatchCandidate
from cuggino.stages.slots import Gate, Trunk

os.environ["VICTIM"] = str(os.getpid())
trunk = Trunk(Gate(Path(sys.argv[1]), Path(sys.argv[2]), check_command="test ! -e red"))
list(iterate(trunk.open()))
for text in sys.argv[3:]:
    list(iterate(trunk.land(WatchCandidate.model_validate_json(text))))
    list(iterate(trunk.follow()))
print("done")
"""
"""A program that lands candidates."""

_GIT = """#!/bin/sh
n=$(($(cat "$COUNTER") + 1))
echo $n > "$COUNTER"
[ "$n.before" = "$KILL_AT" ] && kill -9 $VICTIM && exit 1
REAL "$@"
code=$?
[ "$n.after" = "$KILL_AT" ] && kill -9 $VICTIM
exit $code
"""
"""A git that kills who has called it, before or after one of its commands."""


class Victim:
    """A process that lands candidates and can be killed."""

    def __init__(self, work: Landings, candidates: list[WatchCandidate]) -> None:
        tools = work.root / "tools"
        tools.mkdir(exist_ok=True)
        git = tools / "git"
        git.write_text(_GIT.replace("REAL", str(shutil.which("git"))))
        git.chmod(0o755)
        self.counter, self.output = work.root / "counter", work.root / "output"
        self._argv = [
            *(sys.executable, "-c", _STORY, str(work.project.root), str(work.root / "gate")),
            *(candidate.model_dump_json() for candidate in candidates),
        ]
        self._env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        self._env["COUNTER"] = str(self.counter)

    def start(self, kill_at: str = "") -> subprocess.Popen[bytes]:
        self.counter.write_text("0\n")
        env = {**self._env, "KILL_AT": kill_at}
        with self.output.open("wb") as output:
            return subprocess.Popen(self._argv, env=env, stdout=output)

    def run(self, kill_at: str = "") -> bool:
        """Return whether it came to its end."""
        process = self.start(kill_at)
        process.wait(timeout=LIMIT)
        return self.output.read_bytes() == b"done\n"


def settle(work: Landings, candidates: list[WatchCandidate]) -> list[str]:
    """Do as the next start of a watch does; return the tags of what was healed."""
    trunk = work.trunk()
    happened = events(trunk.open())
    for candidate in candidates:
        landed = events(trunk.land(candidate))[-1]
        assert isinstance(landed, WatchLanded)
        assert not landed.nothing
        events(trunk.follow())
    return [event.tag for event in happened]


def is_settled(work: Landings, files: list[str]) -> None:
    """Assert that both items have landed once, and that nothing half done is left."""
    assert ["b", "a", "Start"] == work.first_parents("main")
    assert work.head(TRUNK) == work.head("main") == work.head()
    assert sorted(["base.txt", *files]) == work.git("ls-files").split()
    assert "" == work.status()
    assert [] == work.refs("refs/cuggino/following")
    assert [] == work.refs("refs/cuggino/candidates")
    assert [] == list((work.project.root / ".git").rglob("*.lock"))


def two(work: Landings) -> list[WatchCandidate]:
    base = work.head()
    return [
        work.candidate("a.md", {"a.txt": "a\n"}, base=base),
        work.candidate("b.md", {"b.txt": "b\n"}, base=base),
    ]


@pytest.mark.real_agent
def test_kills_at_every_step(work: Landings) -> None:
    """Killed before and after chosen commands of git, the next start lands each item once."""
    candidates = two(work)
    shutil.copytree(work.project.root, work.root / "as-it-was", symlinks=True)
    victim = Victim(work, candidates)
    assert victim.run()
    is_settled(work, ["a.txt", "b.txt"])
    count = int(victim.counter.read_text())
    assert count > 30
    stride = int(os.environ.get("KILL_STRIDE", "53"))
    moments = [f"{n}.{when}" for n in range(1, count + 1) for when in ("before", "after")]
    for moment in moments[::stride]:
        for folder in (work.project.root, work.root / "gate"):
            shutil.rmtree(folder)
        shutil.copytree(work.root / "as-it-was", work.project.root, symlinks=True)
        work.git("update-index", "-q", "--refresh")
        assert not victim.run(moment), moment
        settle(work, candidates)
        is_settled(work, ["a.txt", "b.txt"])


@pytest.fixture
def big(work: Landings) -> tuple[Landings, WatchCandidate]:
    """A candidate that changes 2,000 files, adds 2,000, removes 2,000 and turns some to folders."""
    for n in range(4000):
        work.project.write(f"old/{n % 40}/{n}.txt", f"{n}\n" * 20)
    work.commit("Many")
    changes: dict[str, str | None] = {}
    for n in range(4000):
        path = f"old/{n % 40}/{n}.txt"
        changes[path] = f"new {n}\n" * 400 if n % 2 else None
    for n in range(2000):
        changes[f"new/{n % 20}/{n}.txt"] = f"{n}\n" * 400
    return work, work.candidate("big.md", changes, base=work.head())


@pytest.mark.real_agent  # thousands of files for a long time: with the second command
def test_a_kill_in_the_middle_of_a_fast_forward(
    big: tuple[Landings, WatchCandidate],
) -> None:
    """git is killed with half of 6,000 files written: they go back, and then all of them move."""
    work, candidate = big
    trunk = work.opened()
    assert "WatchLanded" == events(trunk.land(candidate))[-1].tag
    project = work.project.root
    project.joinpath("old/mine.txt").write_text("mine\n")
    before = work.head()
    caught = 0
    for files in (1, 900) * 20:  # git may be faster
        if caught == 2:
            break
        victim = Victim(work, []).start()
        if not _killed_while_moving(victim, project, files):
            _back(work, before)
            continue
        assert before == work.head()
        assert (project / ".git/index.lock").exists()
        assert "?? old/mine.txt" != work.git("status", "--porcelain")
        # A person works on while nothing runs.
        project.joinpath("base.txt").write_text("mine too\n")
        again = work.trunk()
        happened = events(again.open())
        healed = happened[0]
        assert isinstance(healed, WatchFollowHealed)
        assert healed.restored > 0
        assert [healed.kept] == work.refs("refs/cuggino/kept/follow")
        assert "WatchFollowed" == happened[-1].tag
        assert " M base.txt\n?? old/mine.txt" == work.git("status", "--porcelain")
        assert work.head(TRUNK) == work.head()
        caught += 1
        # Back to before, as it was.
        project.joinpath("base.txt").write_text("base\n")
        work.git("update-ref", "-d", healed.kept)
        landed = work.git("rev-parse", TRUNK)
        _back(work, before)
        assert landed == work.head(TRUNK)
    assert caught


def _back(work: Landings, before: str) -> None:
    """Let the user's branch follow the trunk once more."""
    work.git("reset", "--quiet", "--hard", before)
    work.git("update-ref", "refs/cuggino/followed/heads/main", before)


def _killed_while_moving(victim: subprocess.Popen[bytes], project: Path, files: int) -> bool:
    """Kill the process and its git when that has written some files; False if it was faster."""
    lock = project / ".git/index.lock"
    assert eventually(lambda: lock.exists() or victim.poll() is not None)
    while lock.exists():
        if sum(1 for _ in project.glob("new/*/*.txt")) < files:
            continue
        gits = [
            child
            for child in psutil.Process(victim.pid).children(recursive=True)
            if "--ff-only" in words_of(child)
        ]
        for pid in (*(git.pid for git in gits), victim.pid):
            with suppress(ProcessLookupError):  # git has just ended
                os.kill(pid, signal.SIGKILL)
        victim.wait(timeout=LIMIT)
        psutil.wait_procs(gits, timeout=LIMIT)
        return bool(gits) and lock.exists()
    victim.wait(timeout=LIMIT)
    return False
