"""Landing of candidates through the gate tree, also killed ones, on real repositories."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from cuggino import run
from cuggino.errors import ConfigError, ProcessError
from cuggino.events import CheckFlaky, WatchCandidate, WatchFollowHealed, WatchLanded, WatchSentBack
from cuggino.gate import CheckResult, read_flakes
from cuggino.stages.slots import TRUNK, Gate, Trunk, candidate_ref
from tests.git_project import GitProject
from tests.limits import LIMIT
from tests.processes.subscribers import eventually, words_of
from tests.stages.slots.landings import Landings, events, tags


class TestLanding:
    def test_what_is_checked_becomes_the_trunk(self, work: Landings) -> None:
        """A candidate is merged and checked; the trunk is that merge, the branch stays."""
        trunk = work.opened(check_command="git rev-parse HEAD > ../checked; test -f page.html")
        before = work.head()
        candidate = work.candidate("010-page.md", {"page.html": "hello\n"})
        happened = events(trunk.land(candidate, title="Add a page"))
        assert ["WatchLanding", "CheckCommandStarted", "CheckCommandOutput", "WatchLanded"] == tags(
            happened
        )
        landed = happened[-1]
        assert isinstance(landed, WatchLanded)
        assert work.head(TRUNK) == landed.commit == run(trunk.head())
        assert (work.root / "checked").read_text().strip() == landed.commit
        assert landed.trunk_was == before == work.head()
        assert [before, candidate.commit] == work.git(
            "log", "-1", "--format=%P", landed.commit
        ).split()
        assert work.git("log", "-1", "--format=%B", TRUNK).startswith(
            "Add a page\n\nItem: 010-page.md"
        )
        assert [] == work.refs(candidate_ref("010-page.md"))

    def test_the_branch_follows(self, work: Landings) -> None:
        """After a landing, the user's branch and files are moved to the trunk."""
        trunk = work.opened()
        events(trunk.land(work.candidate("a.md", {"a.txt": "a\n"})))
        assert ["WatchFollowed"] == tags(events(trunk.follow()))
        assert work.head(TRUNK) == work.head("main") == work.head()
        assert "a\n" == (work.project.root / "a.txt").read_text()
        assert "" == work.status()
        assert [] == events(trunk.follow())

    def test_attempts_build_on_what_has_landed(self, work: Landings) -> None:
        """Without a watch, too, and wherever the user's branch is."""
        start = work.head()
        assert start == run(work.trunk().head()), "there is no trunk yet"
        trunk = work.opened()
        events(trunk.land(work.candidate("a.md", {"a.txt": "a\n"})))
        landed = work.head(TRUNK)
        assert landed == run(work.trunk().head()), "which has not followed"
        work.commit("Mine", {"mine.txt": "mine\n"})
        assert landed == run(work.trunk().head()) == run(trunk.head())
        work.git("merge", "--quiet", "--no-edit", landed)
        assert work.head() == run(work.trunk().head()) == run(trunk.head())
        work.git("checkout", "--quiet", "-b", "other", start)
        assert start == run(work.trunk().head()), "the next start goes on with that branch"
        assert work.head("main") == run(trunk.head()), "and the watch with its own"

    def test_attempts_do_not_build_on_what_the_user_has_removed(self, work: Landings) -> None:
        work.commit("Mine", {"mine.txt": "mine\n"})
        trunk = work.opened()
        events(trunk.land(work.candidate("a.md", {"a.txt": "a\n"})))
        work.git("reset", "--quiet", "--hard", "HEAD~1")
        assert work.head() == run(trunk.head())

    @pytest.mark.real_agent
    def test_a_conflict_is_sent_back(self, work: Landings) -> None:
        """Two items that change the same line: the second is sent back with the paths."""
        trunk = work.opened()
        base = work.head()
        one = work.candidate("a.md", {"base.txt": "one\n"}, base=base)
        two = work.candidate("b.md", {"base.txt": "two\n"}, base=base)
        events(trunk.land(one))
        before = work.head(TRUNK)
        back = events(trunk.land(two, returns=1))[-1]
        assert isinstance(back, WatchSentBack)
        assert ("conflict", ("base.txt",), 2) == (back.reason, back.paths, back.returns)
        assert "CONFLICT" in back.output
        assert before == work.head(TRUNK)
        assert two.commit == work.head(candidate_ref("b.md"))
        resolved = work.candidate("b.md", {"base.txt": "one\ntwo\n"}, attempt=2)
        assert "WatchLanded" == events(trunk.land(resolved))[-1].tag

    def test_a_red_check_is_sent_back(self, work: Landings) -> None:
        """Two items that are green alone and red together: no commit of the trunk is red."""
        check = 'test "$(ls word-* | wc -l)" -le 1 || { echo "too many words"; exit 3; }'
        trunk = work.opened(check_command=check)
        base = work.head()
        one = work.candidate("a.md", {"word-1": "1\n"}, base=base)
        two = work.candidate("b.md", {"word-2": "2\n"}, base=base)
        events(trunk.land(one))
        back = events(trunk.land(two))[-1]
        assert isinstance(back, WatchSentBack)
        assert ("check", "too many words\n") == (back.reason, back.output)
        assert work.first_parents(TRUNK) == ["a", "Start"]

    def test_identical_work_lands_as_nothing(self, work: Landings) -> None:
        """The second of two identical items lands without a commit, and is marked as nothing."""
        trunk = work.opened(check_command="echo checked >> ../checks")
        base = work.head()
        candidates = [work.candidate(f"{n}.md", {"a.txt": "same\n"}, base=base) for n in "ab"]
        events(trunk.land(candidates[0]))
        happened = events(trunk.land(candidates[1]))
        landed = happened[-1]
        assert isinstance(landed, WatchLanded)
        assert landed.nothing
        assert landed.commit == landed.trunk_was == work.head(TRUNK)
        assert "checked\n" == (work.root / "checks").read_text()
        empty = work.candidate("c.md", {})
        assert getattr(events(trunk.land(empty))[-1], "nothing", False)
        unchanged = empty.model_copy(update={"commit": empty.base})
        assert getattr(events(trunk.land(unchanged))[-1], "nothing", False)

    def test_a_failing_setup_is_sent_back(self, work: Landings) -> None:
        """The setup command runs on the merged work too, and before the check."""
        trunk = work.opened(setup_command="echo no network; exit 1", check_command="true")
        happened = events(trunk.land(work.candidate("a.md", {"a.txt": "a\n"})))
        assert ["WatchLanding", "SetupCommandStarted", "SetupCommandOutput", "WatchSentBack"] == (
            tags(happened)
        )
        back = happened[-1]
        assert isinstance(back, WatchSentBack)
        assert ("setup", "no network\n") == (back.reason, back.output)

    @pytest.mark.parametrize(
        "check",
        [
            "echo more >> base.txt",
            "echo more >> base.txt; git add base.txt",
            "git commit --quiet --allow-empty -m more",
            "rm base.txt",
            "chmod +x base.txt",
            "rm base.txt; mkfifo base.txt",
        ],
    )
    def test_a_check_that_changes_tracked_files(self, work: Landings, check: str) -> None:
        """The check did not test what would land: the candidate is sent back, with the files."""
        trunk = work.opened(check_command=check)
        before = work.head(TRUNK)
        back = events(trunk.land(work.candidate("a.md", {"a.txt": "a\n"})))[-1]
        assert isinstance(back, WatchSentBack)
        assert "changed-files" == back.reason
        assert back.paths == (("HEAD",) if "commit" in check else ("base.txt",))
        assert before == work.head(TRUNK)
        fine = work.opened()
        assert "WatchLanded" == events(fine.land(work.candidate("a.md", {"a.txt": "a\n"})))[-1].tag

    def test_a_check_that_rewrites_a_committed_cache(self, work: Landings) -> None:
        """It changes nothing of what was tested: the candidate lands."""
        trunk = work.opened(check_command="echo new >> tests/__pycache__/a.pyc")
        candidate = work.candidate("a.md", {"a.txt": "a\n", "tests/__pycache__/a.pyc": "old\n"})
        assert "WatchLanded" == events(trunk.land(candidate))[-1].tag

    def test_other_files_of_the_check(self, work: Landings) -> None:
        """New files of a check land nowhere; ignored ones stay for the next check as its cache."""
        work.commit("Ignore", {".gitignore": "cache\n"})
        trunk = work.opened(check_command="ls; echo x >> cache; mkdir -p d; echo y > d/new")
        first = events(trunk.land(work.candidate("a.md", {"a.txt": "a\n"})))
        second = events(trunk.land(work.candidate("b.md", {"b.txt": "b\n"})))
        assert "a.txt\nbase.txt\n" == getattr(first[-2], "output", "")
        assert "a.txt\nb.txt\nbase.txt\ncache\n" == getattr(second[-2], "output", "")
        assert ["WatchLanded"] * 2 == [first[-1].tag, second[-1].tag]
        assert "new" not in work.git("ls-tree", "-r", "--name-only", TRUNK)

    def test_the_trunk_is_moved_during_the_check(self, work: Landings) -> None:
        """The landing starts over on the new trunk, and is checked again."""
        other = work.head()
        for n in range(2):
            other = work.candidate(f"other-{n}.md", {f"other-{n}.txt": "1\n"}, base=other).commit
        script = work.root / "move"
        script.write_text(
            f"ls other-1.txt && exit 0; git -C {work.project.root} update-ref {TRUNK} {other}"
        )
        trunk = work.opened(check_command=f"sh {script}")
        happened = events(trunk.land(work.candidate("a.md", {"a.txt": "a\n"}, base=work.head())))
        assert ["WatchLanding", *["CheckCommandStarted", "CheckCommandOutput"] * 2] == (
            tags(happened)[:-1]
        )
        assert other == getattr(happened[-1], "trunk_was", "")
        assert {"a.txt", "other-0.txt", "other-1.txt"} < set(
            work.git("ls-tree", "--name-only", TRUNK).split()
        )

    @pytest.mark.real_agent
    def test_a_trunk_that_never_rests(self, work: Landings) -> None:
        """A trunk that moves at each check is an error in the end."""
        other = [work.candidate("o.md", {"o.txt": "1\n"}, base=work.head()).commit]
        other.append(work.candidate("p.md", {"p.txt": "1\n"}, base=work.head()).commit)
        script = work.root / "move"
        script.write_text(
            f"cd {work.project.root}; git update-ref {TRUNK} {other[0]} {work.head()} ||"
            f" git update-ref {TRUNK} $(git commit-tree -p {TRUNK} -m x {TRUNK}^{{tree}})"
        )
        trunk = work.opened(check_command=f"sh {script}")
        with pytest.raises(ProcessError) as failed:
            events(trunk.land(work.candidate("a.md", {"a.txt": "a\n"}, base=work.head())))
        assert "another program keeps moving" in failed.value.message

    def test_a_candidate_that_is_gone(self, work: Landings) -> None:
        """A commit that does not exist is an error, not a return to an agent."""
        trunk = work.opened()
        candidate = work.candidate("a.md", {}).model_copy(update={"commit": "1" * 40})
        with pytest.raises(ProcessError, match=r"candidate of a\.md is gone"):
            events(trunk.land(candidate))

    def test_a_folder_without_a_commit(self, tmp_path: Path, work: Landings) -> None:
        """There must be a repository with a commit to build on."""
        with pytest.raises(ConfigError, match="require a git repository"):
            events(Trunk(Gate(tmp_path, tmp_path / "g", check_command="true")).open())
        empty = GitProject(tmp_path / "empty")
        with pytest.raises(ConfigError, match="no commit to build on"):
            events(Trunk(Gate(empty.root, tmp_path / "g", check_command="true")).open())


