"""Variables whose values are known before anything runs, such as `$CUGGINO_PLAN_FILE`.

They are those that the agent's program was started with, and that no command may change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PLAIN_KEYS = frozenset({"Type", "Pos", "End", "Dollar", "Rbrace", "Short", "Param"})


def put_in(tree: Any, known: Mapping[str, str]) -> Any:
    """The syntax tree of shfmt, with the values of `$NAME` and `${NAME}` in their places.

    A value takes its place as a quoted text, so only one that would stay one word when it is not
    quoted is put in: no blanks, no patterns.
    """
    plain = {name: value for name, value in known.items() if is_plain(value)}
    return _put(tree, plain) if plain else tree


def is_plain(value: str) -> bool:
    """Whether the value is the same word with quotes and without."""
    return bool(value) and all(char.isalnum() or char in "/._-+:@%," for char in value)


def _put(node: Any, known: Mapping[str, str], *, is_quoted: bool = False) -> Any:
    if isinstance(node, list):
        return [_put(item, known, is_quoted=is_quoted) for item in node]
    if not isinstance(node, dict):
        return node
    kind = node.get("Type")
    if kind == "ParamExp" and node.keys() <= _PLAIN_KEYS:
        value = known.get(node["Param"].get("Value", ""))
        if value is None:
            return node
        place = {key: node[key] for key in ("Pos", "End")}
        return {"Type": "Lit" if is_quoted else "SglQuoted", **place, "Value": value}
    inside = kind == "DblQuoted"
    return {key: _put(value, known, is_quoted=inside) for key, value in node.items()}
