"""`kill -9` of `cuggino run` at random moments: a resumed run equals an undisturbed one."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from cuggino.events import LoopApproved, StageFinished
from cuggino.storage import Workspace, list_journals, read_journal
from tests.limits import LIMIT
from tests.processes.subscribers import eventually

pytestmark = pytest.mark.real_agent  # many processes for a long time: with the second command

SCENARIO = """
pause = 0.01
[[planning]]
cost_usd = 0.01
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan\\n\\n- [ ] one\\n- [ ] two\\n"
[[planning.steps]]
say = "<PLAN_COMPLETE>two tasks</PLAN_COMPLETE>"
[[planning]]
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan\\n\\n- [ ] three\\n"
[[planning.steps]]
say = "<PLAN_COMPLETE>one more</PLAN_COMPLETE>"
[[implementing]]
[[implementing.steps]]
write = "one.txt"
text = "1\\n"
[[implementing.steps]]
say = "<PROGRESS>feat: one</PROGRESS>"
[[implementing]]
[[implementing.steps]]
write = "two.txt"
text = "2\\n"
[[implementing.steps]]
say = "<DONE>feat: two</DONE>"
[[implementing]]
[[implementing.steps]]
write = "three.txt"
text = "3\\n"
[[implementing.steps]]
say = "<DONE>feat: three</DONE>"
[[reviewing]]
[[reviewing.steps]]
say = "<REQUEST_CHANGES>three is missing</REQUEST_CHANGES>"
[[reviewing]]
[[reviewing.steps]]
say = "<APPROVED>fine</APPROVED>"
"""

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
