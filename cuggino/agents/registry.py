"""Agents by name."""

from __future__ import annotations

import os
from pathlib import Path

from cuggino.agents.protocol import LlmAgent
from cuggino.errors import ConfigError

AGENT_NAMES = ("claude", "copilot", "scripted:FILE")
"""What can be given as an agent's name."""


def make_agent(name: str, *, cwd: Path, path: str | None = None) -> LlmAgent:
    """The agent of that name; `path` is its program, if it is not the usual one.

    `scripted:FILE` plays a scenario; the file is relative to `cwd`, and so is a `path` that is not
    a bare name.

    Raises:
        ConfigError: there is no such agent, or its scenario cannot be used.
    """
    kind, _, argument = name.partition(":")
    match kind:
        case "claude" if not argument:
            from cuggino.agents.claude import ClaudeAgent

            program = path or "claude"
            return ClaudeAgent(path=cwd / program if os.sep in program else program)
        case "copilot" if not argument:
            from cuggino.agents.copilot import CopilotAgent

            return CopilotAgent(path=cwd / path if path and os.sep in path else path)
        case "scripted" if argument:
            from cuggino.agents.scripted import ScriptedAgent

            return ScriptedAgent(cwd / argument)
        case _:
            raise ConfigError(
                f'unknown agent "{name}"', hint="available agents: " + ", ".join(AGENT_NAMES)
            )
