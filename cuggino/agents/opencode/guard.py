"""How a session of OpenCode is held to its policy, and the watch over its stream.

Each call is judged by `opencode.judge`, which our plugin runs from OpenCode's `tool.execute.before`
(see `opencode.plugin`); that holds in sub-agents and for MCP. As seen on the real program:

- What the project brings along (`opencode.json`, `.opencode` with its tools, agents and servers)
  could run in OpenCode's own process, where nothing could hold it: a guarded session is run
  without it (`OPENCODE_DISABLE_PROJECT_CONFIG`). Its AGENTS.md or CLAUDE.md is given as an
  instruction. Plugins of the project are loaded in spite of that: with them no session is begun.
- A `bunfig.toml` in the folder where the program is started runs code in it as well, before all
  else: it is started in a private folder, and told where to work.
- The plugins of the user's own configuration are loaded, in front of ours, and are trusted. What
  they make of a call is what is judged, and cannot be changed behind it.
- No permission is granted but by our plugin, once its judge has answered rightly.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cuggino.agents.guard import Guard, find_bash, make_guard, not_live, with_variables
from cuggino.agents.json_values import Json, text_or_none
from cuggino.agents.opencode import judge as opencode_judge
from cuggino.agents.opencode.plugin import JUDGE_SECONDS
from cuggino.errors import GuardNotLive
from cuggino.events import GuardDenied
from cuggino.security.hook import LIVE
from cuggino.security.policy import Policy

OWN_FILES = (".opencode", "opencode.json", "opencode.jsonc", "bunfig.toml")
"""What OpenCode would run in its next session, if an agent could write it."""

_CONFIGS = ("opencode.json", "opencode.jsonc")
_RULES = ("AGENTS.md", "CLAUDE.md", "CONTEXT.md")
_UNGUARDED = ("BASH_ENV", "ENV", "BUN_OPTIONS", "NODE_OPTIONS", "OPENCODE_PURE")
"""Variables that would run something in front of each command or in the program, or leave out
our plugin."""


def guard_of(policy: Policy, env: Mapping[str, str]) -> tuple[Guard, dict[str, str]]:
    """What holds a session to the policy, and the environment that goes with it.

    Raises:
        GuardNotLive: the parser, or the shell that it understands, is not installed.
    """
    policy = with_variables(policy, env)
    guard = make_guard(policy._replace(protected=(*policy.protected, *OWN_FILES)))
    held = {name: value for name, value in env.items() if name not in _UNGUARDED}
    chosen = {**env, "CLAUDE_CODE_SHELL": env.get("SHELL", "")}
    held |= {"SHELL": find_bash(chosen), "OPENCODE_DISABLE_PROJECT_CONFIG": "1"}
    return guard, held


def no_plugins(cwd: Path, env: Mapping[str, str]) -> None:
    """See that the project brings no plugin along, which would run in OpenCode's process.

    Raises:
        GuardNotLive: it does, or it cannot be told.
    """
    here = Path(os.path.realpath(cwd))
    for folder in (here, *here.parents):
        if str(folder) == os.path.realpath(env.get("HOME") or "/"):
            continue  # the user's own
        for place in (folder, folder / ".opencode"):
            found = [place / name for name in _CONFIGS if _names_plugins(place / name)]
            if place.name == ".opencode":
                found += [place / name for name in ("plugin", "plugins") if _holds(place / name)]
            if found:
                raise GuardNotLive(
                    f"{found[0]} brings a plugin, which would run beside the guard",
                    hint='move it to your own configuration of OpenCode, or set "guard": "off"',
                )


def _holds(folder: Path) -> bool:
    try:
        return any(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _names_plugins(file: Path) -> bool:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        # With comments, or broken: then a word that looks like it is enough.
        return "plugin" in text or "\\u" in text
    return isinstance(value, dict) and bool(value.get("plugin") or value.get("plugins"))


def judge_words(guard: Guard) -> list[str]:
    """The command line of the judge."""
    words = [guard.python, "-I", "-S", opencode_judge.__file__]
    return [*words, guard.policy.to_json(), guard.shfmt, guard.token]


def try_out(guard: Guard) -> None:
    """Run the judge as the plugin will, and see it say yes and no.

    Raises:
        GuardNotLive: it does not answer, or answers wrongly.
    """
    try:
        said = subprocess.run(
            judge_words(guard),
            input=b'{"canary": true}',
            capture_output=True,
            timeout=JUDGE_SECONDS,
            check=True,
        ).stdout
        canary = json.loads(said)["cuggino"]["canary"]
    except (OSError, subprocess.SubprocessError, ValueError, LookupError) as error:
        raise not_live(f"its program could not be run: {error}") from error
    if canary != LIVE:
        raise not_live(str(canary))


def project_rules(cwd: Path) -> list[str]:
    """The files with the project's rules, which the program does not look for itself.

    As it would: those of the first name that is found, up to the folder of the repository.
    """
    here = Path(os.path.realpath(cwd))
    folders = [here]
    for folder in (here, *here.parents):
        if (folder / ".git").exists():
            folders = [path for path in (here, *here.parents) if path.is_relative_to(folder)]
            break
    for name in _RULES:
        if found := [str(folder / name) for folder in folders if (folder / name).is_file()]:
            return found
    return []


class OpenCodeWatch:
    """The fold over what our plugin says of its judge.

    `breach` is set when the session must end: the judge did not sing before the session began, or
    a call ran without its verdict.
    """

    def __init__(self) -> None:
        self.breach: GuardNotLive | None = None
        self._is_live = False
        self._verdicts: dict[str, bool] = {}
        self._told: set[str] = set()

    def canary(self, said: Any) -> None:
        """What the judge sang."""
        if said == LIVE and not self.breach:
            self._is_live = True
        else:
            self._break(str(said))

    def begins(self) -> None:
        """The session works."""
        if not self._is_live:
            self._break("the agent's program did not load the guard's plugin")

    def verdict(self, own: Json) -> list[GuardDenied]:
        """The verdict on a call: the denial, once for each call."""
        call = text_or_none(own.get("tool_use_id")) or ""
        is_allowed = own.get("decision") == "allow"
        self._verdicts[call] = is_allowed and self._verdicts.get(call, True)
        if is_allowed or call in self._told:
            return []
        self._told.add(call)
        tool, part = text_or_none(own.get("tool")), text_or_none(own.get("part"))
        reason = text_or_none(own.get("reason")) or ""
        return [GuardDenied(tool=tool or "", tool_use_id=call, part=part or "", reason=reason)]

    def ran(self, call: str, tool: str) -> None:
        """A call was carried out."""
        if self._verdicts.get(call) is not True:
            how = "in spite of" if call in self._verdicts else "without"
            self._break(f"{tool} was used {how} its verdict")

    def _break(self, why: str) -> None:
        self.breach = self.breach or not_live(why)
