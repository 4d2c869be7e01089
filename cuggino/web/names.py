"""The names of runs and questions in URLs: what a person calls them, and the end of the id."""

from __future__ import annotations

from collections.abc import Iterable

from cuggino.storage import time_of
from cuggino.web.fragment import slug

_TAIL = 8
"""Digits of an id in a name: chance, unlike the first ones."""


def run_name(run_id: str, title: str = "") -> str:
    """Return the name of a run, such as `2026-11-28-login-page-1723a216`."""
    began = time_of(run_id)
    return run_id if began is None else _joined(f"{began.astimezone():%Y-%m-%d}", title, run_id)


def question_name(filename: str, title: str) -> str:
    """Return the name of a spec issue or finding, such as `which-format-1723a216`."""
    stem = filename.removesuffix(".md")
    return filename if time_of(stem) is None else _joined("", title, stem)


def id_named(name: str, ids: Iterable[str]) -> str:
    """Return the id with this name, whatever its title, or else the name; an id is its own name."""
    known = list(ids)
    tail = name.rpartition("-")[2]
    if name in known or len(tail) != _TAIL:
        return name
    ends = [one for one in known if one.removesuffix(".md").endswith(tail)]
    same_day = (one for one in ends if name.startswith(run_name(one)[:10]))
    return next(same_day, ends[0] if ends else name)


def _joined(day: str, title: str, id: str) -> str:
    return "-".join(filter(None, (day, slug(title, ""), id[-_TAIL:])))
