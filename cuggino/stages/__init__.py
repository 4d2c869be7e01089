"""One act each: an Observable whose last event is its outcome."""

from cuggino.stages.act import act, clock, lane
from cuggino.stages.agent import LINGER, agent_stage
from cuggino.stages.command import Shell, command_stage, must_succeed, shell_lines
from cuggino.stages.fingerprint import apart_from, fingerprint_stage
from cuggino.stages.orphans import orphans_gone
from cuggino.stages.repository import (
    Commit,
    GitRepository,
    Recovers,
    Repository,
    commit_message,
    commit_stage,
    push_stage,
)
from cuggino.stages.sessions import Sessions
from cuggino.stages.supervision import Supervision

__all__ = [
    "LINGER",
    "Commit",
    "GitRepository",
    "Recovers",
    "Repository",
    "Sessions",
    "Shell",
    "Supervision",
    "act",
    "agent_stage",
    "apart_from",
    "clock",
    "command_stage",
    "commit_message",
    "commit_stage",
    "fingerprint_stage",
    "lane",
    "must_succeed",
    "orphans_gone",
    "push_stage",
    "shell_lines",
]
