"""`cuggino run --attempts --cluster` over real workers, with four agents of which one is honest."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from cuggino.events import AttemptLost, WatchCandidate
from tests.endurance.place import Command, Place
from tests.placement.dask.cluster import running_cluster
from tests.placement.resuming import resume_to_the_end

pytestmark = pytest.mark.real_agent

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
    assert {
        "attempt-1": "not-approved",
        "attempt-2": "failed",
        "attempt-4": "overtaken",
    } == {one.filename: one.why for one in events if isinstance(one, AttemptLost)}
    made = [one.filename for one in events if isinstance(one, WatchCandidate)]
    assert ["attempt-1", "attempt-3"] == made
    assert ["begin", "feat: honest", "say hello"] == place.git(
        "log", "--reverse", "--format=%s"
    ).splitlines()
    kept = place.git("for-each-ref", "--format=%(refname)", "refs/cuggino/attempts")
    assert ["refs/cuggino/attempts/attempt-1/1"] == kept.split()
    assert "" == place.git("ls-remote", "origin", "refs/cuggino/*")
    assert [] == list(place.problems())
