"""The guard of a Claude Code session: the settings that enforce it, and the watch over its stream.

`cuggino.guard.hook` checks every tool call as a PreToolUse hook, in sub-agents and for MCP too. It
fails closed in two independent ways, as observed with the real program:

- The hook answers `allow` itself, and the session runs in the default permission mode rather than
  with --dangerously-skip-permissions. If the hook is silent, killed, slow, missing or prints
  nonsense, the call lacks permission and is denied, as there is no user to ask. Calls that the
  program asks about anyway (`.vscode`, `.npmrc`, `.git`, ...) reach the same hook as a
  PermissionRequest. (The mode `dontAsk` would deny those regardless of the guard; skipping
  permissions runs everything when the hook fails without an error.)
- `onFailure: block`, and a shell around the hook that turns every failure into a plain denial.

The policy is passed on the hook's command line, so there is no policy file to edit, and
`disableAllHooks: false` overrides the project's settings, at the start and later. All other
settings of the project and the user stay in force: their CLAUDE.md, hooks, skills and rules.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

from cuggino.agents.base.guard import NOT_JUDGED, Guard, not_live
from cuggino.agents.base.wire import Json, dict_or_empty, text_or_none
from cuggino.errors import GuardNotLive
from cuggino.events import GuardDenied
from cuggino.guard import hook
from cuggino.guard.hook import LIVE

LEAST_VERSION = (2, 1, 295)
"""First version of Claude Code that supports `onFailure`."""

_NOT_RUN = "its program could not be run"
_SHELL = (
    "no=$1; shift; "
    'said=$("$@") && case $said in "{"*"}") ;; *) false ;; esac || said=$no; '
    "printf '%s\\n' \"$said\""
)
"""Run the remaining arguments; unless they print an object, print the first argument instead."""

_PINNED = (
    *("CLAUDE_CODE_SHELL", "BASH_ENV"),
    *("LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES"),
)
"""Variables through which a project's settings could change what runs around a checked command."""


def guard_settings(
    guard: Guard, given: Mapping[str, object] | None = None, *, manner: hook.Manner
) -> dict[str, Any]:
    """Return the session's settings: those given, which cannot loosen the guard.

    The program silently drops all settings if one value is bad; the canary reveals that.
    """
    settings: dict[str, Any] = dict(given or {})
    hooks = settings.get("hooks")
    hooks = dict(hooks) if isinstance(hooks, dict) else {}
    events = ["SessionStart", "PreToolUse"]
    if manner == "allow":
        events.append("PermissionRequest")
    for event in events:
        others = hooks.get(event)
        # Without a matcher it applies to all tools.
        mine = [{"hooks": [_entry(guard, event, manner)]}]
        hooks[event] = mine + (others if isinstance(others, list) else [])
    sandbox = settings.get("sandbox")
    if isinstance(sandbox, dict):
        # It would run commands that the guard has not approved.
        settings["sandbox"] = {**sandbox, "autoAllowBashIfSandboxed": False}
    env = settings.get("env")
    env = dict(env) if isinstance(env, dict) else {}
    env |= {name: guard.env.get(name, "") for name in _PINNED} | guard.policy.known()
    return {**settings, "disableAllHooks": False, "hooks": hooks, "env": env}


def try_out(guard: Guard) -> None:
    """Run the hook as the program does, and check that it both allows and denies.

    Raises:
        GuardNotLive: it does not answer, or answers wrongly.
    """
    command = _entry(guard, "SessionStart", "allow")
    data = {"hook_event_name": "SessionStart", "cwd": guard.policy.project}
    try:
        said = subprocess.run(
            [command["command"], *command["args"]],
            input=json.dumps(data).encode(),
            capture_output=True,
            timeout=guard.timeout,
            check=True,
        ).stdout
        canary = json.loads(said)["cuggino"]["canary"]
    except (OSError, subprocess.SubprocessError, ValueError, LookupError) as error:
        raise not_live(f"{_NOT_RUN}: {error}") from error
    if canary != LIVE:
        raise not_live(str(canary))


def _entry(guard: Guard, event: str, manner: hook.Manner) -> dict[str, Any]:
    why = _NOT_RUN if event == "SessionStart" else NOT_JUDGED
    no = hook.refusal(event, why, token=guard.token)
    program = [guard.python, "-I", "-S", guard.program]
    words = [guard.policy.to_json(), guard.shfmt, guard.token, manner]
    return {
        "type": "command",
        "command": "/bin/sh",
        "args": ["-c", _SHELL, "cuggino-guard", json.dumps(no), *program, *words],
        "timeout": guard.timeout,
        "onFailure": "block",
    }


