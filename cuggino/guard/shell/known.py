"""Variables with values known before anything runs, such as `$CUGGINO_PLAN_FILE`.

The agent's program was started with them, and no command may change them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PLAIN_KEYS = frozenset({"Type", "Pos", "End", "Dollar", "Rbrace", "Short", "Param"})


def put_in(tree: Any, known: Mapping[str, str]) -> Any:
    """Return shfmt's syntax tree with the values of `$NAME` and `${NAME}` substituted.

    A value is inserted as quoted text, so only a value that stays one word without quotes is
    substituted: no blanks, no patterns.
    """
    plain = {name: value for name, value in known.items() if is_plain(value)}
    return _put(tree, plain) if plain else tree


def is_plain(value: str) -> bool:
    """Return whether the value is the same word with and without quotes."""
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
