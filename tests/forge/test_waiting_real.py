"""A run that waits for the CI of its own pull request, through the real gh and glab."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cuggino.config import ForgeKind
from cuggino.events import SessionEnded, UsageUpdate, WaitingEnded, WaitingStarted
from cuggino.storage import JournalFile, Workspace, list_journals, read_journal
from tests.endurance.place import ROOT, until
from tests.forge import programs
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


class Project:
    """A clone of the server's repository on a branch with a pull request."""

    def __init__(self, server: ForgeServer, folder: Path, env: dict[str, str]) -> None:
        self.server, self.folder, self.env = server, folder, env

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=self.folder, env=self.env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

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
    kind: ForgeKind = "gitlab" if request.param == "glab" else "github"
    program = (programs.glab if request.param == "glab" else programs.gh)()
    with ForgeServer(kind, tmp_path / "server") as server:
        env = {
            **server.env,
            **server.git_env,
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "CUGGINO_CONFIG": str(tmp_path / "config.json"),
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        (tmp_path / "config.json").write_text('{"trust": "off"}')
        login = f"credential.helper=!{program.name} auth git-credential"
        subprocess.run(
            ["git", "clone", "-q", "-c", login, f"https://{server.host}/o/r.git", "project"],
            cwd=tmp_path,
            env=env,
            check=True,
        )
        made = Project(server, tmp_path / "project", env)
        for key, value in (("user.name", "Ada"), ("user.email", "ada@example.com")):
            made.git("config", key, value)
        made.git("checkout", "-q", "-b", "page")
        made.git("commit", "-q", "--allow-empty", "-m", "Begin")
        made.git("push", "-q", "origin", "page")
        (made.folder / ".git" / "info" / "exclude").write_text(".cuggino*\n.specs\n*.toml\n")
        (made.folder / ".specs").mkdir()
        (made.folder / ".specs" / "page.md").write_text("A page.\n")
        (made.folder / "scenario.toml").write_text(SCENARIO)
        settings = {
            "agent": "scripted:scenario.toml",
            "pullRequests": {"type": kind},
            "sandbox": "off",
            "notify": "none",
        }
        (made.folder / ".cuggino.json").write_text(json.dumps(settings))
        yield made


def test_killed_while_it_waits(project: Project) -> None:
    """The run goes on when the job ends; while it waited there was no session and no token."""
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
