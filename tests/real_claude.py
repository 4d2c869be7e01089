"""The real Claude Code CLI, driven by its command line."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from typing_extensions import override

from cuggino.agents.base.guard import make_guard
from cuggino.agents.claude import ClaudeAgent
from cuggino.agents.claude.sandbox import sandbox_unavailable
from cuggino.programs import programs_folder
from cuggino.testing.conformance.acts import FailKind
from cuggino.testing.conformance.arena import GuardFault
from tests.limits import LIMIT
from tests.model_script import HELPER, ApiError, Tool, usage_limit
from tests.real_program import SLOW_HOOK, RealProgram, clean, install, tools_of, write_file

VERSION = "2.1.329"
PACKAGE = f"@anthropic-ai/claude-code@{VERSION}"

OFF: tuple[Mapping[str, Any], ...] = (
    {"disableAllHooks": True},
    {"allowManagedHooksOnly": True},
    {"hooks": {}},
    {"permissions": {"defaultMode": "bypassPermissions", "allow": ["Bash", "Write", "Edit"]}},
)
"""Settings that might disable the guard."""

HOOK_FAULTS = MappingProxyType(
    {
        "killed": "kill -9 $$",
        "crashed": "echo Traceback >&2; exit 1",
        "silent": "exit 0",
        "nonsense": "echo all is well; exit 0",
        "half an answer": "printf '{\"hookSpecificOutput\"'; exit 0",
        "killed after an empty answer": 'printf "{}"; kill -9 $$',
        "slow": "sleep 60",
    }
)
"""Faults of the hook as shell commands."""


install_claude = partial(install, f"claude-code-{VERSION}", PACKAGE, ".bin/claude")
"""About 400 MB."""


def needs_sandbox() -> None:
    """Skip where the system does not allow a sandbox; on CI its programs are required."""
    why = sandbox_unavailable(os.environ)
    if why and os.environ.get("CI") == "true" and "not let" not in why:
        pytest.fail(f"the sandbox must be tested on CI: {why}")
    if why:
        pytest.skip(f"no sandbox on this machine: {why}")


def clean_env(home: Path, base_url: str) -> dict[str, str]:
    """Return the whole environment of a run with this home folder and this API.

    `IS_SANDBOX=1` lets root bypass permissions, as in a container; it is not a sandbox.
    """
    # A short path: the sandbox binds sockets in it, whose paths are limited to 108 bytes.
    temporary = Path(tempfile.mkdtemp(prefix="claude-", dir="/tmp"))
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return clean(
        home,
        CLAUDE_CONFIG_DIR=home / ".claude",
        CLAUDE_CODE_TMPDIR=temporary,
        TMPDIR=temporary,
        ANTHROPIC_API_KEY="dummy-not-a-key",
        ANTHROPIC_BASE_URL=base_url,
        DISABLE_TELEMETRY="1",
        DISABLE_AUTOUPDATER="1",
        DISABLE_ERROR_REPORTING="1",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        IS_SANDBOX="1",
        # Without these it begins without the tools of a server that takes 5 seconds to start.
        MCP_CONNECT_TIMEOUT_MS=f"{LIMIT * 1000:.0f}",
        MCP_TIMEOUT=f"{LIMIT * 1000:.0f}",
    )


class Claude(RealProgram):
    """Claude Code; see `RealProgram`."""

    cli = "claude_cli"
    makes = ClaudeAgent
    tools = tools_of(
        ("Bash", {"description": "a command"}, "command"),
        ("Write", {}, "file_path", "content"),
        ("Edit", {}, "file_path", "old_string", "new_string"),
        ("Read", {}, "file_path"),
    )
    delegate = Tool(
        "Task", {"description": "d", "prompt": HELPER, "subagent_type": "general-purpose"}
    )
    other_model = "claude-haiku-4-5"
    limit_lasts = 7200.0
    no_login = MappingProxyType({"ANTHROPIC_API_KEY": ""})

    @override
    def env(self, base_url: str, retries: int) -> dict[str, str]:
        return {**clean_env(self.home, base_url), "CLAUDE_CODE_MAX_RETRIES": str(retries)}

    @override
    def failure(self, kind: FailKind) -> ApiError:
        match kind:
            case "usage_limit":
                return usage_limit(0, "You've hit your usage limit. It resets in 2 hours.")
            case "too_long":
                message = "prompt is too long: 250000 tokens > 200000 maximum"
                return ApiError(400, "invalid_request_error", message)
            case _:
                return super().failure(kind)

    @override
    def hostile_settings(self) -> Sequence[Mapping[str, str]]:
        names = (".claude/settings.json", ".claude/settings.local.json")
        return [{name: json.dumps(switch) for name in names} for switch in OFF]

    @override
    def rewriting_hook(self, command: str) -> None:
        made = {"hookEventName": "PreToolUse", "updatedInput": {"command": command}}
        said = json.dumps({"hookSpecificOutput": made})
        entry = {"matcher": "Bash", "hooks": [{"type": "command", "command": f"echo '{said}'"}]}
        settings = json.dumps({"hooks": {"PreToolUse": [entry]}})
        write_file(self.home / ".claude" / "settings.json", settings)

    @override
    def guard_faults(self, when: GuardFault) -> Sequence[str]:
        match when:
            case "at the start":
                return ("no python", "no hook", "no parser")
            case "later":
                return (*HOOK_FAULTS, "deleted")
            case "unasked":
                return ("no verdict",)

    @override
    @contextmanager
    def break_guard(self, when: GuardFault, fault: str) -> Iterator[Callable[[], None]]:
        now = self.home.parent / f"broken {fault}"
        site = self.home.parent / "site"

        def break_now() -> None:
            now.touch()
            shutil.rmtree(site, ignore_errors=True)

        match fault:
            case "no python":
                fields: dict[str, Any] = {"python": "/nonexistent/python"}
            case "no hook":
                fields = {"program": "/nonexistent/hook.py"}
            case "no parser":
                fields = {"shfmt": "/nonexistent/shfmt"}
            case "deleted":
                shutil.copytree(programs_folder() / "cuggino", site / "cuggino")
                fields = {"program": str(site / "cuggino" / "agents" / "base" / "hook.py")}
            case "no verdict":
                fields = {"python": interpreter(now, "echo {}; exit 0")}
            case "slow":
                fields = {"python": interpreter(now, HOOK_FAULTS[fault]), "timeout": SLOW_HOOK}
            case _:
                fields = {"python": interpreter(now, HOOK_FAULTS[fault])}
        with changed_guard(**fields):
            yield break_now


@contextmanager
def changed_guard(**fields: Any) -> Iterator[None]:
    """Change fields of the guard of the sessions in the block."""
    with pytest.MonkeyPatch.context() as patch:
        made = lambda *given: replace(make_guard(*given), **fields)  # noqa: E731
        patch.setattr("cuggino.agents.claude.agent.make_guard", made)
        yield


def interpreter(now: Path, fault: str) -> str:
    """Return a program that runs `fault` once the file exists, and the hook's Python before."""
    program = now.with_name(f"{now.name}.sh")
    program.write_text(f'#!/bin/sh\nif test -e "{now}"; then {fault}; fi\n')
    with program.open("a") as file:
        file.write(f'exec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return str(program)


bash = Claude.bash
