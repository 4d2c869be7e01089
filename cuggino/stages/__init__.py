"""One act each: an Observable whose last event is its outcome."""

from cuggino.stages.act import act, clock
from cuggino.stages.agent import LINGER, agent_stage
from cuggino.stages.command import Shell, command_stage, shell_lines
from cuggino.stages.repository import (
    Commit,
    GitRepository,
    Repository,
    commit_message,
    commit_stage,
    push_stage,
)

__all__ = [
    "LINGER",
    "Commit",
    "GitRepository",
    "Repository",
    "Shell",
    "act",
    "agent_stage",
    "clock",
    "command_stage",
    "commit_message",
    "commit_stage",
    "push_stage",
    "shell_lines",
]
