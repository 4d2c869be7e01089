"""The guard of a Gemini CLI session: its hook, the rules that require its verdict, and the watch.

Gemini runs `gemini.hook` before each tool call, including sub-agents and MCP (`BeforeTool`). As
observed with the real program it runs the call if the hook is killed, too slow, missing, turned off
by the project's settings, or ends with an error. So rules of the highest rank (`--admin-policy`),
which no settings of the project or the user override, allow a tool that changes something only if
its input contains the token of the session, which only the hook knows:

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

import hashlib
import json
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuggino.agents.base.guard import (
    NOT_JUDGED,
    Guard,
    find_bash,
    make_guard,
    not_live,
    with_variables,
)
from cuggino.agents.base.wire import Json, dict_or_empty, text_or_none
from cuggino.agents.gemini.config import Home
from cuggino.agents.gemini.tools import ASKING, HARMLESS, MARK, READERS, WRITERS, gemini_names
from cuggino.errors import GuardNotLive
from cuggino.events import GuardDenied
from cuggino.guard import Policy
from cuggino.guard.hook import LIVE
from cuggino.programs import program

TIMEOUT_MS = 60_000
"""Timeout of the program for the hook, which ends itself earlier."""

UNMARKED = "The guard did not allow this call, so it did not run."
ATTENDED = "This session is read-only: nobody is there to ask. Mention that in your report."

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

    script: Path
    """The script that the program runs."""
    log: Path
    """The hook's log of verdicts, one JSON object per line."""
    marked: tuple[str, ...]
    """Tools that need the mark."""
    token: str

    def hooks(self) -> dict[str, Any]:
        """Return the settings that install the hook; only this session knows its name."""
        entry = {
            "type": "command",
            "name": f"cuggino-{self.token}",
            "command": f"/bin/sh {shlex.quote(str(self.script))}",
            "timeout": TIMEOUT_MS,
        }
        return {event: [{"hooks": [entry]}] for event in ("SessionStart", "BeforeTool")}

    def try_out(self, env: Mapping[str, str], project: str) -> None:
        """Run the hook as the program does, and check that it both allows and denies.

        Raises:
            GuardNotLive: it does not answer, or answers wrongly.
        """
        try:
            self._ask(env, {"hook_event_name": "SessionStart", "cwd": project})
            canary = json.loads(self.log.read_text().splitlines()[-1])["canary"]
        except (OSError, subprocess.SubprocessError, ValueError, LookupError) as error:
            raise not_live(f"its program could not be run: {error}") from error
        finally:
            self.log.write_text("")
        if canary != LIVE:
            raise not_live(str(canary))

    def _ask(self, env: Mapping[str, str], data: Mapping[str, Any]) -> None:
        subprocess.run(
            ["/bin/sh", str(self.script)],
            env=dict(env),
            input=json.dumps(data).encode(),
            capture_output=True,
            timeout=TIMEOUT_MS / 1000,
            check=True,
        )


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
    token = secrets.token_hex(16)
    log, path, script = (home.own / name for name in ("verdicts.jsonl", "orders.json", "guard.sh"))
    orders = {
        **guard.orders(),
        "token": token,
        "log": str(log),
        "servers": list(servers),
        "marked": list(marked),
        "readable": [str(home.gemini / "tmp")],
    }
    try:
        log.touch()
        path.write_text(json.dumps(orders))
        script.write_text(_script(guard, path))
    except OSError as error:
        raise not_live(f"its files cannot be written: {error}") from error
    bash = Path(find_bash({**env, "CLAUDE_CODE_SHELL": ""}))
    held = {**env, **dict.fromkeys(_PINNED, "")}
    if shutil.which("bash", path=env.get("PATH")) != str(bash):
        # The program uses the first one on PATH.
        held["PATH"] = f"{bash.parent}{os.pathsep}{env.get('PATH', '')}"
    return SessionGuard(script=script, log=log, marked=marked, token=token), held


def _script(guard: Guard, orders: Path) -> str:
    """Return a script that runs the hook and denies the call unless that prints an object."""
    hook = shlex.join(
        [guard.python, "-I", "-S", str(program("agents/gemini/hook.py")), str(orders)]
    )
    no = shlex.quote(json.dumps({"decision": "deny", "reason": NOT_JUDGED}))
    return (
        f"said=$({hook}) && case $said in '{{'*'}}') ;; *) false ;; esac || said={no}\n"
        "printf '%s\\n' \"$said\"\n"
    )


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
    mine = [name for tool in allowed_tools for name in gemini_names(tool)]
    may = (*READERS, *HARMLESS, *mine) if not unattended else (*READERS, *HARMLESS, *WRITERS)
    marked = [name for name in may if guard is not None and name in guard.marked]
    if guard is not None and marked:
        pattern = f'"{MARK}":"{guard.token}"'
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
_ORDER = "wait_for_previous"
"""An input of all tools that controls when they run."""
_BLOCKED = "Tool execution blocked: "
"""Prefix of the program's message for any hook; another hook's only counts without our verdict."""


