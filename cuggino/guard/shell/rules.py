"""Rules for the nodes of a syntax tree: a node that shells read differently is refused."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from cuggino.guard.shell.tree import Refused
from cuggino.guard.shell.vocabulary import REDIRECTS

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_FUNCTION = r"[A-Za-z_][A-Za-z0-9_.:-]*"
_DESCRIPTOR = re.compile(r"\d{1,4}|\{[A-Za-z_][A-Za-z0-9_]*\}", re.ASCII)
_HARMLESS = r"[\w .,:;/@%+=-]*"
_LET = r"""(?a)let(?:[ \t]+(?:[\w+*/%=-]+|(["'])[\w+*/%= -]+\1))+"""


class Place(NamedTuple):
    """The position of a node in the tree."""

    depth: int = 0
    chain: int = 0
    is_quoted: bool = False
    is_parameter: bool = False
    is_arithmetic: bool = False
    end: int | None = None
    """End of the substitution around it."""
    is_body: bool = False


def slice_of(node: dict[str, Any], source: bytes) -> str:
    """Return the node as written, or "" for a node without a position."""
    if "Pos" not in node or "End" not in node:
        return ""
    return source[node["Pos"]["Offset"] : node["End"]["Offset"]].decode(errors="replace")


def check_node(node: dict[str, Any], kind: str, place: Place, source: bytes) -> None:
    """Raise `Refused` when a rule forbids the node, regardless of its context."""
    reason = ""
    if kind == "Lit" or kind == "SglQuoted":
        reason = _literal(node, kind, place)
    elif kind == "ParamExp":
        reason = _parameter(node)
    elif kind == "LetClause" and not re.fullmatch(_LET, slice_of(node, source)):
        reason = "`let` is judged in its plainest form only; use `$(( ))`."
    elif kind == "FuncDecl" and not re.fullmatch(_FUNCTION, node.get("Name", {}).get("Value", "")):
        reason = "The name of a function is not a plain name; choose another."
    elif kind == "WordIter" and not _is_named(node):
        reason = "The variable of a loop is not a plain name; choose another."
    elif "Patterns" in node and any(slice_of(one, source) == "esac" for one in node["Patterns"]):
        reason = "A pattern is the word that ends `case`; quote it."
    elif "Hash" in node:
        reason = _comment(node, source)
    elif kind == "CmdSubst" and _is_escaped(node, source):
        reason = "Backticks with backslashes in them are read differently; use `$( )`."
    elif kind in ("ArithmExp", "ArithmCmd", "CStyleLoop"):
        reason = _expression(slice_of(node, source))
    elif kind == "TimeClause":
        reason = _time(node)
    elif kind == "BinaryCmd" and node["Op"] in ("|", "|&") and _is_time(node["Y"]):
        reason = "`time` in the middle of a pipeline is not a keyword; move it to the front."
    elif "OpPos" in node and "Word" in node and not kind:
        reason = _redirect(node, source)
    elif "Index" in node and (reason := _expression(slice_of(node["Index"], source))):
        pass
    elif (
        not kind and _is_assignment(node) and not _NAME.fullmatch(node["Name"].get("Value", ""))
    ):  # R8
        reason = "The target of an assignment is not a plain variable name; choose another."
    if reason:
        raise Refused(reason, slice_of(node, source))


def _expression(text: str) -> str:
    """Refuse text in which bash finds the end of an expression before it parses the inside."""
    if re.search(r"[\n\\]|\besac\b", text):
        return "An expression is too complex to be judged; compute its parts first."
    return ""


def _comment(node: dict[str, Any], source: bytes) -> str:
    """Refuse a comment that continues in the next line, or that bash reads as a word (R3)."""
    if re.search(r"\\\s*\Z|\n", node.get("Text", "")):
        return "A comment ends in a backslash, which shells read differently; remove it."
    start = node["Hash"]["Offset"]
    before = source[max(0, start - 2) : start]
    if start and (before[-1] not in b" \t\n;&|(" or before.startswith(b"\\")):
        return "A comment directly follows another character; put a space before it."
    return ""


def _is_time(statement: dict[str, Any]) -> bool:
    return bool(statement.get("Cmd", {}).get("Type") == "TimeClause")


def _time(node: dict[str, Any]) -> str:
    """Refuse `time --`: an option for bash, a command for the parser."""
    words = node.get("Stmt", {}).get("Cmd", {}).get("Args", ())
    if words and words[0].get("Parts", [{}])[0].get("Value", "").startswith("-"):
        return "`time` has an option that is not judged; leave it out."
    return ""


def _is_escaped(node: dict[str, Any], source: bytes) -> bool:
    """Return whether backticks contain an escaped backslash or backtick."""
    return bool(node.get("Backquotes")) and bool(re.search(r"\\[\\`]", slice_of(node, source)))


def _is_assignment(node: dict[str, Any]) -> bool:
    return "Name" in node and not node.keys().isdisjoint(("Value", "Array", "Naked", "Index"))


def _is_named(node: dict[str, Any]) -> bool:
    return _NAME.fullmatch(node["Name"].get("Value", "")) is not None


def _literal(node: dict[str, Any], kind: str, place: Place) -> str:
    """Refuse quotes that bash and the parser read differently."""
    value = node.get("Value", "")
    if kind == "SglQuoted":
        if place.is_parameter and place.is_quoted and not re.fullmatch(_HARMLESS, value):  # R1
            return _QUOTES_IN_PARAMETER
        if place.is_arithmetic and (node.get("Dollar") or re.search(r"[$`\\]", value)):
            return "Quotes in an expression hide what runs; remove them."
    elif place.is_parameter and re.search(r"['\"`]|[<>]\(", value):  # R1, R2
        return _QUOTES_IN_PARAMETER
    elif not place.is_quoted and re.search(r"(?<!\\)[<>]\(", value):
        return "`<(` is in a place where shells read it differently; run it first."
    elif place.is_arithmetic and re.search(r"['\"`\\]", value):
        return "Quotes in an expression hide what runs; remove them."
    return ""


_QUOTES_IN_PARAMETER = (
    "Quotes, backticks or `<(` inside `${...}` are read differently by shells; use a variable of"
    " its own for the text."
)


def _parameter(node: dict[str, Any]) -> str:
    """Refuse forms of `${...}` that run the value of a variable (R7)."""
    if node.get("Excl") and not node.get("Names"):
        index = node.get("Index", {}).get("Parts", [{}])
        if len(index) != 1 or index[0].get("Value") not in ("@", "*"):
            return "`${!x}` refers to an unknown variable; name the variable itself."
    if node.get("Exp", {}).get("Op") == "@":
        return "`${x@...}` can run what the variable holds; use `${x}`."
    return ""


def _redirect(node: dict[str, Any], source: bytes) -> str:
    """Refuse redirections that bash does not have, and invalid descriptors."""
    if node.get("Op") not in REDIRECTS:
        return "This redirection is not judged; use `>`, `>>` or `<`."
    if "N" in node and not _DESCRIPTOR.fullmatch(node["N"]["Value"]):
        return "This redirection has no plain descriptor; use a number."
    if node["Op"] in ("<&", ">&") and re.match(r"-.", slice_of(node["Word"], source), re.DOTALL):
        return "A command directly follows `<&-`; put a space after it."
    return ""
