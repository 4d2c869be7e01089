"""The tools as data: cuggino with its scripted agent, and others with a `claude` of ours."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cuggino import __version__

ROOT = Path(__file__).parents[2]
CUGGINO = (sys.executable, "-P", "-m", "cuggino_cli")


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool at its defaults, and its documented way to name a check.

    Words can hold `{program}`, `{task}` (with the check, and the signal that ends the work),
    `{check}`, `{agent}` and `{project}`.
    """

    name: str
    program: str
    """The program that is looked for in its folder, or on PATH."""
    pinned: str
    """The version that the words are for."""
    command: tuple[str, ...]
    installs: str
    """How a user installs the pinned version."""
    version: tuple[str, ...] = ("{program}", "--version")
    """Prints the version."""
    before: tuple[tuple[str, ...], ...] = ()
    """Commands that a user runs once in a new project."""
    again: tuple[str, ...] = ()
    """The command that goes on after a stop; the default is to start it again."""
    watch: tuple[str, ...] = ()
    """The command that watches a backlog."""
    idle: str = ""
    """What a watch prints when all is done."""
    patience: tuple[str, ...] = ()
    """More words, without which a silent agent is waited for longer than two seconds."""
    signal: str = ""
    """What an agent of ours has to say when all is done; empty for the scripted agent."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files that the tool needs in the project, ignored by git."""
    copies: tuple[str, ...] = ()
    """Files of its folder that belong into the project."""
    agent_commits: bool = True
    """The tool asks its agent to commit."""
    has_reviewer: bool = False
    is_script: bool = True
    """It is one file, so that another version is easily installed."""
    path: Path | None = None
    """Where the program is."""

    @property
    def at(self) -> Path:
        """Return the path of the program."""
        assert self.path is not None, f"{self.name} is not installed"
        return self.path

    @property
    def is_ours(self) -> bool:
        """True for cuggino."""
        return not self.signal

    def found(self, folders: Mapping[str, Path]) -> Tool:
        """Return the tool with the path of its program, if it is there."""
        if self.is_ours:
            return replace(self, path=ROOT)
        folder = folders.get(self.name)
        found = shutil.which(self.program, path=None if folder is None else str(folder))
        return self if found is None else replace(self, path=Path(found).resolve())

    def measured_version(self) -> str:
        """Return what the tool says about its version, and the pinned one if that is not in it."""
        if self.is_ours:
            words = ["git", "rev-parse", "--short", "HEAD"]
            commit = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
            return f"{__version__} {commit.stdout.strip()}".strip()
        words = [word.replace("{program}", str(self.path)) for word in self.version]
        printed = subprocess.run(
            words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        ).stdout.strip()
        last = printed.splitlines()[-1] if printed else "unknown"
        return self.pinned if self.pinned in last else f"{last}; the words are for {self.pinned}"


_SETUP = (*CUGGINO, "setup", "--yes", "--check-command", "{check}", "--commit")
_OURS = Tool(
    name="cuggino",
    program="cuggino",
    pinned=__version__,
    installs="this repository",
    before=(_SETUP,),
    command=(*CUGGINO, "run", "the work", "--agent", "{agent}", "--json"),
    again=(*CUGGINO, "run", "--resume", "--agent", "{agent}", "--json"),
    watch=(*CUGGINO, "watch", "--agent", "{agent}", "--json"),
    idle='"WatchBacklogWaiting"',
    has_reviewer=True,
    is_script=False,
)
_PROMISE = "<promise>COMPLETE</promise>"
_STORY = """{"name": "work", "branchName": "work", "userStories": [{"id": "US-001",
"title": "The work", "description": "There is a file `correct`.", "priority": 1, "passes": false,
"acceptanceCriteria": ["`{check}` passes"]}]}
"""
TOOLS: Sequence[Tool] = (
    _OURS,
    replace(_OURS, name="cuggino (gate: context)", before=((*_SETUP, "--gate", "context"),)),
    Tool(
        name="ralph.sh",
        program="ralph.sh",
        pinned="baff052",
        version=("git", "hash-object", "{program}"),
        installs="ralph.sh of github.com/snarktank/ralph at 6c53cb0 (blob baff052)",
        copies=("ralph.sh",),
        files={"CLAUDE.md": "{task}\n", "prd.json": '{"branchName": "work", "userStories": []}'},
        command=("{project}/ralph.sh", "--tool", "claude", "10"),
        signal=_PROMISE,
    ),
    Tool(
        name="continuous-claude",
        program="continuous-claude",
        pinned="0.24.8",
        installs="install.sh of github.com/AnandChowdhary/continuous-claude at 41cf787",
        command=("{program}", "-p", "{task}", "--max-runs", "10", "--disable-commits"),
        signal="CONTINUOUS_CLAUDE_PROJECT_COMPLETE",
    ),
    Tool(
        name="gnhf",
        program="gnhf",
        pinned="0.1.45",
        installs="npm install --global gnhf@0.1.45",
        command=(
            *("{program}", "--agent", "claude", "--max-iterations", "10"),
            *("--stop-when", "`{check}` passes", "{task}"),
        ),
        signal="should_fully_stop",
        agent_commits=False,
        is_script=False,
    ),
    Tool(
        name="ralph-tui",
        program="ralph-tui",
        pinned="0.11.0",
        installs="npm install --global bun ralph-tui@0.11.0",
        files={"prd.json": _STORY},
        command=(
            *("{program}", "run", "--headless", "--no-setup", "--prd", "prd.json"),
            *("--agent", "claude", "--iterations", "10"),
        ),
        signal=_PROMISE,
        is_script=False,
    ),
)
