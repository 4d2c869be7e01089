"""Small fake `claude` programs for testing how `ClaudeAgent` handles any behavior."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

RESULT: dict[str, Any] = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "terminal_reason": "completed",
    "result": "ok",
    "num_turns": 1,
    "total_cost_usd": 0.5,
    "session_id": "fake",
}

_PREAMBLE = """#!{python} -IS
import json, os, signal, sys, time

if sys.argv[1:] == ["--version"]:
    open({calls!r}, "a").write("asked\\n")
    print({version!r})
    sys.exit()

RESULT = {result!r}


def line(**fields):
    print(json.dumps(fields), flush=True)


def say(text):
    line(type="assistant", message={{"id": "m", "content": [{{"type": "text", "text": text}}]}})


"""


def fake_claude(folder: Path, body: str, *, version: str = "2.1.329 (Claude Code)") -> Path:
    """Write a program that prints its version when asked and otherwise runs `body`.

    `body` is Python that can use `say(text)`, `line(**fields)` and `RESULT`. Each request for
    the version is recorded in `version_calls` beside it.
    """
    program = folder / "claude"
    preamble = _PREAMBLE.format(
        python=sys.executable, calls=str(folder / "version_calls"), version=version, result=RESULT
    )
    program.write_text(preamble + textwrap.dedent(body), encoding="utf-8")
    program.chmod(0o755)
    return program


def tell_all(folder: Path) -> Path:
    """Write a program that records its invocation in `told.json` in its working directory."""
    return fake_claude(
        folder,
        """
        told = {"argv": sys.argv[1:], "env": dict(os.environ), "stdin": sys.stdin.buffer.read()}
        told["stdin"] = told["stdin"].decode("latin-1")
        for word in sys.argv:
            if word.startswith("--mcp-config="):
                file = word.partition("=")[2]
                told["servers"] = json.load(open(file))["mcpServers"]
                told["servers_mode"] = os.stat(file).st_mode & 0o777
        for flag, value in zip(sys.argv, sys.argv[1:]):
            if flag == "--append-system-prompt-file":
                told["system"] = open(value, encoding="utf-8").read()
                told["mode"] = os.stat(value).st_mode & 0o777
        json.dump(told, open("told.json", "w"))
        say("told")
        line(**RESULT)
        """,
    )


def recorded_call(folder: Path) -> dict[str, Any]:
    """Return what a `tell_all` program recorded in this folder."""
    noted: dict[str, Any] = json.loads((folder / "told.json").read_text())
    return noted
