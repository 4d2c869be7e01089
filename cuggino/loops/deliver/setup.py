"""The setup of sessions of the deliver loop: tools, servers, rules, and the guard.

Sources: requirements AUT-110, AUT-117, AUT-118, AUT-130 to AUT-140, AUT-230.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuggino.config import (
    AgentFile,
    AgentSettings,
    change_note,
    deliver_policy,
    missing_programs,
    read_agent_file,
)
from cuggino.domain import TOOL_SERVER, TOOLS_OF, agent_tool
from cuggino.events import DeliverInstruction
from cuggino.files import storing, write_atomic
from cuggino.guard import PERMISSIONS, Policy
from cuggino.loops.deliver.options import DeliverRunOptions
from cuggino.programs import program
from cuggino.storage import Workspace

_DIGEST = "agent.sha256"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSetup:
    """The setup of one session."""

    guard: Policy | None
    settings: Mapping[str, object]
    mcp_servers: Mapping[str, object]
    allowed_tools: tuple[str, ...]


def look_at_agent_file(project: Path, workspace: Workspace) -> tuple[AgentFile, tuple[str, ...]]:
    """Read `.autonoe/agent.json` of the project; return it with the warnings about it.

    Its digest is kept in the workspace to warn of a change since the last run (AUT-140), as an
    agent may have made it.

    Raises:
        ConfigError: it is unusable.
        StorageError: the digest cannot be written.
    """
    found = read_agent_file(project)
    digest = workspace.folder / _DIGEST
    with storing("note agent settings", digest):
        before = digest.read_text("utf-8", "replace").strip() if digest.is_file() else None
        write_atomic(digest, found.digest + "\n")
    note = change_note(before, found.digest)
    return found, (*found.warnings, *([note] if note else []))


def session_setup(
    instruction: DeliverInstruction,
    options: DeliverRunOptions,
    agent: AgentSettings,
    *,
    is_guarded: bool,
    socket: Path,
) -> SessionSetup:
    """Return the setup of a session with this instruction, by options and agent settings.

    `is_guarded` if the agent supports the guard. `socket` is where this process carries out calls
    of the deliverable tools.
    """
    permissions = PERMISSIONS[instruction]
    guard = deliver_policy(options, agent, permissions, project=options.cwd) if is_guarded else None
    own = tuple(agent_tool(tool) for tool in TOOLS_OF[instruction])
    servers: dict[str, object] = {
        **_servers(agent, options.cwd),
        TOOL_SERVER: _server(instruction, socket),
    }
    return SessionSetup(
        guard=guard,
        settings=_settings(agent),
        mcp_servers=servers,
        allowed_tools=tuple(dict.fromkeys((*agent.listed_tools, *own))),
    )


def setup_warnings(agent: AgentSettings, project: Path) -> tuple[str, ...]:
    """Return a warning for each setting that this machine does not support."""
    return tuple(
        f"the MCP server {name} is left out: its program {program} is not installed"
        for name, program in missing_programs(agent, str(project)).items()
    )


def _settings(agent: AgentSettings) -> dict[str, object]:
    """Return rules and hooks for the agent's program.

    Rules for guarded tools are left out: they would allow calls that the guard does not decide.
    """
    settings: dict[str, object] = {"permissions": {"allow": list(agent.permission_rules)}}
    if agent.extra_hooks:
        hooks: list[dict[str, Any]] = [
            {
                **({"matcher": hook.matcher} if hook.matcher else {}),
                "hooks": [{"type": "command", "command": hook.command}],
            }
            for hook in agent.extra_hooks
        ]
        settings["hooks"] = {"PreToolUse": hooks}
    return settings


def _servers(agent: AgentSettings, project: Path) -> dict[str, Mapping[str, object]]:
    """Return the servers whose programs are installed; others would fail every session."""
    missing = missing_programs(agent, str(project))
    return {name: server for name, server in agent.mcp_servers.items() if name not in missing}


def _server(instruction: DeliverInstruction, socket: Path) -> dict[str, object]:
    """Return the command of the deliverable tools' server (AUT-118)."""
    # Nothing of the project is imported: its folder is where the server starts.
    words = ["-P", str(program("mcp_server.py")), str(socket), *TOOLS_OF[instruction]]
    # Otherwise the model would have to search for these tools first.
    return {"command": sys.executable, "args": words, "alwaysLoad": True}
