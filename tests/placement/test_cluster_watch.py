"""Real workers of `--cluster` that are killed and stopped: watch, hands and attempts."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cuggino.events import AttemptLost, WatchCandidate
from tests.endurance.place import Command, Place, until
from tests.endurance.trials import watch_place
from tests.placement.dask.cluster import Cluster, running_cluster
from tests.placement.resuming import resume_to_the_end

pytestmark = pytest.mark.real_agent

KINDS = ("good", "shared", "rounds", "shared", "check", "good")
WORKERS = ("w1", "w2", "w3")
TTL = 20.0
"""Seconds without a sign of life after which the scheduler gives a worker up.

More than a busy machine keeps a worker from its signs of life.
"""


class Team:
    """A project with a shared repository, and a cluster that works on its backlog."""

    def __init__(self, root: Path, items: int) -> None:
        kinds = {f"i{number:02}": KINDS[number % len(KINDS)] for number in range(items)}
        agent = "tests.placement.slow_agent:SlowItemAgent"
        self.place = watch_place(root, kinds, agent=agent, sandbox="off", guard="off", slots=5)
        self.remote = root / "remote.git"
        subprocess.run(["git", "init", "--quiet", "--bare", self.remote], check=True)
        self.place.git("remote", "add", "origin", str(self.remote))
        self.names = sorted(f"Write {name}, {kind}." for name, kind in kinds.items())
        self.cluster: Cluster
        self.workers: dict[str, subprocess.Popen[bytes]] = {}

    def watch(self, *more: str) -> Command:
        return self.place.start("watch", "--cluster", self.cluster.address, *more)

    def at_work(self, worker: str = "") -> list[str]:
        return self.cluster.at_work(worker)

    @property
    def landed(self) -> list[str]:
        return sorted(self.place.git("log", "--first-parent", "--format=%s").splitlines()[:-1])


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Callable[[int], Team]]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    config = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{TTL:g}s"}
    with running_cluster(folder, config=config) as cluster:

        def make(items: int) -> Team:
            made = Team(tmp_path / "team", items)
            made.cluster = cluster
            made.workers = {
                name: cluster.add_worker(name, threads=2, resources="any=2") for name in WORKERS
            }
            return made

        yield make


def prepared(watch: Command, count: int) -> bool:
    return watch.until(lambda: Counter(watch.tags())["WatchSlotPrepared"] >= count)


def finish(team: Team, watch: Command) -> None:
    """Wait until the watch has nothing left to do, end it, and check the results."""
    assert watch.until(lambda: watch.is_idle), watch.errors
    watch.interrupt()
    assert team.names == team.landed
    assert [] == list(team.place.problems())
    assert until(lambda: not team.at_work()), team.at_work()


def test_killed_workers(team: Callable[[int], Team]) -> None:
    """Killed in mid-stage, twice: every item lands once, and no stage that finished is repeated."""
    made = team(12)
    with made.watch() as watch:
        assert prepared(watch, 4), watch.errors
        for number in (1, 2):
            assert watch.until(lambda: bool(made.at_work(f"w{number}")))
            made.workers[f"w{number}"].kill()
            assert until(lambda: not made.at_work(f"w{number}"))
            assert watch.until(lambda: Counter(watch.tags())["WatchPlaceGone"] >= 1)
        made.cluster.add_worker("w4", threads=4, resources="any=4")
        finish(made, watch)


def test_killed_scheduler(team: Callable[[int], Team]) -> None:
    """The watch ends with one sentence, and so do the agents; what has landed stays."""
    made = team(4)
    with made.watch() as watch:
        assert prepared(watch, 3), watch.errors
        made.cluster.kill_scheduler()
        assert 1 == watch.wait()
        assert "the cluster is lost" in watch.errors
        assert "Traceback" not in watch.errors
    assert until(lambda: not made.at_work()), made.at_work()
    assert "" == made.place.git("status", "--porcelain")


# -- `cuggino run --hands --cluster` over real workers, which are killed, as is the run itself


TASKS = 5
WORDS_SCENARIO = """\
repeat = true
[[planning]]
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = '''
# Plan
{plan}'''
[[planning.steps]]
say = "<PLAN_COMPLETE>Planned.</PLAN_COMPLETE>"
[[implementing]]
[[implementing.steps]]
run = "sleep 1; name=$(grep -o 'word-.' $CUGGINO_SESSION_FILE | head -1); echo >$name.txt"
[[implementing.steps]]
say = "<DONE>feat: a word</DONE>"
[[reviewing]]
[[reviewing.steps]]
say = "<APPROVED>As specified.</APPROVED>"
"""


def words_place(root: Path) -> Place:
    """Return a project with a shared repository, whose plan is a task for each word."""
    plan = "".join(f"\n## Task {n}: word-{n}\n\nafter: none\n" for n in range(1, TASKS + 1))
    config = (
        '{"agent": "scripted:play.toml", "commit": true, "checkCommand": "true", "guard": "off"}'
    )
    files = {
        ".specs/words.md": "A file for each word.\n",
        ".gitignore": ".cuggino\n",
        ".cuggino.json": config,
        "play.toml": WORDS_SCENARIO.format(plan=plan),
    }
    place = Place(root, files)
    remote = root / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", remote], check=True)
    place.git("remote", "add", "origin", str(remote))
    return place


@pytest.mark.parametrize(
    ("end", "more"), [(Command.kill, ()), (Command.interrupt, ()), (Command.kill, ("--detach",))]
)
def test_killed(tmp_path: Path, end: Callable[[Command], object], more: tuple[str, ...]) -> None:
    """A worker dies, then the run ends: what resumes it pays for no task twice, and all land."""
    (tmp_path / "cluster").mkdir()
    config = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    place = words_place(tmp_path / "place")
    with running_cluster(tmp_path / "cluster", config=config) as cluster:
        options = ("--cluster", cluster.address, "--no-sandbox", *more)
        workers = [cluster.add_worker(name, threads=1) for name in ("w1", "w2", "w3")]
        with place.start("run", "the words", "--hands", "3", *options) as run:
            assert run.until(lambda: Counter(run.tags())["WatchPlaced"] >= 3), run.errors
            assert run.until(lambda: bool(cluster.at_work("w1")))
            workers[0].kill()
            assert run.until(lambda: "WatchPlaceGone" in run.tags()), run.errors
            assert run.until(lambda: "WatchLanded" in run.tags()), run.errors
            end(run)
        resume_to_the_end(place, cluster, *options)
    (journal,) = place.journals
    events = [entry.event for entry in journal.entries]
    made = Counter(one.filename for one in events if isinstance(one, WatchCandidate))
    assert {f"task-1.{n}": 1 for n in range(1, TASKS + 1)} == {
        name: count for name, count in made.items() if name.startswith("task")
    }
    subjects = place.git("log", "--reverse", "--format=%s").splitlines()
    assert ["begin", *["feat: a word"] * TASKS] == subjects
    assert TASKS == len(list(place.folder.glob("word-*.txt")))
    assert [] == list(place.problems())
    refs = place.git("ls-remote", "origin", "refs/cuggino/*")
    assert "" == refs


# -- `cuggino run --attempts --cluster` over real workers, with four agents of which one is honest


SCENARIO = """\
repeat = true
[[planning]]
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan\\n\\n## Task 1: say hello\\n"
[[planning.steps]]
say = "<PLAN_COMPLETE>Planned.</PLAN_COMPLETE>"
[[implementing]]
[[implementing.steps]]
{step}
[[implementing.steps]]
say = "<DONE>feat: {name}</DONE>"
[[reviewing]]
[[reviewing.steps]]
say = "<APPROVED>As specified.</APPROVED>"
"""
AGENTS = {
    "liar": 'write = "wrong.txt"\ntext = "x"',
    "crasher": "exit = 3",
    "honest": 'run = "sleep 5; echo hello >hello.txt"',
    "slow": 'run = "sleep 600"',
}


def hello_place(root: Path) -> Place:
    """Return a project with a shared repository, where each attempt has an agent of its own."""
    config = {
        "agent": "scripted:honest.toml",
        "attempts": [{"agent": f"scripted:{name}.toml"} for name in AGENTS],
        "commit": True,
        "checkCommand": "grep -q hello hello.txt",
        "guard": "off",
        "maxIterations": 1,
        "maxRetries": 0,
    }
    plays = {f"{name}.toml": SCENARIO.format(name=name, step=AGENTS[name]) for name in AGENTS}
    files = {
        ".specs/hello.md": "Say hello.\n",
        ".gitignore": ".cuggino\n",
        ".cuggino.json": json.dumps(config),
    }
    place = Place(root, {**files, **plays})
    remote = root / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", remote], check=True)
    place.git("remote", "add", "origin", str(remote))
    return place


@pytest.mark.parametrize(("end", "more"), [(Command.interrupt, ()), (Command.kill, ("--detach",))])
def test_ended(tmp_path: Path, end: Callable[[Command], object], more: tuple[str, ...]) -> None:
    """The run ends when two have lost, and is resumed: the honest one lands, nothing is left."""
    (tmp_path / "cluster").mkdir()
    place = hello_place(tmp_path / "place")
    config = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with running_cluster(tmp_path / "cluster", config=config) as cluster:
        options = ("--cluster", cluster.address, "--no-sandbox", *more)
        for name in ("w1", "w2"):
            cluster.add_worker(name, threads=2)
        with place.start("run", "say hello", *options) as run:
            assert run.until(lambda: Counter(run.tags())["AttemptLost"] == 2), run.errors
            end(run)
        resume_to_the_end(place, cluster, *options)
    whole = next(one for one in place.journals if one.started.attempt_of is None)
    events = [entry.event for entry in whole.entries]
    assert {"attempt-1": "not-approved", "attempt-2": "failed", "attempt-4": "overtaken"} == {
        one.filename: one.why for one in events if isinstance(one, AttemptLost)
    }
    made = [one.filename for one in events if isinstance(one, WatchCandidate)]
    assert ["attempt-1", "attempt-3"] == made
    assert ["begin", "feat: honest", "say hello"] == place.git(
        "log", "--reverse", "--format=%s"
    ).splitlines()
    kept = place.git("for-each-ref", "--format=%(refname)", "refs/cuggino/attempts")
    assert ["refs/cuggino/attempts/attempt-1/1"] == kept.split()
    assert "" == place.git("ls-remote", "origin", "refs/cuggino/*")
    assert [] == list(place.problems())