_FOREIGN_REWRITE = (
    "a hook of the user's or the project's settings rewrites tool calls (updatedInput), "
    "and the rewritten calls are not checked"
)


class GuardWatch:
    """The fold over the lines of a session guarded with this token.

    `breach` is set when the session must end: the hook was not live before the session began, a
    call ran without a verdict, or another hook rewrites calls.
    """

    def __init__(self, token: str) -> None:
        self._token = token
        self._is_live = False
        self._tools: dict[str, str] = {}
        self._judged: set[str] = set()
        self._told: set[str] = set()
        self._unproven: list[str] = []
        self.breach: GuardNotLive | None = None

    def read(self, raw: Json, answer: Any) -> list[GuardDenied]:
        """Return the denials in this line, each once.

        `answer` is the parsed output of a hook, for a line that reports one.
        """
        match raw.get("type"), raw.get("subtype"):
            case "system", "hook_response":
                return self._answered(raw, dict_or_empty(answer))
            case "system", "init":
                self._begins()
            case "assistant", _:
                self._begins()
                self._prove()
                for block in _blocks(raw):
                    if block.get("type") == "tool_use":
                        self._tools[str(block.get("id"))] = str(block.get("name"))
            case "user", _:
                return self._results(raw)
            case "result", _:
                self._prove()
            case _:
                pass
        return []

    def _begins(self) -> None:
        if not self._is_live:
            self._break("the agent's program did not run its hook at the start")

    def _break(self, why: str) -> None:
        self.breach = self.breach or not_live(why)

    def _answered(self, raw: Json, answer: Json) -> list[GuardDenied]:
        own = dict_or_empty(answer.get("cuggino"))
        if own.get("token") != self._token:
            said = dict_or_empty(answer.get("hookSpecificOutput"))
            if raw.get("hook_event") == "PreToolUse" and said.get("updatedInput") is not None:
                self._break(_FOREIGN_REWRITE)
            return []
        if "canary" in own:
            if own["canary"] == LIVE:
                self._is_live = True
            else:
                self._break(str(own["canary"]))
            return []
        call = text_or_none(own.get("tool_use_id"))
        if call is None:
            return []  # it failed, as reported by the call's result
        self._judged.add(call)
        if own.get("decision") != "deny":
            return []
        tool = text_or_none(own.get("tool")) or self._tools.get(call, "")
        return self._denied(call, tool, str(own.get("part", "")), str(own.get("reason", "")))

    def _results(self, raw: Json) -> list[GuardDenied]:
        metas = raw.get("tool_result_meta")
        ways = {
            str(meta.get("id")): meta
            for meta in (metas if isinstance(metas, list) else [])
            if isinstance(meta, dict)
        }
        denied: list[GuardDenied] = []
        for block in _blocks(raw):
            if block.get("type") != "tool_result":
                continue
            call = str(block.get("tool_use_id"))
            way = ways.get(call)
            if not _has_run(way, block):
                # Also a call left to the agent's rules, which asked the hook again.
                if way is not None and _is_by_a_hook(way):
                    tool = self._tools.get(call, "")
                    denied += self._denied(call, tool, tool, str(block.get("content")))
            elif call not in self._judged:
                self._unproven.append(call)
        return denied

    def _prove(self) -> None:
        """Check that every call of the turn had a verdict."""
        unproven = [call for call in self._unproven if call not in self._judged]
        self._unproven.clear()
        if unproven:
            tool = self._tools.get(unproven[0], "a tool")
            self._break(f"{tool} was used without its verdict")

    def _denied(self, call: str, tool: str, part: str, reason: str) -> list[GuardDenied]:
        if call in self._told:
            return []
        self._told.add(call)
        return [GuardDenied(tool=tool, tool_use_id=call, part=part, reason=reason)]


def _blocks(raw: Json) -> list[Json]:
    content = dict_or_empty(raw.get("message")).get("content")
    return (
        [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    )


def _has_run(way: Json | None, block: Json) -> bool:
    """Return whether a call ran; one of an unknown tool or with invalid input never does."""
    if way is None:
        return block.get("is_error") is not True
    decision = dict_or_empty(way.get("permission_decision")).get("decision")
    return "non_execution_kind" not in way and decision != "reject"


def _is_by_a_hook(way: Json) -> bool:
    return dict_or_empty(way.get("permission_decision")).get("source") == "hook"
