"""The tools under test: cuggino with its scripted agent, and others with a `claude` of ours."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from tests.behavior.scenarios import Act, Scenario

LIMIT_S = 600.0
"""Seconds after which a tool that does not end is ended."""

_FAKE = Path(__file__).with_name("fake_claude.py")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a tool did to the agent of a scenario."""

    says_done: bool
    """The tool reports success."""
    is_done: bool
    """A fresh clone of HEAD has the work."""
    exit_code: int | None
    """None if the tool had to be ended."""
    sessions: int
    left: int
    """Processes that the tool or its agents left behind."""
    seconds: float
    told: str = ""
    """The reason that the tool gives."""

    @property
    def is_fooled(self) -> bool:
        """True if the tool reports success for work that is not there."""
        return self.says_done and not self.is_done


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool: how its version is asked for, and how it plays a scenario in a project."""

    name: str
    program: str
    """The program that has to be on PATH."""
    plays: Callable[[Scenario, Path, Mapping[str, str]], tuple[list[str], Mapping[str, str]]]
    """Prepares the project's folder; returns the command and more variables."""
    sessions: Callable[[Path, str], int]
    """Counts the sessions, given the folder around the project and the output."""
    told: Callable[[str], str] = lambda _output: ""
    succeeded: Callable[[int, str], bool] = lambda code, _output: code == 0

    @property
    def is_there(self) -> bool:
        """Return whether the program is installed."""
        return shutil.which(self.program, path=_path()) is not None


def play(tool: Tool, scenario: Scenario, folder: Path) -> Outcome:
    """Play a scenario on a tool, in a new project below the folder."""
    project = _project(scenario, folder)
    home = folder / "home"
    home.mkdir()
    env = {
        **{name: os.environ[name] for name in ("TERM", "TMPDIR") if name in os.environ},
        "PATH": _path(),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "IS_SANDBOX": "1",
        **{f"GIT_{who}_NAME": "someone" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "someone@example.org" for who in ("AUTHOR", "COMMITTER")},
        "BEHAVIOR_RUN": folder.name,
    }
    command, more = tool.plays(scenario, project, env)
    began = time.monotonic()
    output, code = _run(command, project, {**env, **more})
    return Outcome(
        says_done=code is not None and tool.succeeded(code, output),
        is_done=_is_done(scenario, project, folder / "clone"),
        exit_code=code,
        sessions=tool.sessions(folder, output),
        left=_left(folder.name),
        seconds=time.monotonic() - began,
        told=tool.told(output),
    )


def _path() -> str:
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def _project(scenario: Scenario, folder: Path) -> Path:
    project = folder / "project"
    files = {
        "README.md": "# A project\n",
        ".specs/work.md": "There is a file `correct`.\n",
        **scenario.files,
    }
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    rules = project / ".gitignore"
    own = ".cuggino/\n.cuggino.json\n__pycache__/\n"
    rules.write_text((rules.read_text() if rules.exists() else "") + own)
    _git(project, "init", "--quiet", "--initial-branch", "work")
    _git(project, "add", "--all")
    _git(project, "commit", "--quiet", "--message", "start")
    return project


def _git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=someone", "-c", "user.email=someone@example.org")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def _is_done(scenario: Scenario, project: Path, clone: Path) -> bool:
    subprocess.run(["git", "clone", "--quiet", project, clone], check=True, capture_output=True)
    return subprocess.run(["/bin/sh", "-c", scenario.done], cwd=clone).returncode == 0


def _run(command: list[str], cwd: Path, env: Mapping[str, str]) -> tuple[str, int | None]:
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired as late:
        return str(late.stdout or ""), None
    return f"{done.stdout}\n{done.stderr}", done.returncode


def _left(run: str) -> int:
    """Count the processes of a run that are still there, and end them."""
    left = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("BEHAVIOR_RUN") == run:
                left.append(process)
        except psutil.Error:
            continue
    for process in left:
        try:
            process.kill()
        except psutil.Error:
            continue
    return len(left)


# cuggino


def _cuggino(gate: str) -> Callable[..., tuple[list[str], Mapping[str, str]]]:
    def plays(
        scenario: Scenario, project: Path, env: Mapping[str, str]
    ) -> tuple[list[str], Mapping[str, str]]:
        """Trust the project's commands, and let the agent be played by cuggino itself."""
        settings = {"checkCommand": scenario.check, "gate": gate, "commit": True}
        (project / ".cuggino.json").write_text(json.dumps(settings))
        (project.parent / "scenario.toml").write_text(_toml(scenario))
        subprocess.run(
            ["cuggino", "trust", "--yes"], cwd=project, env=dict(env), capture_output=True
        )
        agent = f"scripted:{project.parent / 'scenario.toml'}"
        return ["cuggino", "run", "--focus", "the work", "--agent", agent, "--json"], {}

    return plays


