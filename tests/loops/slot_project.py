"""A project with a backlog that a watch works through in several slots, with real git."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from reactivex import operators as ops

import cuggino
from cuggino import Config, Runtime
from cuggino.events import Event, WatchBacklogWaiting, WatchSpecIssueWaiting
from cuggino.storage import Workspace
from tests.git_project import GitProject
from tests.loops.item_agent import SCENARIO, ItemAgent


class SlotProject:
    """A project in `place`, whose items are shell scripts for the agent."""

    def __init__(self, place: Path, **config: Any) -> None:
        self.place = place
        self.folder = place / "project"
        self.git = GitProject(self.folder)
        self.git.write(".specs/words.md", "A file for each word.\n")
        self.git.write(".gitignore", ".cuggino\n")
        self.git.write("shared.txt", "begin\n")
        self.git.write("check.sh", "! grep -q '<<<<' *.txt\n")
        self.git.git("add", "-A")
        self.git.git("commit", "-q", "-m", "Begin")
        self.work = place / "work"
        self.work.mkdir()
        (self.work / "scenario.toml").write_text(SCENARIO)
        self.workspace = Workspace(self.folder)
        self.workspace.open()
        settings = {
            "commit": True,
            "sandbox": "off",
            "check_command": "sh check.sh",
            "slots": 2,
            "settle_seconds": 0.1,
        }
        self.config = Config(**{**settings, **config})

    def item(self, name: str, script: str, text: str = "") -> None:
        """Add an item to the backlog, and what the agent does for it."""
        (self.workspace.backlog / f"{name}.md").write_text(text or f"# {name}\n")
        (self.work / f"{name}.sh").write_text(script)

    def runtime(self, **services: Any) -> Runtime:
        agent = ItemAgent(self.work / "scenario.toml")
        return Runtime.live(cwd=self.folder, config=self.config, agent=agent).replace(**services)

    def watch(self, **given: Any) -> list[Event]:
        """Run the watch until it waits; return its events."""
        waits = WatchBacklogWaiting | WatchSpecIssueWaiting
        stream = self.runtime().watch(**given)
        whole = stream.pipe(ops.take_while(lambda e: not isinstance(e, waits), inclusive=True))
        return list(cuggino.iterate(whole))

    def first_parents(self) -> list[str]:
        """Return the commits of the branch, the latest first."""
        return self.git.git("rev-list", "--first-parent", "main").split()

    def is_green(self, commit: str) -> bool:
        """Return whether the check passes on a commit."""
        tree = self.place / f"tree-{commit[:8]}"
        self.git.git("worktree", "add", "-q", "--detach", str(tree), commit)
        done = subprocess.run(["sh", "-c", self.config.check_command or ""], cwd=tree, check=False)
        self.git.git("worktree", "remove", "--force", str(tree))
        return done.returncode == 0
