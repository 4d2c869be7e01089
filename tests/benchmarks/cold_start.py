"""Startup times as multiples of an idle interpreter's."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from cuggino.agents.base.guard import make_guard
from cuggino.agents.claude.guard import guard_settings
from cuggino.guard.policy import Policy
from tests.benchmarks.measuring import Figure, in_turns, run, seconds

BARE = [sys.executable, "-c", "pass"]
CLICK = [sys.executable, "-c", "import click"]
PROGRAM = [sys.executable, "-m", "cuggino_cli"]


def command_line(*, rounds: int = 15) -> Iterator[Figure]:
    """Measure `--version`, `--help` and bare imports."""
    acts = {
        "cuggino --version": [*PROGRAM, "--version"],
        "cuggino --help": [*PROGRAM, "--help"],
    }
    bare, click, *taken = in_turns(
        rounds, *(lambda argv=argv: run(argv).wall * 1e3 for argv in (BARE, CLICK, *acts.values()))
    )
    for name, took in zip(acts, taken, strict=True):
        yield Figure(
            name=name,
            value=took,
            unit="ms",
            floor=click,
            floor_name="python3 -c 'import click'",
            ratio=took / click,
            most=1.5,
        )
    (imported,) = in_turns(rounds, lambda: run([sys.executable, "-c", "import cuggino"]).wall * 1e3)
    yield Figure(
        name="import cuggino",
        value=imported,
        unit="ms",
        floor=bare,
        floor_name="python3 -c pass",
        ratio=imported / bare,
    )


def first_spawn(*, rounds: int = 7) -> Iterator[Figure]:
    """Measure `cuggino run` until its first agent starts and terminates it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / ".specs").mkdir()
        (folder / ".specs" / "a.md").write_text("A specification.\n")
        program = folder / "claude"
        program.write_text(
            "#!/bin/sh\n"
            'case "$1" in --version) echo "2.1.329 (Claude Code)"; exit;; esac\n'
            "kill -9 $(cat pid)\n"
        )
        program.chmod(0o755)
        config = {"agentPath": str(program), "guard": "off", "journal": False}
        (folder / ".cuggino.json").write_text(json.dumps(config))
        script = (
            "import os, sys; open('pid', 'w').write(str(os.getpid()));"
            "from cuggino_cli.main import main; main(['run', '--focus', 'x'])"
        )

        def ours() -> float:
            return run([sys.executable, "-c", script], cwd=folder, codes=(-9,)).wall * 1e3

        bare, taken = in_turns(rounds, lambda: run(BARE).wall * 1e3, ours)
    yield Figure(
        name="cuggino run until its first agent runs",
        value=taken,
        unit="ms",
        floor=bare,
        floor_name="python3 -c pass",
        ratio=taken / bare,
    )


def guard_hook(*, rounds: int = 21) -> Iterator[Figure]:
    """Measure one check by the guard, with shell, interpreter, policy and parser."""
    with tempfile.TemporaryDirectory() as name:
        folder = str(Path(name).resolve())
        for tool, given in (
            ("Bash", {"command": "cd src && python3 -m pytest -q 2>&1 | tail -20; git status"}),
            ("Write", {"file_path": f"{folder}/src/app.py", "content": "x = 1\n"}),
        ):
            policy = Policy(project=folder, level="full")
            hooks = guard_settings(make_guard(policy), manner="allow")["hooks"]
            entry = hooks["PreToolUse"][0]["hooks"][0]
            call = {
                "hook_event_name": "PreToolUse",
                "tool_name": tool,
                "tool_input": given,
                "tool_use_id": "t",
                "cwd": folder,
            }
            data = json.dumps(call).encode()

            def asked(argv: list[str], data: bytes = data) -> float:
                def act() -> None:
                    subprocess.run(argv, input=data, stdout=subprocess.PIPE, check=True)

                return seconds(act) * 1e3

            whole = [entry["command"], *entry["args"]]
            bare, taken = in_turns(rounds, partial(asked, BARE), partial(asked, whole))
            yield Figure(
                name=f"the guard on a call of {tool}",
                value=taken,
                unit="ms",
                floor=bare,
                floor_name="python3 -c pass",
                ratio=taken / bare,
                most=6.0,
            )