FLAKY = """
echo run >> ../runs
n=$(wc -l < ../runs)
[ "$n" -gt {0} ] && exit 0
echo "FAILED tests/test_a.py::test_clock - assert 1 == 2"
echo "1 failed in 0.1s"
exit 1
"""
"""Fails in its first runs."""


class TestFlakes:
    @pytest.mark.parametrize(
        ("failures", "expected"),
        [(0, ["WatchLanded"]), (1, ["CheckFlaky", "WatchLanded"]), (2, ["WatchSentBack"])],
    )
    def test_a_red_check_runs_once_more(
        self, work: Landings, failures: int, expected: list[str]
    ) -> None:
        """One that passes then lands, and is told; one that fails again is sent back."""
        trunk = work.opened(check_command=FLAKY.format(failures))
        happened = events(trunk.land(work.candidate("a.md", {"a.txt": "a\n"})))
        told = [tag for tag in tags(happened) if tag in ("CheckFlaky", *expected)]
        assert expected == told
        assert min(failures + 1, 2) == len((work.root / "runs").read_text().split())
        for event in happened:
            if isinstance(event, CheckFlaky):
                assert (("tests/test_a.py::test_clock",), 1) == (event.tests, event.times)
                assert "assert 1 == 2" in event.output

    def test_the_same_tree_is_not_tried_again(self, work: Landings) -> None:
        """Two runs have failed on it, so a third failure is no flake."""
        trunk = work.opened(check_command=FLAKY.format(9))
        for attempt in (1, 2):
            candidate = work.candidate("a.md", {"a.txt": "a\n"}, attempt=attempt)
            assert "WatchSentBack" == events(trunk.land(candidate))[-1].tag
        assert 3 == len((work.root / "runs").read_text().split())

    @pytest.mark.parametrize(
        ("options", "runs"),
        [
            pytest.param({"command_timeout": 0.2, "check_command": "sleep 60"}, 1, id="hangs"),
            pytest.param({"setup_command": "exit 1"}, 0, id="setup"),
        ],
    )
    def test_others_run_once(self, work: Landings, options: dict[str, Any], runs: int) -> None:
        """A check that takes too long, and a setup command, are not repeated."""
        trunk = work.opened(**options)
        happened = events(trunk.land(work.candidate("a.md", {"a.txt": "a\n"})))
        assert "WatchSentBack" == happened[-1].tag
        assert runs == tags(happened).count("CheckCommandStarted")

    def test_flakes_are_counted(self, work: Landings, tmp_path: Path) -> None:
        """The ledger has each test, over several landings."""
        ledger = tmp_path / "flakes.json"
        check = "runs=$(echo x >> ../n; wc -l < ../n); [ $((runs % 2)) = 0 ]"
        trunk = work.opened(check_command=check, flakes=ledger)
        happened = [
            event
            for name in "ab"
            for event in events(trunk.land(work.candidate(f"{name}.md", {f"{name}.txt": "1\n"})))
        ]
        assert [1, 2] == [event.times for event in happened if isinstance(event, CheckFlaky)]
        assert [2] == [flake.times for flake in read_flakes(ledger).tests.values()]


