"""Tables of event tags, written as text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuggino import events

ROOT = Path(events.__file__).parents[2]
TAGS = {*events.event_types()}
NAMES = {
    base.__name__
    for kind in events.event_types().values()
    for base in kind.__mro__
    if issubclass(base, events.Event)
}


def tables() -> Iterator[tuple[str, set[str]]]:
    """Yield the place and the texts of each collection with several tags of events.

    The names that a package exports are no tags, and are tested with the packages.
    """
    for path in sorted(ROOT.glob("cuggino*/**/*.py")):
        if path.name == "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            match node:
                case ast.Set(elts=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
                    pass
                case ast.Dict(keys=keys):
                    parts = [key for key in keys if key is not None]
                case _:
                    continue
            texts = {
                part.value
                for part in parts
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            }
            if len(texts & TAGS) > 1:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", texts


@pytest.mark.real_agent
def test_tables_of_tags_name_events() -> None:
    """A tag in a table is that of an event, or the name of a base of events."""
    found = list(tables())
    assert len(found) > 10
    assert {} == {place: texts - NAMES for place, texts in found if not texts <= NAMES}
