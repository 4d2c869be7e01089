"""The guard of an OpenCode session.

Each call is checked by the hook (`base.hook`), which our plugin runs from OpenCode's
`tool.execute.before` (see `opencode.plugin`), in sub-agents and for MCP too. As observed with the
real program:

- The project's own configuration (`opencode.json`, `.opencode` with its tools, agents and servers)
  could run in OpenCode's process, beyond any guard, so a guarded session runs without it
  (`OPENCODE_DISABLE_PROJECT_CONFIG`). Its AGENTS.md or CLAUDE.md is passed as an instruction.
  Plugins of the project are loaded regardless: with them no session starts.
- A `bunfig.toml` in the folder where the program starts also runs code in it, before everything
  else. So it starts in a private folder, with the project as an argument.
- The plugins of the user's own configuration are loaded before ours, and are trusted. The hook
  checks what they make of a call, which cannot change afterwards.
- Permissions are granted by our plugin alone, once its hook has answered correctly.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from cuggino.agents.base.guard import (
    Guard,
    ask_hook,
    find_bash,
    make_guard,
    try_out,
    with_variables,
)
from cuggino.agents.opencode.plugin import JUDGE_SECONDS
from cuggino.errors import GuardNotLive
from cuggino.guard import Policy

OWN_FILES = (".opencode", "opencode.json", "opencode.jsonc", "bunfig.toml")
"""Files that OpenCode would run in its next session if an agent could write them."""

_CONFIGS = ("opencode.json", "opencode.jsonc")
_RULES = ("AGENTS.md", "CLAUDE.md", "CONTEXT.md")
_UNGUARDED = ("BASH_ENV", "ENV", "BUN_OPTIONS", "NODE_OPTIONS", "OPENCODE_PURE")
"""Variables that would run something before each command or in the program, or disable our
plugin."""


def guard_of(policy: Policy, env: Mapping[str, str]) -> tuple[Guard, dict[str, str]]:
    """Return the guard of a session, and the environment it needs.

    Raises:
        GuardNotLive: the parser, or the shell it supports, is not installed.
    """
    policy = with_variables(policy, env)
    guard = make_guard(policy._replace(protected=(*policy.protected, *OWN_FILES)))
    held = {name: value for name, value in env.items() if name not in _UNGUARDED}
    chosen = {**env, "CLAUDE_CODE_SHELL": env.get("SHELL", "")}
    held |= {"SHELL": find_bash(chosen), "OPENCODE_DISABLE_PROJECT_CONFIG": "1"}
    return guard, held


def no_plugins(cwd: Path, env: Mapping[str, str]) -> None:
    """Check that the project has no plugin, which would run in OpenCode's process.

    Raises:
        GuardNotLive: it has one, or that is unknown.
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
        # With comments, or broken: the word alone counts.
        return "plugin" in text or "\\u" in text
    return isinstance(value, dict) and bool(value.get("plugin") or value.get("plugins"))


def hook_command(guard: Guard, outputs: str) -> list[str]:
    """Return the command line of the hook; `outputs` is the folder of long outputs."""
    return guard.hook_command("opencode", outputs=outputs)


def try_hook(guard: Guard) -> None:
    """Run the hook as the plugin does, and check that it both allows and denies.

    Raises:
        GuardNotLive: it does not answer, or answers wrongly.
    """
    command = hook_command(guard, guard.policy.project)
    try_out(lambda: [json.loads(ask_hook(command, {"canary": True}, seconds=JUDGE_SECONDS))])


def project_rules(cwd: Path) -> list[str]:
    """Return the files with the project's rules, which the program does not look for itself.

    They are those of the first name that exists, up to the folder of the repository.
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
