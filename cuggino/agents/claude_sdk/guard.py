"""The guard of a Claude Agent SDK session: the program asks this process before each call.

The program sends each tool call over its own pipe and waits for the answer, so no program has to be
started for it. It fails closed in three independent ways, as observed with the real program:

- Any failure while checking is a denial, including an answer that takes too long.
- `on_failure="block"`: a call without a valid answer does not run. The SDK refuses to work with a
  program that does not support this.
- The answer is `allow` and the session runs in the default mode with no user to ask, so that a call
  without an answer lacks permission. Calls that the program asks about anyway (`.vscode`, `.npmrc`,
  `.git`, ...) are checked as well.

`disableAllHooks: false` in the session's settings overrides the project's. Before the first message
of each session, the program must ask about the prompt itself, which proves that it asks.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cuggino.agents.base.guard import NOT_JUDGED, Guard, not_live
from cuggino.agents.base.wire import Json
from cuggino.agents.claude.guard import guard_settings
from cuggino.guard import hook

if TYPE_CHECKING:
    from claude_agent_sdk import HookMatcher
    from claude_agent_sdk.types import HookEvent

JUDGE_SECONDS = 45.0
"""A call that takes longer to check is denied."""

ANSWER_SECONDS = 600.0
"""Seconds after which the program treats a missing answer as a denial. The answer may be delayed by
a slow subscriber in this process, which should not deny a call."""


def gate_settings(
    guard: Guard, given: Mapping[str, object], *, manner: hook.Manner
) -> dict[str, Any]:
    """Return the session's settings: those given, which cannot loosen the guard.

    Like `claude.guard.guard_settings`, without the hook program.
    """
    hooks = given.get("hooks")
    settings = guard_settings(guard, given, manner=manner)
    return {**settings, "hooks": dict(hooks) if isinstance(hooks, dict) else {}}


@dataclass(frozen=True, kw_only=True)
class SdkGate:
    """Answers the questions of one guarded session.

    `tell` gets each answer before the program does, as a line in the format in which the program
    itself reports the answers of hooks, for `GuardWatch` to read.
    """

    guard: Guard
    manner: hook.Manner
    tell: Callable[[bytes], None]

    def try_out(self) -> None:
        """Check a call that must be denied and one that must be allowed.

        Raises:
            GuardNotLive: one of the answers is wrong.
        """
        try:
            canary = self._ask({"hook_event_name": "SessionStart"})["cuggino"]["canary"]
        except Exception as error:
            raise not_live(f"{type(error).__name__}: {error}") from error
        if canary != hook.LIVE:
            raise not_live(str(canary))

    def hooks(self) -> dict[HookEvent, list[HookMatcher]]:
        """Return the hooks for the SDK, for all tools."""
        from claude_agent_sdk import HookMatcher

        asked = [HookMatcher(hooks=[self.answer], timeout=ANSWER_SECONDS, on_failure="block")]
        hooks: dict[HookEvent, list[HookMatcher]] = {"UserPromptSubmit": asked, "PreToolUse": asked}
        return {**hooks, "PermissionRequest": asked} if self.manner == "allow" else hooks

    async def answer(self, data: Any, tool_use_id: str | None, _context: Any) -> Any:
        """Answer one question of the program. Raises only on cancellation."""
        asked: Json = data if isinstance(data, dict) else {}
        event = str(asked.get("hook_event_name"))
        if event == "UserPromptSubmit":
            return await self._begin()
        call = {"tool_use_id": tool_use_id, **asked}
        try:
            return self._told(event, await self._judged(call))
        except Exception:  # including a timeout: unchecked calls do not run
            return self._told(event, self._refusal(event, call))

    async def _begin(self) -> Json:
        """Answer the first question: the guard is live if it checks calls correctly."""
        try:
            said = await self._judged({"hook_event_name": "SessionStart"})
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            said = hook.refusal("SessionStart", why, token=self.guard.token)
        self._told("SessionStart", said)
        if said["cuggino"].get("canary") == hook.LIVE:
            return {}
        return {"decision": "block", "reason": "The guard is not live."}

    async def _judged(self, data: Json) -> Json:
        said = await asyncio.wait_for(asyncio.to_thread(self._ask, data), JUDGE_SECONDS)
        if said["cuggino"]["token"] != self.guard.token:
            raise ValueError("the answer is not the guard's")
        return said

    def _ask(self, data: Json) -> Json:
        guard = self.guard
        return hook.answer(
            data, guard.policy, shfmt=guard.shfmt, token=guard.token, manner=self.manner
        )

    def _refusal(self, event: str, call: Json) -> Json:
        said = hook.refusal(event, NOT_JUDGED, token=self.guard.token)
        if event != "PreToolUse":
            return said
        tool = str(call.get("tool_name"))
        own = {"tool_use_id": call.get("tool_use_id"), "tool": tool, "decision": "deny"}
        return {**said, "cuggino": {**said["cuggino"], **own, "part": tool, "reason": NOT_JUDGED}}

    def _told(self, event: str, said: Json) -> Json:
        """Report the answer, then return it for the program."""
        line = {"type": "system", "subtype": "hook_response", "hook_event": event}
        self.tell(json.dumps({**line, "stdout": json.dumps(said)}).encode())
        return {key: value for key, value in said.items() if key != "cuggino"}
