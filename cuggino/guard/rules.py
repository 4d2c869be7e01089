"""The permission rules of a policy, for tools that neither run commands nor write files.

They have the form of Claude Code's rules, such as `WebSearch`, `WebFetch(domain:example.com)`,
`mcp__server`, `mcp__server__tool` and `Read(//srv/**)`. Claude Code is given them and applies them
itself. This module applies them for agents without such rules, and for explanations.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from cuggino.guard.policy import OWN_SERVERS, Policy
from cuggino.guard.tools import FILE_TOOLS, HARMLESS, READERS, SHELLS
from cuggino.guard.verdict import Verdict, denied

_ASKED = frozenset({"WebFetch", "WebSearch", "Workflow", "Skill", "SlashCommand", "ExitPlanMode"})
"""Harmless tools that Claude Code does not run without a rule."""

_RULE = re.compile(r"([^()]+)(?:\((.*)\))?", re.DOTALL)
_SERVER = re.compile(r"(mcp__.+?)(__\*?)?")

_OUT_OF_SCOPE = (
    "Reading outside of the project is not allowed: what you need must be in the project, or the "
    "user has to allow its folder"
)


def with_rules(
    verdict: Verdict, policy: Policy, tool: str, tool_input: Mapping[str, object], cwd: str
) -> Verdict:
    """Return the verdict on a call, denied if no rule of the policy allows an allowed call."""
    if policy.rules is None or not verdict.is_allowed or tool in SHELLS | FILE_TOOLS:
        return verdict
    if tool in READERS:
        is_listed = _may_read(policy, policy.rules, tool, tool_input, cwd)
    elif (tool in HARMLESS and tool not in _ASKED) or tool.startswith(OWN_SERVERS):
        is_listed = True
    else:
        is_listed = any(_allows(rule, tool, tool_input) for rule in policy.rules)
    return verdict if is_listed else denied(tool, unlisted(tool))


def unlisted(tool: str) -> str:
    """Return the reason for denying a call that no rule allows."""
    if tool in READERS:
        return _OUT_OF_SCOPE
    return (
        f"Tool '{tool}' is not listed: do without it, or the user has to add it to allowedTools "
        "or permissions.allow"
    )


def _allows(rule: str, tool: str, tool_input: Mapping[str, object]) -> bool:
    name, given = _split(rule)
    if given is not None:
        from urllib.parse import urlsplit

        host = urlsplit(str(tool_input.get("url") or "")).hostname
        return name == tool and given == f"domain:{host}"
    server = _SERVER.fullmatch(name)
    return tool == name or (server is not None and tool.startswith(f"{server[1]}__"))


def _may_read(
    policy: Policy, rules: tuple[str, ...], tool: str, tool_input: Mapping[str, object], cwd: str
) -> bool:
    named = next((tool_input[key] for key in ("file_path", "path") if key in tool_input), "")
    path = os.path.realpath(os.path.join(cwd, str(named)))  # noqa: PTH118
    if path == policy.project or path.startswith(policy.project.rstrip("/") + "/"):
        return True
    for name, given in map(_split, rules):
        if name in (tool, "Read") and (given is None or fnmatchcase(path, _pattern(given, policy))):
            return True
    return False


def _pattern(given: str, policy: Policy) -> str:
    """Return a path pattern of Claude Code as an absolute one: only `//` begins at the root."""
    if given.startswith("//"):
        return given[1:]
    return f"{policy.project}/{given.removeprefix('./').lstrip('/')}"


def _split(rule: str) -> tuple[str, str | None]:
    found = _RULE.fullmatch(rule.strip())
    return (found[1], found[2]) if found else (rule, None)
