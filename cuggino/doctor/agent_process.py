"""The process in which `inspect_agents` inspects one agent, whose code may do anything.

`python -P -m cuggino.doctor.agent_process NAME [PATH]` prints the `AgentReport` as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from cuggino.doctor.agents import inspect_agent


def main(name: str, path: str | None = None) -> None:
    """Print the report on standard output; what the agent's code prints is discarded."""
    out = os.dup(1)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    report = inspect_agent(name, folder=Path.cwd(), path=path)
    with os.fdopen(out, "w", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(report)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
