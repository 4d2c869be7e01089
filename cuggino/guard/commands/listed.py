"""Level `full`: what a script may set and define, besides the rules for its commands."""

from __future__ import annotations

import re

from cuggino.guard.commands.arithmetic import calculated, calculates, kept_reason
from cuggino.guard.commands.assignments import assignment_reason
from cuggino.guard.commands.base import Call, Rules, Site
from cuggino.guard.commands.builtins import arithmetic_reason, test
from cuggino.guard.commands.files import PROGRAMS
from cuggino.guard.commands.judge import judge
from cuggino.guard.commands.prefixes import hidden_reason, loosen, prefix_reason
from cuggino.guard.commands.table import KNOWN
from cuggino.guard.profiles import BUILTINS
from cuggino.guard.redirects import redirect_reason
from cuggino.guard.shell.tree import Command, Loop, Redirect, Statement

_NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)


def _text(statement: Statement, site: Site) -> str:
    site.trail.calculates |= calculates(statement.text)
    return calculated(statement.text, site.policy)


def _prefix(node: Command, site: Site) -> str:
    kept = (word for assignment in node.assignments for word in assignment.values)
    if reason := prefix_reason(node, site.policy, site.trail) or kept_reason(kept, site):
        return reason
    if node.kind == "test":
        return test(Call("[[", node.words, site))
    return "" if node.kind in ("call", "declare") else arithmetic_reason(node.words)


def _redirect(redirect: Redirect, site: Site) -> str:
    reason = redirect_reason(redirect, site)
    if redirect.body is not None and redirect.body.value is None:
        return reason or calculated(redirect.body.text, site.policy)
    return reason or (kept_reason((redirect.target,), site) if redirect.operator == "<<<" else "")


def _loop(node: Loop, site: Site) -> str:
    if node.kind == "arithmetic":
        return arithmetic_reason(node.words)
    if not node.name:
        return ""
    reason = assignment_reason(node.name, None, site.policy)
    loosen(node.name, node.words, site.trail)
    return reason or kept_reason(node.words, site) or hidden_reason(node.words)


def _function(name: str, site: Site) -> str:
    """Return why a function may not have the name: it means something else to the guard."""
    if not _NAME.fullmatch(name):
        return f"A function must have a plain name, not '{name}'"
    if (
        name in site.listed
        or name in KNOWN
        or name in PROGRAMS
        or name in BUILTINS
        or _is_called_by_shells(name)
    ):
        return f"A function must not take the name '{name}', which means something else: rename it"
    return ""


def _is_called_by_shells(name: str) -> bool:
    return name.startswith(("TRAP", "command_not_found", "BASH_", "chpwd", "precmd", "preexec"))


RULES = Rules(judge, _prefix, _redirect, _text, _loop, _function)
