"""The guard of a Gemini CLI session: its hook, the rules that require its verdict, and the watch.

Gemini runs the hook (`base.hook`) before each tool call, including sub-agents and MCP
(`BeforeTool`). As observed with the real program it runs the call if the hook is killed, too slow,
missing, turned off by the project's settings, or ends with an error. So rules of the highest rank
(`--admin-policy`), which no settings of the project or the user override, allow a tool that changes
something only if its input contains the token of the session, which only the hook knows:

- Commands and files: only the hook adds the token as a mark; without it, the call does not run.
- Reading, planning and the like need no mark, unless the policy restricts reads.
- MCP tools cannot be marked, as the server would see the mark. The hook checks them, and its own
  failures are denials. If its process is killed from outside, the call runs, and the session ends
  because a call succeeded without a verdict.
- Unknown tools do not run.

Rules of an administrator (`/etc/gemini-cli/policies`) would replace ours, so guarded sessions are
refused there. The project's `.env` is not read, and its `.gemini` is protected.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuggino.agents.base.guard import (
    ATTENDED,
    NOT_JUDGED,
    Guard,
    ask_hook,
    find_bash,
    make_guard,
    not_live,
    try_out,
    with_variables,
)
from cuggino.agents.base.watch import (
    Used,
    Verdict,
    VerdictLog,
    Watch,
    first_denied,
    same_text,
)
from cuggino.agents.base.wire import Json
from cuggino.agents.gemini.config import Home
from cuggino.agents.gemini.hook import denial
from cuggino.agents.gemini.tools import ASKING, HARMLESS, MARK, ORDER, READERS, TOOLS, WRITERS
from cuggino.errors import GuardNotLive
from cuggino.events import GuardDenied
from cuggino.guard import Policy

TIMEOUT_MS = 60_000
"""Timeout of the program for the hook, which ends itself earlier."""

UNMARKED = "The guard did not allow this call, so it did not run."

_ADMIN = {"darwin": "/Library/Application Support/GeminiCli/policies"}
_ADMIN_ELSEWHERE = "/etc/gemini-cli/policies"
_PINNED = (
    *("BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "NODE_OPTIONS"),
    *("LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES"),
)
"""Variables that could run something in or around the hook and the commands."""

_MCP_RULE = re.compile(r"mcp__(.+?)(?:__(.+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionGuard:
    """The guard of one session, in files of its folder."""

    guard: Guard
    script: Path
    """The script that the program runs."""
    log: VerdictLog
    marked: tuple[str, ...]
    """Tools that need the mark."""

    def hooks(self) -> dict[str, Any]:
        """Return the settings that install the hook; only this session knows its name."""
        entry = {
            "type": "command",
            "name": f"cuggino-{self.guard.token}",
            "command": f"/bin/sh {shlex.quote(str(self.script))}",
            "timeout": TIMEOUT_MS,
        }
        return {event: [{"hooks": [entry]}] for event in ("SessionStart", "BeforeTool")}

    def try_out(self, env: Mapping[str, str], project: str) -> None:
        """Run the hook as the program does, and check that it both allows and denies.

        Raises:
            GuardNotLive: it does not answer, or answers wrongly.
        """

        def answers() -> list[Json]:
            data = {"hook_event_name": "SessionStart", "cwd": project}
            ask_hook(["/bin/sh", str(self.script)], data, seconds=TIMEOUT_MS / 1000, env=env)
            return self.log.read()

        try_out(answers)


def prepare_guard(
    policy: Policy, env: Mapping[str, str], home: Home, *, servers: Iterable[str] = ()
) -> tuple[SessionGuard, dict[str, str]]:
    """Write the guard into the session's home; return it and the environment it needs.

    No tool of the session may write there, as it could change the policy.

    Raises:
        GuardNotLive: a requirement is missing, or an administrator's rules are in force.
    """
    if rules := _admin_rules():
        raise GuardNotLive(
            f"the Gemini CLI cannot be guarded beside the rules in {rules}",
            hint='use another agent, or turn the guard off with "guard": "off"',
        )
    policy = policy._replace(protected=(*policy.protected, ".gemini", home.own.name))
    guard = make_guard(with_variables(policy, env))
    marked = (*WRITERS, *READERS) if policy.rules is not None else WRITERS
    log = VerdictLog(home.own / "verdicts.jsonl", guard.token)
    script = home.own / "guard.sh"
    hook = guard.hook_command(
        "gemini",
        log=log.path,
        servers=list(servers),
        marked=marked,
        readable=[str(home.gemini / "tmp")],
    )
    try:
        log.path.touch()
        script.write_text(_script(guard, hook))
    except OSError as error:
        raise not_live(f"its files cannot be written: {error}") from error
    bash = Path(find_bash({**env, "CLAUDE_CODE_SHELL": ""}))
    held = {**env, **dict.fromkeys(_PINNED, "")}
    if shutil.which("bash", path=env.get("PATH")) != str(bash):
        # The program uses the first one on PATH.
        held["PATH"] = f"{bash.parent}{os.pathsep}{env.get('PATH', '')}"
    return SessionGuard(script=script, log=log, marked=marked, guard=guard), held


def _script(guard: Guard, hook: list[str]) -> str:
    """Return a script that runs the hook, as settings cannot hold every command line."""
    return f"exec {shlex.join(guard.or_refusal(hook, denial(NOT_JUDGED)))}\n"


def rules(
    *,
    unattended: bool,
    guard: SessionGuard | None,
    allowed_tools: Iterable[str] = (),
) -> str:
    """Return the rules of the session in the program's format.

    Without `unattended` the session reads, and uses `allowed_tools` (Claude Code's names).
    """
    made = [_rule(999, ASKING, "deny", message="Nobody is there to ask.")]
    if unattended and guard is None:
        return "\n".join(made)
    mine = [name for tool in allowed_tools for name in TOOLS.of(tool)]
    may = (*READERS, *HARMLESS, *mine) if not unattended else (*READERS, *HARMLESS, *WRITERS)
    marked = [name for name in may if guard is not None and name in guard.marked]
    if guard is not None and marked:
        pattern = f'"{MARK}":"{guard.guard.token}"'
        made.append(_rule(998, marked, "allow", pattern=pattern))
    made.append(_rule(997, [name for name in may if name not in marked], "allow"))
    if unattended:
        made.append(_rule(996, ["mcp_*"], "allow"))
    else:
        made += [rule for tool in allowed_tools for rule in _mcp_rules(tool)]
    made.append(_rule(995, ["*"], "deny", message=UNMARKED if unattended else ATTENDED))
    return "\n".join(made)


def _rule(
    priority: int,
    tools: Iterable[str],
    decision: str,
    *,
    pattern: str | None = None,
    message: str | None = None,
    server: str | None = None,
) -> str:
    lines = ["[[rule]]", f"toolName = {json.dumps(list(tools))}", f"priority = {priority}"]
    lines.append(f"decision = {json.dumps(decision)}")
    if server is not None:
        lines.append(f"mcpName = {json.dumps(server)}")
    if pattern is not None:
        lines.append(f"argsPattern = {json.dumps(pattern)}")
    if message is not None:
        lines.append(f"denyMessage = {json.dumps(message)}")
    if decision == "allow":
        lines.append("allowRedirection = true")
    return "\n".join(lines) + "\n"


def _mcp_rules(tool: str) -> list[str]:
    found = _MCP_RULE.fullmatch(tool)
    if found is None:
        return []
    return [_rule(996, [found[2] or "*"], "allow", server=found[1])]


def _admin_rules() -> str:
    folder = Path(_ADMIN.get(sys.platform, _ADMIN_ELSEWHERE))
    try:
        return str(folder) if any(folder.glob("*.toml")) else ""
    except OSError:
        return str(folder)


_SUB_AGENT = "invoke_agent"
_MCP = "mcp_"
_BLOCKED = "Tool execution blocked: "
"""Prefix of the program's message for any hook; another hook's only counts without our verdict."""


@dataclass(frozen=True, slots=True)
class _Started:
    name: str
    """Gemini's name of the tool."""
    tool: str
    key: tuple[str, str]


class GeminiWatch(Watch):
    """The watch over the verdicts and lines of one guarded session.

    The hook is not told the id of a call, so a verdict is found by the tool and its input. Each
    verdict is used up by one call.
    """

    def __init__(self, log: VerdictLog) -> None:
        super().__init__(log)
        self._started: dict[str, _Started] = {}

    def start(self) -> None:
        """Check at the start of the session that the hook has answered."""
        self._read()
        self.begin()

    def call(self, call_id: str, name: str, tool: str, arguments: Any) -> None:
        """Note a call; `name` is Gemini's name of the tool, `tool` is Claude Code's."""
        self._started[call_id] = _Started(name, tool, (name, same_input(arguments)))

    def result(self, call_id: str, *, is_error: bool, message: str) -> list[GuardDenied]:
        """Return the denials of a call that has ended, each once."""
        self._read()
        started = self._started.pop(call_id, None)
        if started is None:
            return []
        verdict = self._verdict_on(started, message)
        events: list[GuardDenied] = []
        if verdict is not None:
            events = self.see(Used(verdict, call_id))
        elif is_error and (reason := _refused_with(message)):
            events = self.see(
                Verdict(
                    tool=started.tool,
                    is_allowed=False,
                    call=call_id,
                    part=started.tool,
                    reason=reason,
                )
            )
        if not is_error:
            self.ran(started.tool, verdict)
        if started.name == _SUB_AGENT:
            events = [*self._rest(call_id), *events]
        return events

    def _rest(self, call_id: str) -> list[GuardDenied]:
        """Return the denials of a sub-agent, whose calls are not reported and have no ids."""
        still = {started.key for started in self._started.values()}
        return [
            denied
            for verdict in self.verdicts
            if not verdict.is_allowed and still.isdisjoint(verdict.keys)
            for denied in self.see(Used(verdict, call_id))
        ]

    def _verdict_on(self, started: _Started, message: str) -> Verdict | None:
        """Return the verdict on a call.

        The program may have changed the input slightly before it asked. Then the reason for the
        denial is in its message, and an allowed call has the mark, which a server's tool has not.
        """
        same_tool = [v for v in self.verdicts if started.name in v.keys]
        same = [v for v in same_tool if started.key in v.keys]
        similar = [
            v
            for v in same_tool
            if (not started.name.startswith(_MCP) if v.is_allowed else v.reason in message)
        ]
        return first_denied((*same, *similar))

    def _read(self) -> None:
        for own in self.poll():
            name = str(own.get("name"))
            key = name, same_input(own.get("input"))
            self.hear(own, name, key, call=None)


def _refused_with(message: str) -> str:
    """Return the reason of a denial when the hook did not answer in time, or ""."""
    reason = next((why for why in (NOT_JUDGED, UNMARKED, ATTENDED) if why in message), "")
    is_blocked = message.startswith(_BLOCKED)
    return reason or (message.removeprefix(_BLOCKED) if is_blocked else "")


def same_input(arguments: Any) -> str:
    """Return equal, short texts for equal inputs of a tool, whenever they are to run."""
    if isinstance(arguments, dict):
        arguments = {key: value for key, value in arguments.items() if key != ORDER}
    return same_text(arguments)