def _toml(scenario: Scenario) -> str:
    """Return the agents; the reviewer approves whatever it sees, which is the worst case."""
    plan = '[[planning]]\nsteps = [{ write = "$CUGGINO_PLAN_FILE", text = "# Plan\\n" }, '
    parts = ["repeat = true", plan + '{ say = "<PLAN_COMPLETE>One task</PLAN_COMPLETE>" }]']
    for act in scenario.acts:
        steps = [f"{{ run = {json.dumps(act.run)} }}"]
        if act.exits is not None:
            steps.append(f"{{ exit = {act.exits} }}")
        else:
            steps.append(f"{{ say = {json.dumps(_words(act))} }}")
        again = '[{ say = "Well." }]' if act.says == "nothing" else "[{ say = 'Not yet.' }]"
        told = f"reminder = {again}\n" if act.says in ("nothing", "quote") else ""
        parts.append(f"[[implementing]]\nsteps = [{', '.join(steps)}]\n{told}")
    parts.append('[[reviewing]]\nsteps = [{ say = "<APPROVED>fine</APPROVED>" }]')
    return "\n".join(parts)


def _words(act: Act) -> str:
    match act.says:
        case "done":
            return "<DONE>all of it</DONE>"
        case "more":
            return "<PROGRESS>more to do</PROGRESS>"
        case "quote":
            return "I will end with\n```\n<DONE>all of it</DONE>\n```\nonce it is done."
        case "nothing":
            return "That is that."


def _events(output: str) -> list[dict[str, Any]]:
    lines = (line for line in output.splitlines() if line.startswith("{"))
    return [json.loads(line) for line in lines]


def _cuggino_told(output: str) -> str:
    ends = [e for e in _events(output) if e.get("_tag") in ("LoopStalled", "LoopMaxIterations")]
    said = [line for line in output.splitlines() if line.startswith("cuggino: ")]
    return str(ends[-1].get("message", ends[-1]["_tag"])) if ends else (said[-1] if said else "")


def _cuggino_sessions(_folder: Path, output: str) -> int:
    starts = ("PlanningStart", "ImplementingStart", "ReviewingStart")
    return sum(event.get("_tag") in starts for event in _events(output))


# Others, whose agent is a `claude` of ours on PATH


def _with_fake(signal: str, *words: str) -> Callable[..., tuple[list[str], Mapping[str, str]]]:
    def plays(
        scenario: Scenario, project: Path, env: Mapping[str, str]
    ) -> tuple[list[str], Mapping[str, str]]:
        """Put a `claude` first on PATH that plays the scenario."""
        programs = project.parent / "bin"
        programs.mkdir()
        fake = programs / "claude"
        fake.write_text(f"#!{sys.executable}\n{_FAKE.read_text()}")
        fake.chmod(0o755)
        script = [act.__dict__ for act in scenario.acts]
        (project.parent / "acts.json").write_text(json.dumps(script))
        task = (
            f"There is a file `correct`. Check your work with `{scenario.check}`; it has to pass. "
            f"When all is done, say {signal}"
        )
        more = {
            "PATH": f"{programs}{os.pathsep}{env['PATH']}",
            "BEHAVIOR_FOLDER": str(project.parent),
            "BEHAVIOR_SIGNAL": signal,
        }
        return [word.format(task=task, folder=project) for word in words], more

    return plays


def _fake_sessions(folder: Path, _output: str) -> int:
    calls = folder / "calls"
    return len(calls.read_text()) if calls.exists() else 0


def tools() -> list[Tool]:
    """Return all tools, installed or not."""
    promise = "<promise>COMPLETE</promise>"
    own = Tool(
        name="cuggino, gate: block",
        program="cuggino",
        plays=_cuggino("block"),
        sessions=_cuggino_sessions,
        told=_cuggino_told,
    )
    return [
        own,
        replace(own, name="cuggino, gate: context", plays=_cuggino("context")),
        Tool(
            name="ralph.sh",
            program="ralph.sh",
            plays=_with_fake(promise, "ralph.sh", "--tool", "claude", "10"),
            sessions=_fake_sessions,
        ),
        Tool(
            name="continuous-claude",
            program="continuous-claude",
            plays=_with_fake(
                "CONTINUOUS_CLAUDE_PROJECT_COMPLETE",
                *("continuous-claude", "--prompt", "{task}", "--max-runs", "10"),
                "--disable-commits",
            ),
            sessions=_fake_sessions,
        ),
    ]
