"""Refusals before a tree is built: texts that bash and the parser read differently.

R1 to R9 and the rules without a number are differences that were found by comparing both on random
scripts (`python -m tests.fuzz_shell`). bash 5.2 parses a substitution, prints it, and parses the
printed text when it runs it; some of the differences come from the printed form.
"""

from __future__ import annotations

import re
from typing import Any

from cuggino.guard.shell.here_documents import (
    HereDocument,
    check_here_documents,
    may_hold_them,
)
from cuggino.guard.shell.rules import Place, check_node, slice_of
from cuggino.guard.shell.tree import Refused
from cuggino.guard.shell.vocabulary import (
    CHAINING,
    COMMANDS,
    COMPARING,
    KEYS,
    NAMED,
    NESTING,
    POSITIONS,
    TYPES,
)

LONGEST_TEXT = 64 * 1024
MOST_COMMANDS = 500
DEEPEST = 40
LONGEST_CHAIN = 100
"""The most commands joined by `&&`, `||` and `|`, and the most operands in one expression."""

# Invisible letters outside Unicode's control, format and line separator categories.
_BLANK_LETTERS = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"
_JOINER = "\u200d"


def check_text(text: str) -> None:
    """Raise `Refused` for text that is too long or has invisible characters."""
    if len(text) > LONGEST_TEXT or len(text.encode(errors="replace")) > LONGEST_TEXT:
        raise Refused(
            f"The command is longer than {LONGEST_TEXT // 1024} KiB; write long text with the file"
            " tools instead."
        )
    place = _invisible(text)
    if place is not None:
        raise Refused(
            f"It has the invisible or control character U+{ord(text[place]):04X}; leave it out.",
            text[max(0, place - 20) : place],
        )  # R9
    if re.search(r"(?<!\\)(?:\\\\)*\\\n*\Z", text):
        raise Refused("Unbalanced quotes: it ends in a backslash; remove it.", "\\")
    if "$\\\n" in text:
        raise Refused(
            "A line ends in `$\\`, which shells read differently; join the two lines.", "$\\"
        )  # R6


def _invisible(text: str) -> int | None:
    """Return the position of an invisible character, except one that joins emoji."""
    if found := re.search("[\x00-\x08\x0b-\x1f\x7f]", text):
        return found.start()
    if text.isascii():
        return None
    import unicodedata

    for index, sign in enumerate(text):
        if sign.isascii():
            continue
        is_format = unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        if (is_format or sign in _BLANK_LETTERS) and not _joins_emoji(text, index):
            return index
    return None


def _joins_emoji(text: str, index: int) -> bool:
    around = (text[index - 1 : index], text[index + 1 : index + 2])
    return text[index] == _JOINER and all("\u2190" <= sign <= "\U0001fbff" for sign in around)


def check_tree(tree: dict[str, Any], source: bytes) -> bool:
    """Raise `Refused` for a tree with a node that is unknown or read differently by shells.

    Visits every node once, without recursion. Returns whether an expression depends on variables.
    """
    evaluates = False
    left: list[tuple[Any, Place]] = [(tree, Place())]
    commands = 0
    documents: list[HereDocument] = []
    allowed: set[int] = set()
    while left:
        node, place = left.pop()
        if isinstance(node, list):
            left += [(item, place) for item in node]
            continue
        kind = node.get("Type", "")
        _known(node, kind, source)
        commands += kind in COMMANDS
        place = _inside(node, kind, place, source)
        if commands > MOST_COMMANDS:
            raise Refused(f"There are more than {MOST_COMMANDS} commands; split them.")
        if place.depth > DEEPEST or place.chain > LONGEST_CHAIN:
            raise Refused("It is nested too deeply; split it into several commands.")
        check_node(node, kind, place, source)
        evaluates = evaluates or _evaluates(node, kind, place)
        if kind in ("CmdSubst", "ProcSubst"):
            holders = may_hold_them(node.get("Stmts", []))
            allowed.update(id(redirect) for one in holders for redirect in one.get("Redirs", ()))
        elif node.get("Op") in ("<<", "<<-") and "Word" in node:
            if place.end is not None and id(node) not in allowed:
                raise Refused(
                    "A here-document in a substitution is part of a list or a compound command; run"
                    " it before and put its result into a variable.",
                    slice_of(node, source),
                )
            documents.append(HereDocument(node, place.end))
        for key, value in node.items():
            if key in POSITIONS or not isinstance(value, (dict, list)):
                continue
            if key == "Hdoc":
                body = place._replace(is_quoted=True, is_body=True)
                left.append((value, body))
            elif key in ("Index", "Slice"):
                left.append((value, place._replace(is_arithmetic=True)))
            elif key == "Else":
                left.append((value, place._replace(chain=place.chain + 1)))
            else:
                left.append((value, place))
    check_here_documents(documents, source)
    return evaluates


def _evaluates(node: dict[str, Any], kind: str, place: Place) -> bool:
    """Return whether bash evaluates text as an expression here."""
    if place.is_arithmetic and kind == "Lit":
        return re.search(r"[A-Za-z_]", node["Value"]) is not None
    return (place.is_arithmetic and kind in ("ParamExp", "DblQuoted")) or node.get(
        "Op"
    ) in COMPARING


def _known(node: dict[str, Any], kind: str, source: bytes) -> None:
    """Refuse an unknown node, or a node with an unknown field."""
    strange = "" if not kind or kind in TYPES else kind
    strange = strange or next((key for key in node if key not in KEYS), "")
    if strange:
        reason = f"`{strange}` of a shell is not judged; simplify it."
        raise Refused(NAMED.get(strange, reason), slice_of(node, source))


def _inside(node: dict[str, Any], kind: str, place: Place, source: bytes) -> Place:
    """Return the place of the nodes inside this node."""
    if kind in NESTING:
        place = place._replace(depth=place.depth + 1)
    elif kind in CHAINING:
        place = place._replace(chain=place.chain + 1)
    if kind == "DblQuoted":
        return place._replace(is_quoted=True)
    if kind == "ParamExp":
        return place._replace(is_parameter=True)
    if kind in ("ArithmExp", "ArithmCmd", "CStyleLoop", "LetClause"):
        return place._replace(is_arithmetic=True)
    if kind in ("CmdSubst", "ProcSubst"):
        if place.is_body and "\n" in slice_of(node, source):  # R5
            raise Refused(
                "A substitution in a here-document spans several lines; run it first and store"
                " its result in a variable.",
                slice_of(node, source),
            )
        end = node["End"]["Offset"]
        return Place(place.depth, place.chain, end=end, is_body=place.is_body)
    return place
