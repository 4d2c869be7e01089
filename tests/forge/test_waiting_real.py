"""A run that waits for the CI of its own pull request, through the real gh and glab."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cuggino.events import (
    SessionEnded,
    UsageUpdate,
    WaitingEnded,
    WaitingStarted,
    WatchForgeWaiting,
)
from cuggino.storage import JournalFile, Workspace, list_journals, read_journal
from tests.endurance.place import until
from tests.forge.clone import Clone
from tests.forge.programs import PROGRAMS
from tests.forge.server import ForgeServer
from tests.git_project import isolate_git
from tests.limits import LIMIT

pytestmark = pytest.mark.real_agent

SCENARIO = """
[[planning]]
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan\\n\\n- [ ] a page\\n"
[[planning.steps]]
say = "<PLAN_COMPLETE>A page.</PLAN_COMPLETE>"
[[implementing]]
[[implementing.steps]]
usage = { input_tokens = 900, output_tokens = 40 }
[[implementing.steps]]
say = "The rest depends on the tests.\\n\\n<WAITING>ci</WAITING>"
[[implementing.resumed]]
say = "<DONE>Add a page</DONE>"
[[reviewing]]
[[reviewing.steps]]
say = "<APPROVED>Fine.</APPROVED>"
"""


class Project(Clone):
    """A clone of the server's repository on a branch with a pull request."""

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "cuggino_cli", "run", "--quiet", *words],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    @property
    def journal(self) -> JournalFile | None:
        paths = list_journals(Workspace(self.folder).journal)
        return read_journal(paths[0]) if paths else None

    def events(self, kind: type[Any]) -> list[Any]:
        journal = self.journal
        entries = journal.entries if journal is not None else ()
        return [entry.event for entry in entries if isinstance(entry.event, kind)]

    def has_waits(self, count: int) -> Callable[[], bool]:
        return lambda: len(self.events(WaitingStarted)) == count


@pytest.fixture(params=["gh", "glab"])
def project(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Project]:
    """A project whose forge is reached by a real program."""
    isolate_git(monkeypatch, tmp_path / "git")
    kind, program = PROGRAMS[request.param]
    agent, pulls = "scripted:scenario.toml", {"type": kind}
    with ForgeServer(kind, tmp_path / "server") as server:
        made = Project(server, program(), tmp_path, agent=agent, pullRequests=pulls)
        made.git("checkout", "-q", "-b", "page")
        made.git("commit", "-q", "--allow-empty", "-m", "Begin")
        made.git("push", "-q", "origin", "page")
        (made.folder / "scenario.toml").write_text(SCENARIO)
        yield made


def test_killed_while_it_waits(project: Project) -> None:
    """The run goes on when the job ends; while it waited there was no session and no token.

    An outage of the forge is recorded, and waited for.
    """
    state = project.server.state
    opening = state.open_pull_request(branch="page", target="main", title="A page", body="")
    pull = state.does(opening)
    state.set_jobs("page", {"test": "pending"})
    first = project.start("--focus", "the page")
    try:
        assert until(project.has_waits(1)), first.communicate(timeout=LIMIT)
        sessions, tokens = len(project.events(SessionEnded)), len(project.events(UsageUpdate))
    finally:
        first.send_signal(signal.SIGKILL)
        first.communicate(timeout=LIMIT)
    project.server.fault(502, times=2)  # a request of the killed process may be on its way
    second = project.start("--resume")
    try:
        assert until(project.has_waits(2)), second.communicate(timeout=LIMIT)
        assert (sessions, tokens) == (
            len(project.events(SessionEnded)),
            len(project.events(UsageUpdate)),
        )
        state.set_jobs("page", {"test": "failed"})
        output, _ = second.communicate(timeout=LIMIT)
    finally:
        second.kill()
    assert 0 == second.returncode, output.decode()
    outage, *_ = project.events(WatchForgeWaiting)
    assert (5.0, True) == (outage.retry_in, "502" in outage.message)
    (ended,) = project.events(WaitingEnded)
    assert (pull.number, "happened") == (ended.until.pull_request, ended.outcome)
    assert "(test failed)" in ended.answer
    journal = project.journal
    assert journal is not None
    assert "approved" == journal.state


def test_without_a_pull_request(project: Project) -> None:
    """A branch without one has no CI: the agent is told, and the run goes on."""
    process = project.start("--focus", "the page")
    output, _ = process.communicate(timeout=LIMIT)
    assert 0 == process.returncode, output.decode()
    assert b"page has no open pull request" in output
