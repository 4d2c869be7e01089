"""Level `full`: what a script may set and define, besides the rules for its commands."""

from __future__ import annotations

import re

from cuggino.guard.commands.base import WRITING, Call, Rules, Site
from cuggino.guard.commands.builtins import test
from cuggino.guard.commands.files import PROGRAMS
from cuggino.guard.commands.judge import judge
from cuggino.guard.commands.table import KNOWN
from cuggino.guard.commands.variables import (
    arithmetic_reason,
    assignment_reason,
    calculated,
    calculates,
    hidden_reason,
    kept_reason,
    loosen,
    prefix_reason,
)
from cuggino.guard.profiles import BUILTINS
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


def redirect_reason(redirect: Redirect, site: Site) -> str:
    """Return why the redirection is denied, or ""."""
    target = redirect.target
    if redirect.descriptor.startswith("{"):
        reason = assignment_reason(redirect.descriptor.strip("{}"), None, site.policy)
        if reason:
            return reason
    if redirect.operator in ("<<", "<<-", "<<<"):
        return ""
    text = target.value if target.value is not None else target.prefix
    if re.match(r"/+dev/+(tcp|udp)(/|$)", text) or "/dev/tcp" in target.text.replace("//", "/"):
        return f"'{target.text}' opens a connection: nothing may be sent that way"
    if redirect.operator.startswith("<") and (reason := _turned(redirect, text, site)):
        return reason
    if redirect.operator == ">&" and _comes_from_input(text, site):
        return f"'{redirect.text}' turns an input into an output: name the file to write"
    if redirect.operator == "<&" or (redirect.operator == ">&" and _is_descriptor(text)):
        return ""
    if redirect.operator == "<":
        return ""
    if redirect.operator in WRITING:
        if target.value == "":
            return "The target of the redirection is empty: name a file"
        return site.write(target)
    return f"The redirection '{redirect.text}' is not understood: write it differently"


def _turned(redirect: Redirect, text: str, site: Site) -> str:
    """Return why an input must not replace an output: `/dev/stdout` would write into it."""
    onto = redirect.descriptor or "0"
    if onto.lstrip("0") in ("1", "2") and not (
        redirect.operator == "<&" and text in ("1", "2", "-", "1-", "2-")
    ):
        return f"'{redirect.text}' turns an output into an input: use '>' for what is written"
    if redirect.operator != "<&" or _comes_from_input(text, site):
        site.trail.inputs.add(onto.lstrip("0") or "0" if onto[0] != "{" else "{")
    return ""


def _comes_from_input(text: str, site: Site) -> bool:
    number = text.rstrip("-")
    if not number.isdigit():
        return False
    return (number.lstrip("0") or "0") in site.trail.inputs or (
        "{" in site.trail.inputs and int(number) >= 10
    )


def _is_descriptor(text: str) -> bool:
    return bool(text) and bool(re.fullmatch(r"\d*-?", text))


RULES = Rules(judge, _prefix, _redirect, _text, _loop, _function)
