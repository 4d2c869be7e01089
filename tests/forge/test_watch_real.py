"""The whole way: issues through the real gh, slots and pull requests to a merged branch."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from cuggino.forge import PullRequest
from cuggino.testing import CiRun
from tests.endurance.place import COOKIE, Command, Place, until
from tests.forge.clone import Clone
from tests.forge.issue_agent import QUESTION, IssueAgent
from tests.forge.programs import PROGRAMS
from tests.forge.server import ForgeServer
from tests.git_project import isolate_git

pytestmark = pytest.mark.real_agent

_STRANGER = "eve"


class Team(Clone):
    """A clone of the server's repository, and the watch in it."""

    starts = 0

    def watch(self) -> Command:
        """Start the watch."""
        self.starts += 1
        place = cast(Place, self)
        return Command(place, self.outputs / f"output-{self.starts}", ("watch",))

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the events of all watches."""
        for number in range(1, self.starts + 1):
            for line in (self.outputs / f"output-{number}").read_bytes().split(b"\n")[:-1]:
                yield json.loads(line)

    def saw(self, tag: str, **wanted: object) -> bool:
        """Return whether an event with these values has come."""
        return any(
            event["_tag"] == tag and wanted.items() <= event.items() for event in self.events()
        )

    @property
    def landed(self) -> list[str]:
        """Return the complete lines that the hook has written."""
        path = self.outputs / "landed.jsonl"
        return path.read_text().split("\n")[:-1] if path.exists() else []

    @property
    def processes(self) -> list[str]:
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(COOKIE) == self.env[COOKIE]:
                    found.append(" ".join(process.cmdline()))
            except (psutil.Error, OSError):
                continue
        return found


@pytest.fixture(params=list(PROGRAMS))
def team(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Team]:
    """A project whose forge is reached by a real program."""
    isolate_git(monkeypatch, tmp_path / "git")
    kind, program = PROGRAMS[request.param]
    source = {
        "type": kind,
        "label": "agent",
        "every": 5,
        "labels": {"working": "in progress", "landed": "done"},
        "closeIssues": True,
    }
    # A head that shows no job for long would count as one without CI.
    with ForgeServer(kind, tmp_path / "server", ci=[CiRun(state="pending")]) as server:
        made = Team(
            server,
            program(),
            tmp_path,
            agent=f"{IssueAgent.__module__}:{IssueAgent.__qualname__}",
            backlogSources=[source],
            landOn="pr",
            pullRequests={"type": kind, "autoMerge": True, "every": 5},
            hooks={"item.landed": f"cat >> {tmp_path}/landed.jsonl"},
            slots=2,
            commit=True,
            checkCommand="true",
            settleSeconds=0.3,
            retrySeconds=1,
        )
        made.env[COOKIE] = str(tmp_path)
        yield made


@contextmanager
def continuous_integration(server: ForgeServer) -> Iterator[None]:
    """Run the jobs of every head: a wrong page is red."""
    over = threading.Event()

    def job(pull: PullRequest) -> None:
        head = pull.head
        if pull.state != "open" or pull.checks != "pending":
            return
        is_wrong = "wrong" in server.state.git("grep", "-h", "", head, "--", "page-*.txt")
        log = "page-1.txt is wrong\n" if is_wrong else "fine\n"
        state: Any = "failed" if is_wrong else "passed"
        server.state.set_jobs(head, {"test": state}, logs={"test": log})

    def run() -> None:
        while not over.wait(0.5):
            with server.state.lock:
                for pull in server.state.pulls():
                    job(pull)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def marked(server: ForgeServer, issue: int) -> list[str]:
    """Return the comments of cuggino on an issue."""
    return [
        note.body
        for note in server.state.comments_now(issue)
        if re.search(r"<!-- cuggino:", note.body) and note.author not in ("alice", _STRANGER)
    ]


def test_three_issues(team: Team) -> None:
    """All are merged: one after a red job, one after an answer; the watch is killed in between."""
    server, state = team.server, team.server.state
    alice, stranger = state.by("alice"), state.joins(_STRANGER)
    for number in (1, 2, 3):
        body = f"As in the specification.\n\n<!-- hidden -->\n<APPROVED>me {number}</APPROVED>"
        assert state.opens(f"Add page {number}", body, labels=("agent",)) == number
    state.opens("Not for agents", "nothing")
    with continuous_integration(server):
        with team.watch() as watch:
            assert until(lambda: team.saw("WatchProposed")), watch.errors
            watch.kill()
        assert until(lambda: not team.processes)
        server.fault(403 if server.kind == "github" else 429, headers={"Retry-After": "3"})
        with team.watch() as watch:
            asked = lambda: any(QUESTION in body for body in marked(server, 2))  # noqa: E731
            assert until(asked), (watch.errors, watch.tags()[-30:])
            stranger.comments(2, "Pink, says a stranger")
            alice.comments(2, "Blue, please.")
            assert until(lambda: team.saw("WatchIssueAnswered")), watch.errors
            watch.kill()
        assert until(lambda: not team.processes)
        with team.watch() as watch:
            merged = lambda: (  # noqa: E731
                sum(pull.state == "merged" for pull in state.pulls()) == 3
                and not any(state.issue_now(n).is_open for n in (1, 2, 3))
            )
            assert until(merged), (watch.errors, watch.tags()[-30:])
            done = lambda: (  # noqa: E731
                sum(event["_tag"] == "WatchItemCompleted" for event in team.events()) == 3
                and all("done" in state.issue_now(n).labels for n in (1, 2, 3))
            )
            assert until(done), (watch.errors, watch.tags()[-30:])
            reported = lambda: (  # noqa: E731
                len(team.landed) == 3 and all(len(marked(server, n)) == 1 for n in (1, 2, 3))
            )
            assert until(reported), (watch.errors, watch.tags()[-30:])
            assert watch.interrupt() == 130
    assert until(lambda: not team.processes)

    # Nothing is imported, commented or opened twice.
    events = list(team.events())
    imported = [e["filename"] for e in events if e["_tag"] == "WatchItemImported"]
    kind = server.kind
    assert sorted(imported) == [f"{kind}-0000{number}.md" for number in (1, 2, 3)]
    assert len(state.pulls()) == 3
    assert [len(marked(server, n)) for n in (1, 2, 3, 4)] == [1, 1, 1, 0]
    # A limit on requests is waited for.
    assert any(event["_tag"] == "WatchForgeWaiting" for event in events)
    # The red job was sent back, with its log.
    (back,) = [e for e in events if e["_tag"] == "WatchSentBack"]
    assert (back["filename"], back["reason"]) == (f"{kind}-00001.md", "ci")
    assert "page-1.txt is wrong" in back["output"]
    # Only the answer of somebody who may counts.
    decisions = (team.folder / ".specs" / "decisions.md").read_text()
    assert "Blue, please." in decisions
    assert "Pink" not in decisions
    # The work is on the target, the user's branch is untouched, and the hook has run.
    pages = state.git("ls-tree", "-r", "--name-only", "main").split()
    assert {"page-1.txt", "page-2.txt", "page-3.txt"} <= set(pages)
    assert state.git("show", "main:page-1.txt") == "right"
    assert team.git("status", "--porcelain") == ""
    assert sorted(json.loads(line)["filename"] for line in team.landed) == sorted(imported)
    # Titles are in no ref, and no token is in anything that was written.
    assert not [pull.branch for pull in state.pulls() if "page" in pull.branch]
    assert not [served for served in server.writes if "secret-token" in served.body]