class TestBaseline:
    CHECK = """
for one in red-*; do echo "FAILED tests/$one.py::test - no"; done
echo "$(ls red-* | wc -l) failed in 1s"
! ls red-* >/dev/null 2>&1
"""
    """Each of these files is a failing test."""

    def trunk(self, work: Landings) -> Trunk:
        """Return a trunk with a failure that was there before."""
        work.commit("Broken", {"red-old": ""})
        gate = Gate(work.project.root, work.root / "gate", check_command=self.CHECK)
        trunk = Trunk(gate)
        events(trunk.open())
        gate.baseline = CheckResult.of(1, "FAILED tests/red-old.py::test - no\n1 failed in 2s\n")
        return trunk

    @pytest.mark.parametrize(
        ("file", "runs", "expected"), [("fine", 1, "WatchLanded"), ("red-new", 2, "WatchSentBack")]
    )
    def test_only_new_failures_count(
        self, work: Landings, file: str, runs: int, expected: str
    ) -> None:
        """What was red before does not keep an item from landing."""
        happened = events(self.trunk(work).land(work.candidate("a.md", {file: "a\n"})))
        assert expected == happened[-1].tag
        assert runs == tags(happened).count("CheckCommandStarted")

    def test_what_an_item_has_repaired_stays_so(self, work: Landings) -> None:
        """The next one may not bring the old failure back."""
        trunk = self.trunk(work)
        assert (
            "WatchLanded" == events(trunk.land(work.candidate("a.md", {"red-old": None})))[-1].tag
        )
        again = work.candidate("b.md", {"red-old": ""})
        assert "WatchSentBack" == events(trunk.land(again))[-1].tag


# -- landings that are killed: the next start brings everything to order


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
def test_a_kill_in_the_middle_of_a_fast_forward(big: tuple[Landings, WatchCandidate]) -> None:
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
