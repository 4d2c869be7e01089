"""The guard as it shows in a session's stream: that it lives, what it denied, what went past it."""

from __future__ import annotations

from typing import Any

from cuggino.agents.guard import not_live
from cuggino.agents.json_values import Json, dict_or_empty, text_or_none
from cuggino.errors import GuardNotLive
from cuggino.events import GuardDenied
from cuggino.security.hook import LIVE

_FOREIGN_REWRITE = (
    "a hook of the user's or the project's settings rewrites the calls of tools (updatedInput), "
    "and what it makes of them is not judged"
)


class GuardWatch:
    """The fold over the lines of one session that is guarded with this token.

    `breach` is set when the session must end: the canary did not come before the session began, it
    did not sing, a call ran without a verdict, or the hook of somebody else rewrites calls.
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
        """What the guard did in this line, once for each denied call.

        `answer` is what a hook printed, read as JSON, for a line that tells the answer of a hook.
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
            return []  # it failed, and the call's result says so
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
                # Also a call that was left to the agent's rules, which have asked the hook again.
                if way is not None and _is_by_a_hook(way):
                    tool = self._tools.get(call, "")
                    denied += self._denied(call, tool, tool, str(block.get("content")))
            elif call not in self._judged:
                self._unproven.append(call)
        return denied

    def _prove(self) -> None:
        """Behind the results of a turn all of its verdicts must have been told."""
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
    """Whether a call was carried out; one of an unknown tool or with bad input never is."""
    if way is None:
        return block.get("is_error") is not True
    decision = dict_or_empty(way.get("permission_decision")).get("decision")
    return "non_execution_kind" not in way and decision != "reject"


def _is_by_a_hook(way: Json) -> bool:
    return dict_or_empty(way.get("permission_decision")).get("source") == "hook"
