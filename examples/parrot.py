#!/usr/bin/env python3
"""The program of 11_own_agent.py: follows `lines.jsonl`, and prints its actions as JSON lines."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def main() -> int:
    """Read lines and prompt, then play them; `--act` allows tools."""
    if "--version" in sys.argv:
        print("1.0.0")
        return 0
    given = sys.stdin.read()
    place = next(
        folder for folder in (Path.cwd(), Path.cwd().parent) if (folder / "lines.jsonl").exists()
    )
    lines = (place / "lines.jsonl").read_text().splitlines()  # before anything shows that it began
    log = place / "input.tmp"
    log.write_text(given)
    log.rename(place / "input.json")
    emit({"awake": True})
    for number, line in enumerate(lines):
        act = json.loads(line)
        if "fail" in act:
            print(act["fail"], file=sys.stderr)
            return 3
        emit({key: act[key] for key in ("say", "run", "write") if key in act} | {"id": str(number)})
        if "say" not in act:
            output, ok = use(act) if "--act" in sys.argv else ("not allowed", False)
            emit({"result": output, "of": str(number), "ok": ok})
    emit({"end": "well"})
    return 0


def use(act: dict[str, str]) -> tuple[str, bool]:
    """Run a command or write a file; return the result."""
    if "write" in act:
        Path(act["write"]).write_text(act["text"])
        return "written", True
    env = {"PATH": os.defpath, **os.environ}
    done = subprocess.run(["/bin/sh", "-c", act["run"]], env=env, capture_output=True, text=True)
    return done.stdout, done.returncode == 0


def emit(what: Mapping[str, object]) -> None:
    """Print a line and flush."""
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    sys.exit(main())
