"""What the sessions of the deliverables loop are given: tools, servers, rules, and the guard.

Sources: requirements AUT-110, AUT-117, AUT-118, AUT-130 to AUT-140, AUT-230.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuggino.config import configured_policy, configured_sandbox
from cuggino.config.agent_file import DELIVER_ROLES, joined_settings, read_agent_file
from cuggino.domain.deliverable_tools import SERVER_NAME, TOOLS_OF, agent_tool
from cuggino.events import DeliverInstruction
from cuggino.loops.options import DeliverRunOptions
from cuggino.security.agent_settings import (
    AgentFile,
    AgentSettings,
    change_note,
    missing_programs,
)
from cuggino.security.policy import Policy
from cuggino.security.sandbox import Sandbox
from cuggino.storage import Workspace, storing
from cuggino.storage.atomic import write_atomic

_GUARDED = ("Bash", "Write", "Edit", "MultiEdit", "NotebookEdit", "Monitor")
_READING = ("Read", "Glob", "Grep", "LS", "NotebookRead")
_RULE = re.compile(r"(\w+)(\(.*\))?", re.DOTALL)
_DIGEST = "agent.sha256"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSetup:
    """What one session is given."""

    guard: Policy | None
    sandbox: Sandbox | None
    settings: Mapping[str, object]
    mcp_servers: Mapping[str, object]
    allowed_tools: tuple[str, ...]


def look_at_agent_file(project: Path, workspace: Workspace) -> tuple[AgentFile, tuple[str, ...]]:
    """`.autonoe/agent.json` of the project, and what is to be said about it.

    Its digest is kept in the workspace, so that a change since the last run is told (AUT-140): an
    agent may have made it.

    Raises:
        ConfigError: it names a profile that does not exist.
        StorageError: it is there and cannot be read, or the digest not be written.
    """
    found = read_agent_file(project)
    digest = workspace.folder / _DIGEST
    with storing("note agent settings", digest):
        before = digest.read_text("utf-8", "replace").strip() if digest.is_file() else None
        digest.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(digest, found.digest + "\n")
    note = change_note(before, found.digest)
    return found, (*found.warnings, *([note] if note else []))


def session_setup(
    instruction: DeliverInstruction,
    options: DeliverRunOptions,
    agent: AgentSettings,
    *,
    verified: Path,
    is_guarded: bool,
) -> SessionSetup:
    """What a session with this instruction is given, by the options and the agent's settings.

    `verified` is the file of what is verified; `is_guarded` whether the agent can be held to a
    policy.
    """
    guard = _policy(instruction, options, agent) if is_guarded else None
    own = tuple(agent_tool(tool) for tool in TOOLS_OF[instruction])
    servers: dict[str, object] = {
        **_servers(agent, options.cwd),
        SERVER_NAME: _server(instruction, options, verified),
    }
    return SessionSetup(
        guard=guard,
        sandbox=configured_sandbox(options, guard),
        settings=_settings(agent),
        mcp_servers=servers,
        allowed_tools=tuple(dict.fromkeys((*_tools(agent), *own))),
    )


def setup_warnings(agent: AgentSettings, project: Path) -> tuple[str, ...]:
    """What of the settings cannot be had on this machine."""
    return tuple(
        f"the MCP server {name} is left out: its program {program} is not installed"
        for name, program in missing_programs(agent, str(project)).items()
    )


def _policy(
    instruction: DeliverInstruction, options: DeliverRunOptions, agent: AgentSettings
) -> Policy | None:
    """The command policy in full (AUT-150), by the project's settings and the file's."""
    if options.guard == "off":
        return None
    settings = joined_settings(options, agent)
    role = DELIVER_ROLES[instruction]
    return configured_policy(settings, role, project=options.cwd, level="full")


def _settings(agent: AgentSettings) -> dict[str, object]:
    """Rules and hooks for the agent's program.

    Not the rules for tools that the guard answers for: they would let a call pass that it is silent
    about, and what it allows needs none.
    """
    rules = [rule for rule in agent.permissions if _tool_of(rule) not in _GUARDED]
    settings: dict[str, object] = {"permissions": {"allow": rules}}
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


def _tools(agent: AgentSettings) -> tuple[str, ...]:
    """The tools that may be used unasked, without those that guard or rules answer for."""
    bare = (*_GUARDED, *_READING)
    return tuple(tool for tool in agent.allowed_tools if _tool_of(tool) not in bare)


def _tool_of(rule: str) -> str:
    found = _RULE.fullmatch(rule.strip())
    return found[1] if found else rule


def _servers(agent: AgentSettings, project: Path) -> dict[str, Mapping[str, object]]:
    """The servers whose program is there; one that is not would cost each session its start."""
    missing = missing_programs(agent, str(project))
    return {name: server for name, server in agent.mcp_servers.items() if name not in missing}


def _server(
    instruction: DeliverInstruction, options: DeliverRunOptions, verified: Path
) -> dict[str, object]:
    """How the agent's program starts the deliverable tools (AUT-118)."""
    # Nothing of the project is imported: its folder is where the server starts.
    words = ["-P", "-m", "cuggino_cli", "mcp", "deliverables", "--project", str(options.cwd)]
    words += ["--tools", ",".join(TOOLS_OF[instruction])]
    if instruction == "verify":
        words += ["--verified", str(verified)]
    if options.strict_transitions:
        words.append("--strict-transitions")
    # Otherwise the model would have to search for these tools first.
    return {"command": sys.executable, "args": words, "alwaysLoad": True}
