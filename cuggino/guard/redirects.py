"""Rules for redirections: files they write, and connections they open (AUT-214)."""

from __future__ import annotations

import re

from cuggino.guard.commands.assignments import assignment_reason
from cuggino.guard.commands.base import Site
from cuggino.guard.shell.tree import Redirect

WRITING = frozenset((">", ">>", ">|", "<>", "&>", "&>>", ">&"))
_DESCRIPTOR = re.compile(r"\d*-?")


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
        return f"'{redirect.text}' turns an input into an output: name the file that is written"
    if redirect.operator == "<&" or (redirect.operator == ">&" and _is_descriptor(text)):
        return ""
    if redirect.operator == "<":
        return ""
    if redirect.operator in WRITING:
        if target.value == "":
            return "The target of the redirection is empty: name a file"
        return site.write(target)
    return f"The redirection '{redirect.text}' is not understood: write it otherwise"


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
    return bool(text) and bool(_DESCRIPTOR.fullmatch(text))
