"""The guard of a Claude Code session: the settings that enforce it, and the watch over its stream.

The hook (`base.hook`) checks every tool call as a PreToolUse hook, in sub-agents and for MCP too.
It fails closed in two independent ways, as observed with the real program:

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
from collections.abc import Mapping
from typing import Any

from cuggino.agents.base.guard import NOT_JUDGED, NOT_RUN, Guard, ask_hook, try_out
from cuggino.agents.base.watch import Watch
from cuggino.agents.base.wire import Json, dict_or_empty, list_or_empty, text_or_none
from cuggino.agents.claude.hook import Manner, refusal
from cuggino.events import GuardDenied

LEAST_VERSION = (2, 1, 295)
"""First version of Claude Code that supports `onFailure`."""

_PINNED = (
    *("CLAUDE_CODE_SHELL", "BASH_ENV"),
    *("LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES"),
)
"""Variables through which a project's settings could change what runs around a checked command."""


def guard_settings(
    guard: Guard, given: Mapping[str, object] | None = None, *, manner: Manner
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


def try_hook(guard: Guard) -> None:
    """Run the hook as the program does, and check that it both allows and denies.

    Raises:
        GuardNotLive: it does not answer, or answers wrongly.
    """
    entry = _entry(guard, "SessionStart", "allow")
    command = [entry["command"], *entry["args"]]
    data = {"hook_event_name": "SessionStart", "cwd": guard.policy.project}
    try_out(lambda: [json.loads(ask_hook(command, data, seconds=guard.timeout))["cuggino"]])


def _entry(guard: Guard, event: str, manner: Manner) -> dict[str, Any]:
    why = NOT_RUN if event == "SessionStart" else NOT_JUDGED
    no = refusal(event, why, token=guard.token)
    command, *words = guard.or_refusal(guard.hook_command("claude", manner=manner), no)
    return {
        "type": "command",
        "command": command,
        "args": words,
        "timeout": guard.timeout,
        "onFailure": "block",
    }


_FOREIGN_REWRITE = (
    "a hook of the user's or the project's settings rewrites tool calls (updatedInput), "
    "and the rewritten calls are not checked"
)


class GuardWatch(Watch):
    """The watch over the lines of a session guarded with this token.

    A hook of the user or the project that rewrites calls is a breach too.
    """

    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token
        self._tools: dict[str, str] = {}
        self._unproven: list[str] = []
        """Calls that ran, whose verdicts may come until the turn continues."""

    def read(self, raw: Json, answer: Any) -> list[GuardDenied]:
        """Return the denials in this line, each once.

        `answer` is the parsed output of a hook, for a line that reports one.
        """
        match raw.get("type"), raw.get("subtype"):
            case "system", "hook_response":
                return self._answered(raw, dict_or_empty(answer))
            case "system", "init":
                self.begin()
            case "assistant", _:
                self.begin()
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

    def _answered(self, raw: Json, answer: Json) -> list[GuardDenied]:
        own = dict_or_empty(answer.get("cuggino"))
        if own.get("token") != self._token:
            said = dict_or_empty(answer.get("hookSpecificOutput"))
            if raw.get("hook_event") == "PreToolUse" and said.get("updatedInput") is not None:
                self.fail(_FOREIGN_REWRITE)
            return []
        call = text_or_none(own.get("tool_use_id")) or ""
        if not call and "canary" not in own:
            return []  # a hook that failed is reported by the result of the call
        return self.hear({"tool": self._tools.get(call), **own}, call, call=call)

    def _results(self, raw: Json) -> list[GuardDenied]:
        metas = [dict_or_empty(meta) for meta in list_or_empty(raw.get("tool_result_meta"))]
        ways = {str(meta.get("id")): meta for meta in metas}
        denied: list[GuardDenied] = []
        for block in _blocks(raw):
            if block.get("type") != "tool_result":
                continue
            call = str(block.get("tool_use_id"))
            way = ways.get(call)
            if _has_run(way, block):
                self._unproven.append(call)
            elif way is not None and _is_by_a_hook(way):
                # Also a call left to the agent's rules, which asked the hook again.
                own = {"tool": self._tools.get(call, ""), "reason": str(block.get("content"))}
                denied += self.hear(own, call, call=call)
        return denied

    def _prove(self) -> None:
        """Check that every call of the turn had a verdict."""
        for call in self._unproven:
            self.ran(self._tools.get(call, "a tool"), self.find(call))
        self._unproven.clear()


def _blocks(raw: Json) -> list[Json]:
    content = list_or_empty(dict_or_empty(raw.get("message")).get("content"))
    return [block for block in content if isinstance(block, dict)]


def _has_run(way: Json | None, block: Json) -> bool:
    """Return whether a call ran; one of an unknown tool or with invalid input never does."""
    if way is None:
        return block.get("is_error") is not True
    decision = dict_or_empty(way.get("permission_decision")).get("decision")
    return "non_execution_kind" not in way and decision != "reject"


def _is_by_a_hook(way: Json) -> bool:
    return dict_or_empty(way.get("permission_decision")).get("source") == "hook"
