"""What a session of Claude Code is told in private files, as arguments are shown to everybody.

Whoever uses the machine can read the arguments of its programs; and a prompt may be longer than an
argument can be.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from cuggino.agents.claude import sandbox as claude_sandbox
from cuggino.agents.program import write_private
from cuggino.agents.protocol import SpawnOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFiles:
    """The files of one session, which are removed at its end; None for what it is not told."""

    system_prompt: Path | None
    servers: Path | None
    """The MCP servers, in whose variables and headers keys may stand."""
    ignores: Path | None
    """What git is to ignore within the sandbox."""

    def remove(self) -> None:
        """Remove those that are there."""
        for file in (self.system_prompt, self.servers, self.ignores):
            if file is not None:
                file.unlink(missing_ok=True)


def write_files(
    options: SpawnOptions, env: Mapping[str, str], *, servers: Mapping[str, object]
) -> SessionFiles:
    """Write the files of a session; `servers` as the program takes them. All or none.

    Raises:
        StorageError: one cannot be written.
    """
    told = json.dumps({"mcpServers": dict(servers)}) if servers else None
    with ExitStack() as stack:

        def private(text: str | None, suffix: str) -> Path | None:
            if text is None:
                return None
            file = write_private(text, suffix=suffix)
            stack.callback(file.unlink, missing_ok=True)
            return file

        files = SessionFiles(
            system_prompt=private(options.system_prompt, ".md"),
            servers=private(told, ".json"),
            ignores=private(_ignores(options, env), ".ignore"),
        )
        stack.pop_all()
    return files


def _ignores(options: SpawnOptions, env: Mapping[str, str]) -> str | None:
    if options.sandbox is None or claude_sandbox.sandbox_unavailable(env):
        return None
    if sys.platform != "linux":  # elsewhere there are no devices
        return None
    return claude_sandbox.git_ignores(options.sandbox, options.cwd, env)
