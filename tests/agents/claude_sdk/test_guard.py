"""The Claude Agent SDK guard in isolation: its responses, even to failures."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.base.guard import make_guard
from cuggino.agents.claude.guard import GuardWatch
from cuggino.agents.claude_sdk import guard as claude_sdk_guard
from cuggino.agents.claude_sdk.guard import SdkGate, gate_settings
from cuggino.errors import GuardNotLive
from cuggino.guard import hook
from cuggino.guard.roles import role_policy
from tests.real_claude import needs_sdk

Raw = dict[str, Any]


class Gate:
    """A gate and the lines it has emitted."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        policy = role_policy("implementing", project=folder, level="roles")
        self.guard = replace(make_guard(policy), **changes)
        self.lines: list[Raw] = []
        self.gate = SdkGate(
            guard=self.guard, manner="allow", tell=lambda line: self.lines.append(json.loads(line))
        )
        self.folder = folder

    def ask(self, event: str, tool: str = "Bash", **given: Any) -> Raw:
        data = {"hook_event_name": event, "tool_name": tool, "tool_input": given}
        data["cwd"] = str(self.folder)
        answer: Raw = asyncio.run(self.gate.answer(data, "call", {}))
        return answer

    def decision(self, **given: Any) -> str:
        return str(self.ask("PreToolUse", **given)["hookSpecificOutput"]["permissionDecision"])

    @property
    def watched(self) -> tuple[GuardWatch, list[str]]:
        """Return the watch and the breach after reading the lines."""
        watch = GuardWatch(self.guard.token)
        told = [
            denied.reason
            for line in self.lines
            for denied in watch.read(line, json.loads(line["stdout"]))
        ]
        return watch, told


def test_verdicts(tmp_path: Path) -> None:
    """A call is allowed or denied, and a denial is emitted before the program receives it."""
    gate = Gate(tmp_path)
    assert ["allow", "deny"] == [
        gate.decision(command="echo yes > new.txt"),
        gate.decision(command="echo no > .specs/task.md"),
    ]
    _, told = gate.watched
    assert 1 == len(told)
    assert ".specs" in told[0]
    assert ["PreToolUse"] * 2 == [line["hook_event"] for line in gate.lines]


def test_the_token_stays_private(tmp_path: Path) -> None:
    """The session's token stays in this process."""
    gate = Gate(tmp_path)
    said = [gate.ask(event, command="ls") for event in ("PreToolUse", "PermissionRequest")]
    assert gate.guard.token not in json.dumps([*said, gate.ask("UserPromptSubmit")])
    assert gate.guard.token in json.dumps(gate.lines)


def test_permission_requests(tmp_path: Path) -> None:
    """The same judge answers the program's permission requests."""
    gate = Gate(tmp_path)
    behaviors = [
        gate.ask("PermissionRequest", command=command)["hookSpecificOutput"]["decision"]["behavior"]
        for command in ("echo yes > .npmrc", "echo no > .specs/task.md")
    ]
    assert ["allow", "deny"] == behaviors


def test_the_canary(tmp_path: Path) -> None:
    """The hook on the prompt proves that the guard is called and judges correctly."""
    gate = Gate(tmp_path)
    assert {} == gate.ask("UserPromptSubmit")
    watch, _ = gate.watched
    watch.read({"type": "system", "subtype": "init"}, None)
    assert watch.breach is None


@pytest.mark.parametrize("fault", ["wrong", "raises"])
def test_a_failed_canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """A guard that judges wrongly, or fails, blocks the prompt and ends the session."""
    gate = Gate(tmp_path, shfmt="/bin/false")
    if fault == "raises":
        monkeypatch.setattr(hook, "answer", raising(OSError("no more files")))
    assert "block" == gate.ask("UserPromptSubmit")["decision"]
    watch, _ = gate.watched
    assert isinstance(watch.breach, GuardNotLive)
    with pytest.raises(GuardNotLive, match="echo ready" if fault == "wrong" else "no more files"):
        gate.gate.try_out()


def raising(error: Exception) -> Any:
    def fail(*_given: Any, **_named: Any) -> Any:
        raise error

    return fail


ANSWERS: list[Any] = [None, {}, {"x": "y"}, {"cuggino": None}, {"cuggino": {"token": "another"}}]


@pytest.mark.parametrize("said", ANSWERS, ids=str)
def test_an_invalid_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Any) -> None:
    """An invalid verdict is a denial."""
    gate = Gate(tmp_path)
    monkeypatch.setattr(hook, "answer", lambda *_given, **_named: said)
    assert "deny" == gate.decision(command="ls")
    assert 1 == len(gate.watched[1])


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
def test_a_judge_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: str) -> None:
    """An exception in the judge is a denial with a message for the model."""
    gate = Gate(tmp_path)
    monkeypatch.setattr(hook, "answer", raising(MemoryError()))
    said = json.dumps(gate.ask(event, command="ls"))
    assert '"deny"' in said
    assert "The guard could not check this call" in said


def test_a_judge_that_is_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that times out denies."""
    gate = Gate(tmp_path)
    monkeypatch.setattr(claude_sdk_guard, "JUDGE_SECONDS", 0.05)
    # It blocks its thread, which virtual time cannot simulate.
    monkeypatch.setattr(hook, "answer", lambda *_given, **_named: time.sleep(0.5))
    assert "deny" == gate.decision(command="ls")


@pytest.mark.parametrize(
    "data", [None, [], {}, {"hook_event_name": 1}, {"hook_event_name": "Stop"}]
)
def test_unknown_requests(tmp_path: Path, data: Any) -> None:
    """Unknown requests are denied."""
    gate = Gate(tmp_path)
    said = json.dumps(asyncio.run(gate.gate.answer(data, None, {})))
    assert "allow" not in said


def test_lone_surrogates(tmp_path: Path) -> None:
    """Commands with lone surrogates are judged without errors."""
    gate = Gate(tmp_path)
    assert "deny" == gate.decision(command="echo \udc80 > .specs/task.md")


def test_the_requested_hooks(tmp_path: Path) -> None:
    """The program must ask about all tools and run nothing unanswered."""
    needs_sdk()
    gate = Gate(tmp_path).gate
    hooks = gate.hooks()
    assert {"UserPromptSubmit", "PreToolUse", "PermissionRequest"} == set(hooks)
    for matchers in hooks.values():
        (matcher,) = matchers
        assert (None, "block") == (matcher.matcher, matcher.on_failure)
    # A request does not allow calls that the guard leaves to the program's rules.
    assert "PermissionRequest" not in replace(gate, manner="leave").hooks()


def test_settings(tmp_path: Path) -> None:
    """Given settings are kept unless they would loosen the guard; no program is named."""
    guard = Gate(tmp_path).guard
    given = {"disableAllHooks": True, "hooks": {"Stop": []}, "env": {"BASH_ENV": "x"}, "model": "m"}
    settings = gate_settings(guard, given, manner="allow")
    assert (False, {"Stop": []}, "m") == (
        settings["disableAllHooks"],
        settings["hooks"],
        settings["model"],
    )
    assert "" == settings["env"]["BASH_ENV"]
    assert {} == gate_settings(guard, {"hooks": 3}, manner="allow")["hooks"]
