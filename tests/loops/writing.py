"""Agents that try to write what their role may not, in the loop and under each boundary."""

from __future__ import annotations

import re
import shlex
import shutil
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias

import psutil
import pytest

import cuggino
from cuggino import Config, LlmAgent, Runtime, events as ev
from cuggino.agents.scripted import ScriptedAgent
from cuggino.agents.scripted.scenario import Scenario, ScenarioRun, Step
from cuggino.sandbox import boundary as boundaries, probe
from tests.limits import LIMIT
from tests.model_script import Message, RoleScript, Step as ModelStep, Text, Tool
from tests.sandbox.arena import Arena
from tests.vectors import rows

BoundaryName: TypeAlias = Literal["bubblewrap", "landlock", "none"]
ROLES = ("planning", "implementing", "reviewing")
OFFLINE = {
    "npm_config_registry": "http://127.0.0.1:9/",
    "npm_config_fetch_retries": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
"""Variables with which programs find no network at once."""
MARKERS = {"planning": "PLAN_COMPLETE", "implementing": "DONE", "reviewing": "APPROVED"}
ROWS = [*rows("role_writes"), *rows("role_writes_own")]
"""The commands; `not_held_by` names the boundaries that do not hold one.

Landlock does not control modes, and without a namespace a process that has left its session, its
parent and its environment lives on.
"""
SECONDS = 20
"""The longest time of a command."""
_SLOW = ("npm", "npx", "ssh", "pip", "java", "gdb", "less", "--trace-event")
QUICK = [row for row in ROWS if not any(word in row["command"] for word in _SLOW)]
"""Rows whose programs neither start slowly, nor look for a network, nor hang.

Node hangs for ever where it cannot write its trace.
"""

Sessions: TypeAlias = Mapping[str, Sequence[Sequence[str]]]
"""The commands of each session, by role."""

_WRITTEN_BY_THE_RUN = (
    *("wip", "session", "sessions", "snapshots", "kept", "lock", "lock.json", "locks", "digests"),
    *("agent.sha256", "journal", "browser"),
)
_NOISE = re.compile(
    r"\.git/(objects|logs|refs|index|[A-Z_]+|gc\.pid|packed-refs)(/|$)|"
    rf"\.cuggino/({'|'.join(map(re.escape, _WRITTEN_BY_THE_RUN))})(/|$)"
)
"""What cuggino itself writes, and files of git that hold no history."""

_PATCH = """--- a/.specs/b.md
+++ b/.specs/b.md
@@ -1 +1 @@
-spec b, foo
+spec b, patched
"""


class WritingProject(Arena):
    """The project of the attacks, with archives and patches, and a copy to begin again from."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.root = root
        shutil.rmtree(self.folder.parent)
        self._add_archives()
        self.outside = self.listing()

    def _add_archives(self) -> None:
        evil = self.home / "evil.md"
        evil.write_text("evil\n")
        with tarfile.open(self.project / "x.tar", "w") as tar:
            tar.add(evil, ".specs/a.md")
        with zipfile.ZipFile(self.project / "x.zip", "w") as archive:
            archive.write(evil, ".specs/a.md")
        self.write({"x.patch": _PATCH})
        evil.unlink()
        shutil.copytree(self.project, self.copy, symlinks=True)

    @property
    def copy(self) -> Path:
        """The project as it was, where each session can read it."""
        return self.home / "copy"

    def again(self, role: str, *, held: bool) -> str:
        """Return the command that restores the role's writable files, for the next attempt.

        In a view the role may try to restore all of them; without one, protected files must stay
        as the attacks left them.
        """
        if not held and role != "implementing":
            return "true"
        names = " ".join(self._own_names)
        git = "HEAD index refs" if not held else "HEAD index refs hooks config info"
        return (
            f"{{ cd {self.project}; cp -a {self.copy}/.git/{{{git.replace(' ', ',')}}} .git/; "
            f"cd {self.copy} && cp -a {names} {self.project}/; cd {self.project}; "
            "} >/dev/null 2>&1"
        )

    @property
    def _own_names(self) -> list[str]:
        protected = {".git", ".specs", ".cuggino", ".claude", ".autonoe"}
        protected |= {".mcp.json", ".cuggino.json"}
        return [path.name for path in sorted(self.copy.iterdir()) if path.name not in protected]

    def everything(self) -> dict[str, str]:
        """Return a digest of each file with its mode, and what git knows.

        Folders and special files count among the specifications alone.
        """
        found = self.state_of(["."])
        files = {
            name: digest
            for name, digest in found.items()
            if not _NOISE.match(name)
            and (digest.startswith(("100", "120")) or name.startswith(".specs"))
        }
        return {**files, **self._history()}

    def _history(self) -> dict[str, str]:
        """Return the branches and tags, HEAD, and the specifications as committed and as staged."""
        refs = self._say("for-each-ref", "--format=%(refname) %(objectname)")
        named = dict(line.split(" ", 1) for line in refs.splitlines() if " " in line)
        return {
            **{name: it for name, it in named.items() if not name.startswith("refs/cuggino/")},
            "HEAD": self._say("symbolic-ref", "HEAD"),
            "HEAD:.specs": self._say("rev-parse", "HEAD:.specs"),
            ":.specs": self._say("ls-files", "-s", ".specs"),
        }

    def _say(self, *words: str) -> str:
        done = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", *words],
            cwd=self.project,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        return done.stdout if done.returncode == 0 else f"failed: {done.stderr}"

    def changed(self, role: str, before: Mapping[str, str]) -> list[str]:
        """Return the paths that the role may not change and that differ from `before`."""
        now = self.everything()
        differing = [
            name
            for name in {*before, *now}
            if before.get(name) != now.get(name) and not (name not in before and self._blank(name))
        ]
        return sorted(name for name in differing if role != "implementing" or is_protected(name))

    def _blank(self, name: str) -> bool:
        """Return whether the path is an empty file, which is harmless and may stay."""
        path = self.project / name
        return path.is_file() and not path.is_symlink() and path.stat().st_size == 0

    def listing(self) -> dict[str, tuple[int, ...]]:
        """Return the paths in the folder above the project, except the state of programs."""
        found: dict[str, tuple[int, ...]] = {}
        for path in self.root.rglob("*"):
            name = path.relative_to(self.root).as_posix()
            if not re.match(r"project/|home/(\.claude|\.cache|\.npm|\.local|copy/)", name):
                shown = path.lstat()
                size = shown.st_size if stat.S_ISREG(shown.st_mode) else 0
                found[name] = (shown.st_mode, shown.st_uid, size, shown.st_ino)
        return found


_ABSENT = (
    *(".codex", ".gemini", "opencode.json", ".github/hooks", ".opencode", ".git/config.worktree"),
)
_IN_NO_VIEW = ("HEAD", ":", "refs/", *_ABSENT)
"""What a view cannot protect: the history, and protected names that do not exist yet."""


def is_protected(name: str) -> bool:
    """Return whether the implementer may not write this path."""
    places: tuple[str, ...] = (
        ".specs",
        ".cuggino",
        ".claude",
        ".autonoe",
        ".git/hooks",
        ".git/config",
        ".git/info",
    )
    places += _ABSENT
    exact = (".mcp.json", ".cuggino.json", ".git", "HEAD:.specs", ":.specs", "refs/heads/other")
    if name.startswith("refs/replace/"):
        return True
    if name == ".git/info/refs":
        return False  # the list that git's housekeeping writes
    return name in exact or any(name == place or name.startswith(f"{place}/") for place in places)


@contextmanager
def only(name: BoundaryName) -> Iterator[None]:
    """Let no better boundary be found than this one."""
    with pytest.MonkeyPatch.context() as patch:
        if name != "bubblewrap":
            patch.setattr(boundaries, "shutil", SimpleNamespace(which=lambda _program, **_: None))
        yield


def needs(name: BoundaryName, folder: Path) -> None:
    """Skip where the machine does not have this boundary."""
    with only(name):
        found = probe(folder, home=folder)
    if name != "none" and found.engine != name:
        pytest.skip(f"{name} cannot be tested here: {found.reason}")


_BEGINS = (ev.PlanningStart, ev.ImplementingStart, ev.ReviewingStart)
_VERDICTS = {"planning": ev.PlanComplete, "implementing": ev.Done, "reviewing": ev.Approved}


class Attacked:
    """A run of the loop whose agents attack."""

    def __init__(self, project: WritingProject) -> None:
        self.project = project
        self.events: list[ev.Event] = []
        self.left: dict[str, list[str]] = {}
        """What a session had changed though it may not, after it was verified, by role."""
        self.running: list[str] = []
        """Processes in the project after a session."""
        self._before: dict[str, str] = {}

    @property
    def violated(self) -> dict[str, set[str]]:
        """The paths that sessions of each role have changed, as reported."""
        found: dict[str, set[str]] = {}
        for event in self.events:
            if isinstance(event, ev.RoleViolated):
                assert () == event.failed
                found.setdefault(event.role, set()).update(event.paths)
        return found

    def see(self, event: ev.Event) -> None:
        """Compare at the end of each session."""
        self.events.append(event)
        if isinstance(event, _BEGINS):
            self._before = self.project.everything()
        for role, verdict in _VERDICTS.items():
            if isinstance(event, verdict) or (
                isinstance(event, ev.RoleViolated) and event.role == role
            ):
                left = self.project.changed(role, self._before)
                self.left[role] = [*self.left.get(role, []), *left]
                self.running += _processes(self.project.root)


def _processes(folder: Path) -> list[str]:
    """Return the processes that work in the folder or have it among their words."""
    found = []
    for process in psutil.process_iter(["cwd", "cmdline"]):
        words = " ".join(process.info["cmdline"] or [])
        if (process.info["cwd"] or "").startswith(str(folder)) or str(folder) in words:
            found.append(words)
    return found


def attack(
    project: WritingProject,
    agent: LlmAgent,
    name: BoundaryName,
    *,
    guard: Literal["off", "roles"] = "off",
) -> Attacked:
    """Run the loop with an agent that attacks, until it is approved."""
    attacked = Attacked(project)
    config = Config(
        guard=guard,
        sandbox="off" if name == "none" else "auto",
        commit=False,
        journal=False,
        progress_patience=None,
    )
    with only(name), pytest.MonkeyPatch.context() as patch:
        for variable, value in {"HOME": str(project.home), **OFFLINE}.items():
            patch.setenv(variable, value)
        runtime = Runtime.live(cwd=project.project, agent=agent, config=config)
        cuggino.run(runtime.run(focus="x"), attacked.see)
    assert isinstance(attacked.events[-1], ev.LoopApproved)
    return attacked


def assert_held(attacked: Attacked, name: BoundaryName) -> None:
    """Assert that no protected change is left, and that roles that the kernel confines made none.

    With bubblewrap nothing outside the project is changed either. There, only what no view
    can protect is a violation of the implementer; other roles have none.
    """
    assert {} == {role: paths for role, paths in attacked.left.items() if paths}
    assert [] == attacked.running
    violated = attacked.violated
    if name == "bubblewrap":
        assert attacked.project.outside == attacked.project.listing()
        histories = violated.pop("implementing", set())
        assert [] == [path for path in histories if not path.startswith(_IN_NO_VIEW)]
    assert {role for role in violated if holds(name, role)} == set()


def holds(name: BoundaryName, role: str) -> bool:
    """Return whether the kernel enforces the write restrictions of the role."""
    return name == "bubblewrap" or (name == "landlock" and role != "implementing")


def sessions_for(
    project: WritingProject,
    name: BoundaryName,
    attacks: Sequence[Mapping[str, Any]],
    *,
    parts: int = 1,
) -> Sessions:
    """Return the commands of each session, by role.

    Each attack finds what its role may write as it was at first. Where only verification holds a
    role, the attacks are in `parts` sessions of it; each further one replaces a violating agent,
    and one that does nothing is the last.
    """
    made: dict[str, list[list[str]]] = {}
    for role in ROLES:
        again = project.again(role, held=holds(name, role))
        commands = [
            f"{again}\n{row['command']}\ntrue"
            for row in attacks
            if row["role"] == role and name not in row.get("not_held_by", ())
        ]
        of_role = 1 if holds(name, role) else parts
        made[role] = [commands[number::of_role] for number in range(of_role)]
        made[role] += [[], []]
    for one in made["planning"]:
        one.append('echo "# Plan" > "$CUGGINO_PLAN_FILE"')
    return made


def as_scenario(sessions: Sessions) -> ScriptedAgent:
    """Return an agent without a model that runs the commands."""
    runs = {
        role: tuple(
            ScenarioRun(
                steps=(*(Step(run=in_bash(one)) for one in commands), Step(say=ending(role)))
            )
            for commands in of_role
        )
        for role, of_role in sessions.items()
    }
    return ScriptedAgent(Scenario.model_validate(runs))


def as_model(sessions: Sessions, *, at_once: int = 1) -> RoleScript:
    """Return a model for Claude Code that runs the commands, some of them in one message."""
    runs: dict[str, list[list[ModelStep]]] = {
        role: [
            [
                *(
                    Message([bash_tool(command) for command in one[n : n + at_once]])
                    for n in range(0, len(one), at_once)
                ),
                Text(ending(role)),
            ]
            for one in of_role
        ]
        for role, of_role in sessions.items()
    }
    return RoleScript({role: re.escape(f"# Role: {role} agent") for role in ROLES}, runs)


def in_bash(command: str) -> str:
    """Return the command for a shell that need not be bash; some hang when they cannot write."""
    return f"timeout -k 1 {SECONDS} bash -c {shlex.quote(command)}"


def bash_tool(command: str) -> Tool:
    """Return a call of the shell; some commands hang when they cannot write."""
    return Tool("Bash", {"command": command, "timeout": SECONDS * 1000})


def ending(role: str) -> str:
    """Return the last words of an agent with this role."""
    return f"<{MARKERS[role]}>done</{MARKERS[role]}>"
