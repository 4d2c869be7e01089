"""The refs that slots and landing keep in the user's repository, all below `refs/cuggino/`."""

from __future__ import annotations

import hashlib
import os
import re
from urllib.parse import quote_from_bytes, unquote

REFS = "refs/cuggino"
TRUNK = f"{REFS}/trunk"
"""The trunk: all landed work."""
TARGET = f"{REFS}/target"
"""The target of pull requests, as last fetched."""
CANDIDATES = f"{REFS}/candidates"
BASES = f"{REFS}/bases"
KEPT = f"{REFS}/kept"
ATTEMPTS = f"{REFS}/attempts"
"""Prefix of the refs of attempts that have lost, until the slots are cleaned."""
BRANCHES = f"{REFS}/branches"
"""Prefix of the refs of items that landed on their own branches."""
WORK = "work"
"""The folder of the work on items on other machines, in the shared repository."""
GIVEN = "given"
"""The folder of the commits that these machines start with, in the shared repository."""

_OF_ITEM = re.compile(
    rf"(?:{CANDIDATES}|{KEPT}|{ATTEMPTS}|{REFS}(?:/runs/[^/]+)?/(?:{WORK}|{GIVEN}))/([^/]+)"
)
_LONGEST = 160
"""Characters of a name in a ref; a ref is a file, whose name has at most 255 bytes."""


def candidate_ref(item: str) -> str:
    """Return the ref of the commit that an item offers for landing."""
    return f"{CANDIDATES}/{_quoted(item)}"


def base_ref(slot: int) -> str:
    """Return the ref that protects the base of a slot from git's garbage collection."""
    return f"{BASES}/{slot}"


def branch_ref(item: str) -> str:
    """Return the symbolic ref that names the branch of an item."""
    return f"{BRANCHES}/{_quoted(item)}"


def kept_ref(item: str, number: int) -> str:
    """Return a ref of work on an item that has not landed, numbered from 1."""
    return f"{kept_refs(item)}/{number}"


def kept_refs(item: str) -> str:
    """Return what the refs of an item's kept work begin with."""
    return f"{KEPT}/{_quoted(item)}"


def attempt_ref(attempt: str, number: int) -> str:
    """Return a ref of the work of an attempt that has lost, numbered from 1."""
    return f"{ATTEMPTS}/{_quoted(attempt)}/{number}"


def refs_of_run(run_id: str) -> str:
    """Return the folder of the refs of a run's tasks, in the shared repository.

    Other runs have tasks with the same names.
    """
    return f"{REFS}/runs/{run_id}"


def work_ref(item: str, *, within: str = REFS) -> str:
    """Return the ref of an item's work in the shared repository; one attempt at a time owns it."""
    return f"{within}/{WORK}/{_quoted(item)}"


def given_ref(item: str, what: str, *, within: str = REFS) -> str:
    """Return a ref of what an attempt on another machine begins with."""
    return f"{within}/{GIVEN}/{_quoted(item)}/{what}"


def item_of(ref: str) -> str:
    """Return the item of a candidate, or of other work; a very long name is shortened."""
    found = _OF_ITEM.match(ref)
    return unquote(found[1], errors="replace") if found else ""


def _quoted(item: str) -> str:
    """Return the name of an item as one component of a ref, unique for each name."""
    name = quote_from_bytes(os.fsencode(item), safe="").replace("~", "%7E")
    # git allows neither `..`, nor a dot or `.lock` at the end, nor a dot at the beginning.
    name = re.sub(r"^\.|\.(?=\.|$|lock$)", "%2E", name)
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(os.fsencode(item)).hexdigest()[:16]
    return f"{re.sub('%.?$', '', name[: _LONGEST - 20])}-{digest}"
