"""Rules for a program of the Agent Client Protocol that need no model.

Sessions are opened and ended without a prompt, so nothing is sent to a model.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import SkipTest

from reactivex import operators as ops

from cuggino.agents.acp import AcpAgent
from cuggino.agents.base import SpawnOptions
from cuggino.edges import run
from cuggino.errors import AgentFailed, CugginoError, GuardNotLive
from cuggino.guard import Policy, role_policy
from cuggino.testing.conformance.agent import tool_server
from cuggino.testing.conformance.verdicts import Verdict, verdict_of
from cuggino.testing.leaks import no_leaks

_UNKNOWN = "00000000-0000-4000-8000-000000000000"


class _Trial(AcpAgent):
    """The same agent, whose sessions end before their prompt."""

    is_trial = True


def try_offline(agent: AcpAgent) -> Iterator[Verdict]:
    """Check the program of an agent against the rules that need no model, one by one."""
    trial = _Trial(agent.profile, path=agent.program, env=agent.environment)
    for rule in (_program, _session, _mode, _guard, _mcp_server, _unknown_session):
        with tempfile.TemporaryDirectory(prefix="cuggino-session-check-") as folder:
            check = no_leaks()(partial(rule, trial, Path(folder).resolve()))
            name = rule.__name__.removeprefix("_")
            yield verdict_of(name, check, failures=(AssertionError, CugginoError))


def _opened(trial: _Trial, folder: Path, **options: Any) -> str:
    """Open a session, and return its id.

    Raises:
        LlmSessionError: it could not be opened.
    """
    given = SpawnOptions(prompt="", cwd=folder, dangerously_skip_permissions=True, **options)
    ended = run(trial.spawn(given).pipe(ops.last()))
    return str(getattr(ended, "session_id", ""))


def _program(trial: _Trial, _folder: Path) -> str:
    """The program is installed, and new enough."""
    version = trial.check()
    return f"{trial.program} {version}".strip()


def _session(trial: _Trial, folder: Path) -> str:
    """A session opens in an empty project, and leaves nothing behind."""
    return f"session {_opened(trial, folder)}"


def _mode(trial: _Trial, folder: Path) -> str:
    """The mode in which the program asks can be set, and is read back."""
    mode = trial.profile.mode
    _opened(trial, folder, guard=_policy(trial, folder))
    return f"mode {mode}" if mode is not None else "its own mode"


def _guard(trial: _Trial, folder: Path) -> str:
    """Calls that the program asks about can be judged here."""
    trial.check_guard(_policy(trial, folder))
    return "only the calls that it asks about; others are judged afterwards"


def _policy(trial: _Trial, folder: Path) -> Policy:
    if not trial.profile.asks:
        raise SkipTest('it is unguarded, as it does not claim to ask ("asks")')
    return role_policy("implementing", project=folder, level="roles")


def _mcp_server(trial: _Trial, folder: Path) -> str:
    """An MCP server is started with a session."""
    log = folder / "asked.log"
    _opened(trial, folder, mcp_servers=tool_server(log))
    if not log.exists():
        raise SkipTest("it was not started before the first prompt")
    return "started"


def _unknown_session(trial: _Trial, folder: Path) -> str:
    """A session that never was cannot be resumed."""
    try:
        _opened(trial, folder, resume_session_id=_UNKNOWN)
    except GuardNotLive:
        raise
    except AgentFailed as error:
        if "cannot resume sessions" in error.message:
            raise SkipTest(error.message) from None
        return error.message
    raise AssertionError("it was resumed as if it were known")
