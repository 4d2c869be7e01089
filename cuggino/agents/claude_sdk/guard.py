"""The guard of a Claude Agent SDK session: the program asks this process, before each call.

The program sends each call of a tool over its own pipe and waits for the answer: no program is
started for it, and there is none that could be missing. It is closed thrice over, as seen on the
real program:

- The judge answers with a no whatever goes wrong in it, an answer that takes too long included.
- `on_failure="block"`: what is not answered, or answered with nonsense, is not run. The SDK refuses
  to work with a program that does not know that.
- The answer is `allow` and the session is in the default mode, in which nobody is there to ask, so
  that a call without an answer would lack permission. What the program asks about all the same
  (`.vscode`, `.npmrc`, `.git`, ...) goes to the same judge.

`disableAllHooks: false` in the session's settings beats the same key in the project's. That the
program does ask is seen before each session's first message, when it asks about the prompt itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cuggino.agents.guard import NOT_JUDGED, Guard, not_live
from cuggino.agents.json_values import Json
from cuggino.security import hook

if TYPE_CHECKING:
    from claude_agent_sdk import HookMatcher
    from claude_agent_sdk.types import HookEvent

JUDGE_SECONDS = 8.0
"""After so long a call that is still being judged is denied."""

ANSWER_SECONDS = 600.0
"""After so long the program takes the missing answer for a no. It may wait for a subscriber of this
process that is slow to read, which is no reason to deny a call."""


def gate_settings(
    guard: Guard, given: Mapping[str, object], *, manner: hook.Manner
) -> dict[str, Any]:
    """The settings of a session: those given, in which nothing can loosen the guard.

    Like `Guard.settings`, without the program that is not started here.
    """
    hooks = given.get("hooks")
    settings = guard.settings(given, manner=manner)
    return {**settings, "hooks": dict(hooks) if isinstance(hooks, dict) else {}}


@dataclass(frozen=True, kw_only=True)
class SdkGate:
    """Answers for one session that is held to a policy.

    `tell` gets each answer before the program does: as a line like the one in which the program
    itself tells what a hook of the settings has answered, for `GuardWatch` to read.
    """

    guard: Guard
    manner: hook.Manner
    tell: Callable[[bytes], None]

    def try_out(self) -> None:
        """Judge a call that must be denied and one that must not.

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
        """What the SDK is to be asked for by the program, about all tools."""
        from claude_agent_sdk import HookMatcher

        asked = [HookMatcher(hooks=[self.answer], timeout=ANSWER_SECONDS, on_failure="block")]
        hooks: dict[HookEvent, list[HookMatcher]] = {"UserPromptSubmit": asked, "PreToolUse": asked}
        return {**hooks, "PermissionRequest": asked} if self.manner == "allow" else hooks

    async def answer(self, data: Any, tool_use_id: str | None, _context: Any) -> Any:
        """The answer to one question of the program. Never raises but when it is cancelled."""
        asked: Json = data if isinstance(data, dict) else {}
        event = str(asked.get("hook_event_name"))
        if event == "UserPromptSubmit":
            return await self._begin()
        call = {"tool_use_id": tool_use_id, **asked}
        try:
            return self._told(event, await self._judged(call))
        except Exception:  # a time-out too: whatever it is, what was not judged does not run
            return self._told(event, self._refusal(event, call))

    async def _begin(self) -> Json:
        """It asks, so it is live, if it judges well; otherwise the model hears no word."""
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
        """The answer for the program, once it is told here."""
        line = {"type": "system", "subtype": "hook_response", "hook_event": event}
        self.tell(json.dumps({**line, "stdout": json.dumps(said)}).encode())
        return {key: value for key, value in said.items() if key != "cuggino"}
