"""The guard around a session of the Gemini CLI: its hook, and rules that need the hook's word.

Gemini asks `gemini.hook` before each tool call, sub-agents and MCP included (`BeforeTool`). As seen
on the real program it runs the call when the hook is killed, too slow, gone, switched off by the
project's settings, or ends with an error. So rules of the highest rank (`--admin-policy`), which
no settings of the project or the user outrank, let a tool that changes something run only when the
token of the session stands in its input, where the hook puts it and nobody else knows it:

- commands and files: no hook, no mark, not run.
- reading, planning and the like need no mark, unless the policy bounds what may be read.
- tools of MCP servers cannot be marked, as the server would get the mark. They are judged by the
  hook, whose own failures are a no; should its process be killed from outside, the call runs and
  the session ends, because a call succeeded without a verdict.
- tools that are not known do not run.

Rules of an administrator (`/etc/gemini-cli/policies`) would replace ours, so a guarded session does
not start there. The project's `.env` is not read, and its `.gemini` is protected.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuggino.agents.gemini import hook as gemini_hook
from cuggino.agents.gemini.home import Home
from cuggino.agents.gemini.tools import ASKING, HARMLESS, MARK, READERS, WRITERS, gemini_names
from cuggino.agents.guard import NOT_JUDGED, Guard, find_bash, make_guard, not_live, with_variables
from cuggino.errors import GuardNotLive
from cuggino.security.hook import LIVE
from cuggino.security.policy import Policy

TIMEOUT_MS = 20_000
"""That the program gives the hook, which ends itself before."""

UNMARKED = "The guard has not let this call pass, so it was not run."
ATTENDED = "This session may read only: nobody is there to be asked. Say so in your report."

_ADMIN = {"darwin": "/Library/Application Support/GeminiCli/policies"}
_ADMIN_ELSEWHERE = "/etc/gemini-cli/policies"
_PINNED = (
    *("BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "NODE_OPTIONS"),
    *("LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES"),
)
"""Variables by which something could be run in or around the hook and the commands."""

_MCP_RULE = re.compile(r"mcp__(.+?)(?:__(.+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionGuard:
    """What holds one session to its policy, in files of its folder."""

    script: Path
    """What the program runs."""
    log: Path
    """Where the hook writes its verdicts, one JSON object a line."""
    marked: tuple[str, ...]
    """The tools that need the mark."""
    token: str

    def hooks(self) -> dict[str, Any]:
        """The settings that make the program ask; their name is known to this session alone."""
        entry = {
            "type": "command",
            "name": f"cuggino-{self.token}",
            "command": f"/bin/sh {shlex.quote(str(self.script))}",
            "timeout": TIMEOUT_MS,
        }
        return {event: [{"hooks": [entry]}] for event in ("SessionStart", "BeforeTool")}

    def try_out(self, env: Mapping[str, str], project: str) -> None:
        """Run the hook as the program will, and see it say yes and no.

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
    """Write the guard into the session's home; gives it and the environment that goes with it.

    No tool of the session may write where it is: whoever could, would make the policy.

    Raises:
        GuardNotLive: something that it needs is missing, or an administrator's rules are in force.
    """
    if rules := _admin_rules():
        raise GuardNotLive(
            f"the Gemini CLI cannot be guarded beside the rules in {rules}",
            hint='use another agent, or turn the guard off with "guard": "off"',
        )
    policy = policy._replace(protected=(*policy.protected, ".gemini", home.own.name))
    guard = make_guard(with_variables(policy, env))
    marked = (*WRITERS, *READERS) if policy.scoped_reads else WRITERS
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
        # The program takes the first on PATH.
        held["PATH"] = f"{bash.parent}{os.pathsep}{env.get('PATH', '')}"
    return SessionGuard(script=script, log=log, marked=marked, token=token), held


def _script(guard: Guard, orders: Path) -> str:
    """Run the hook; unless it succeeds and prints an object, say no."""
    hook = shlex.join([guard.python, "-I", "-S", gemini_hook.__file__, str(orders)])
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
    """The rules of the session, as the program reads them.

    Without `unattended` the session reads, and uses `allowed_tools` (Claude Code's names).
    """
    made = [_rule(999, ASKING, "deny", message="Nobody is there to be asked.")]
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
