"""Providers: a CLI or an SDK in, `LlmAgentEvent`s out."""

from cuggino.agents.base import (
    AgentLike,
    Capabilities,
    DelegatingAgent,
    InteractiveOptions,
    LlmAgent,
    LoginCheck,
    Role,
    SpawnOptions,
    adopt,
    is_guarded,
)
from cuggino.agents.base.guard import find_bash
from cuggino.agents.base.login import Login
from cuggino.agents.base.program import Launch, ProgramAgent
from cuggino.agents.base.reader import Ending, Known, LineReader, ReaderOptions
from cuggino.agents.base.refusals import Dialect, Refusal
from cuggino.agents.choosing.registry import (
    AgentEntry,
    agent_entries,
    configured_agent,
    is_import_path,
    make_agent,
)
from cuggino.agents.choosing.routing import Candidate, RoutedAgent

__all__ = [
    "AgentEntry",
    "AgentLike",
    "Candidate",
    "Capabilities",
    "DelegatingAgent",
    "Dialect",
    "Ending",
    "InteractiveOptions",
    "Known",
    "Launch",
    "LineReader",
    "LlmAgent",
    "Login",
    "LoginCheck",
    "ProgramAgent",
    "ReaderOptions",
    "Refusal",
    "Role",
    "RoutedAgent",
    "SpawnOptions",
    "adopt",
    "agent_entries",
    "configured_agent",
    "find_bash",
    "is_guarded",
    "is_import_path",
    "make_agent",
]
