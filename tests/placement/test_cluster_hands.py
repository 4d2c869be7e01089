"""`cuggino run --hands --cluster` over real workers, which are killed, as is the run itself."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from cuggino.events import WatchCandidate
from tests.endurance.place import Command, Place
from tests.placement.dask.cluster import running_cluster
from tests.placement.resuming import resume_to_the_end

pytestmark = pytest.mark.real_agent

TASKS = 5
SCENARIO = """\
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
        "play.toml": SCENARIO.format(plan=plan),
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
