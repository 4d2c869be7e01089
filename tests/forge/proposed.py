"""A project with a bare remote on disk and a forge in memory, in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cuggino.config import PullRequestSettings
from cuggino.events import Event, WatchCandidate, WatchProposed
from cuggino.forge import PullRequests, pull_requests
from cuggino.stages.slots import Gate
from cuggino.storage import Proposals, Workspace
from cuggino.testing import CiRun, VirtualClock
from tests.forge.state import RemoteForge
from tests.git_project import commit_at
from tests.stages.slots.landings import Landings

GREEN = CiRun(takes=60.0)
RED = CiRun(state="failed", takes=60.0, log="assert 1 == 2\n")


class Proposed(Landings):
    """The project, its remote, its forge, and the landing between them."""

    def __init__(self, root: Path, *, ci: Sequence[CiRun | Sequence[CiRun]] = (GREEN,)) -> None:
        self.remote, self.person = root / "remote.git", root / "person"
        super().__init__(root)
        self.clock = VirtualClock()
        self.forge = RemoteForge(self.clock, self.remote, ci=ci)
        self.workspace = Workspace(self.project.root)
        self.workspace.open()
        self.proposals = Proposals(self.workspace)

    def _make(self) -> None:
        super()._make()
        self.git("clone", "--quiet", "--bare", str(self.project.root), str(self.remote))
        self.git("remote", "add", "origin", str(self.remote))
        self.git("clone", "--quiet", str(self.remote), str(self.person))
        for name, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
            self.git("config", name, value, cwd=self.person)
        (self.root / "excluded").write_text(".cuggino/\n")
        self.git("config", "core.excludesFile", str(self.root / "excluded"))

    def landing(self, *, check: str = "test ! -e red", **settings: Any) -> PullRequests:
        """Return the landing, as a new process makes it."""
        gate = Gate(self.project.root, self.root / "gate", check_command=check)
        made = pull_requests(
            self.forge,
            PullRequestSettings(**settings),
        )
        trunk = made(self.workspace, gate)
        assert isinstance(trunk, PullRequests)
        return trunk

    def begun(self, **settings: Any) -> PullRequests:
        """Return the landing after its start."""
        trunk = self.landing(**settings)
        self.play(trunk.open())
        return trunk

    def play(self, stream: Any, seconds: float = 3600.0) -> list[Event]:
        """Return the events of a stream; an error of it is raised."""
        seen: list[Event] = []
        failed: list[Exception] = []
        ended: list[bool] = []
        held = stream.subscribe(
            seen.append, failed.append, lambda: ended.append(True), scheduler=self.clock
        )
        limit = self.clock.after(seconds)
        self.clock.advance_to(limit, unless=lambda: bool(ended or failed))
        held.dispose()
        if failed:
            raise failed[0]
        return seen

    def proposed(
        self, trunk: PullRequests, candidate: WatchCandidate, **more: Any
    ) -> WatchProposed:
        """Land a candidate; return its pull request."""
        last = self.play(trunk.land(candidate, **{"title": "Add a page", "returns": 0, **more}))[-1]
        assert isinstance(last, WatchProposed), last
        return last

    def remote_head(self, branch: str) -> str | None:
        return commit_at(self.remote, f"refs/heads/{branch}")

    def person_pushes(
        self, branch: str, files: dict[str, str], *, force: bool = False, merge: str = ""
    ) -> str:
        """Commit on a branch of the remote as a person; return the commit."""
        there = self.person
        self.git("fetch", "--quiet", "origin", cwd=there)
        self.git("checkout", "--quiet", "--force", "--detach", f"origin/{branch}", cwd=there)
        if force:
            self.git("reset", "--quiet", "--hard", "origin/main", cwd=there)
        if merge:
            self.git("merge", "--quiet", "--no-edit", f"origin/{merge}", cwd=there)
        for path, text in files.items():
            (there / path).parent.mkdir(parents=True, exist_ok=True)
            (there / path).write_text(text, encoding="utf-8")
        self.git("add", "--all", cwd=there)
        if files:
            self.git("commit", "--quiet", "--message", "By Ada", cwd=there)
        self.git("push", "--quiet", "--force", "origin", f"HEAD:refs/heads/{branch}", cwd=there)
        return self.git("rev-parse", "HEAD", cwd=there)

    def files_of(self, branch: str) -> list[str]:
        """Return the files of a branch of the remote."""
        return self.git("ls-tree", "-r", "--name-only", branch, cwd=self.remote).split()


def states(happened: list[Event]) -> list[str]:
    """Return the states of the pull request that were reported."""
    return [getattr(event, "state", "") for event in happened if event.tag == "WatchProposal"]