@dataclass(frozen=True, slots=True)
class _Started:
    name: str
    """Gemini's name of the tool."""
    tool: str
    arguments: str

    @property
    def key(self) -> tuple[str, str]:
        return self.name, self.arguments


class GeminiWatch:
    """The fold over the lines of one guarded session.

    `verdicts` returns what the hook has written since the last call. `breach` is set when the
    session must end: the hook did not answer at its start, or a call succeeded without a verdict.
    """

    def __init__(self, verdicts: Callable[[], Iterable[str]]) -> None:
        self._verdicts = verdicts
        self._is_live = False
        self._started: dict[str, _Started] = {}
        self._allowed: list[tuple[str, str]] = []
        self._denied: list[Json] = []
        self.breach: GuardNotLive | None = None

    def begin(self) -> None:
        """Check at the start of the session that the hook has answered."""
        self._read()
        if not self._is_live:
            self._break("the agent's program did not run its hook at the start")

    def call(self, call_id: str, name: str, tool: str, arguments: Any) -> None:
        """Note a call; `name` is Gemini's name of the tool, `tool` is Claude Code's."""
        self._started[call_id] = _Started(name, tool, same_text(arguments))

    def result(self, call_id: str, *, is_error: bool, message: str) -> list[GuardDenied]:
        """Return the denials of a call that has ended, each once."""
        self._read()
        started = self._started.pop(call_id, None)
        if started is None:
            return []
        told = self._take(started, message)
        was_allowed = told is None and self._use(started)
        events: list[GuardDenied] = []
        if told is not None:
            events.append(_denial(told, call_id))
        elif is_error and not was_allowed:
            events += _by_itself(started, call_id, message)
        if not is_error and (told is not None or not was_allowed):
            how = "without" if told is None else "despite"
            self._break(f"{started.tool} was used {how} its verdict")
        if started.name == _SUB_AGENT:
            events = [*self._rest(call_id), *events]
        return events

    def _rest(self, call_id: str) -> list[GuardDenied]:
        """Return the denials of a sub-agent, whose calls are not reported and have no ids."""
        still = {started.key for started in self._started.values()}
        of_agent = [told for told in self._denied if _key(told) not in still]
        self._denied = [told for told in self._denied if _key(told) in still]
        return [_denial(told, call_id) for told in of_agent]

    def _take(self, started: _Started, message: str) -> Json | None:
        """Return the verdict that denied this call."""
        mine = [told for told in self._denied if told.get("name") == started.name]
        same = [told for told in mine if _key(told) == started.key]
        # The program may have changed the input slightly before it asked.
        for told in same or [t for t in mine if str(t.get("reason")) in message]:
            self._denied.remove(told)
            return told
        return None

    def _use(self, started: _Started) -> bool:
        """Return whether a verdict allowed this call; each verdict counts once."""
        mine = [key for key in self._allowed if key[0] == started.name]
        is_marked = not started.name.startswith(_MCP)
        for key in [key for key in mine if key == started.key] or (mine if is_marked else []):
            self._allowed.remove(key)
            return True
        return False

    def _read(self) -> None:
        for line in self._verdicts():
            try:
                told = dict_or_empty(json.loads(line))
            except ValueError:
                continue
            if "canary" in told:
                if told["canary"] == LIVE:
                    self._is_live = True
                else:
                    self._break(str(told["canary"]))
            elif told.get("reason"):
                self._denied.append(told)
            else:
                self._allowed.append(_key(told))

    def _break(self, why: str) -> None:
        self.breach = self.breach or not_live(why)


def _by_itself(started: _Started, call_id: str, message: str) -> list[GuardDenied]:
    """Return the denial of a call that the hook did not answer in time."""
    reason = next((why for why in (NOT_JUDGED, UNMARKED, ATTENDED) if why in message), None)
    if reason is None and message.startswith(_BLOCKED):
        reason = message.removeprefix(_BLOCKED)
    if reason is None:
        return []
    return [GuardDenied(tool=started.tool, tool_use_id=call_id, part=started.tool, reason=reason)]


def _denial(told: Json, call_id: str) -> GuardDenied:
    return GuardDenied(
        tool=text_or_none(told.get("tool")) or "unknown",
        tool_use_id=call_id,
        part=text_or_none(told.get("part")) or "",
        reason=text_or_none(told.get("reason")) or "",
    )


def _key(told: Json) -> tuple[str, str]:
    return str(told.get("name")), same_text(told.get("input"))


def same_text(arguments: Any) -> str:
    """Return equal, short texts for equal arguments."""
    if isinstance(arguments, dict):
        arguments = {key: value for key, value in arguments.items() if key != _ORDER}
    try:
        text = json.dumps(arguments, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        text = repr(type(arguments))
    return hashlib.sha256(text.encode()).hexdigest()
