"""Refs of items."""

from __future__ import annotations

import subprocess

import pytest

from cuggino.stages.slots import TRUNK, base_ref, candidate_ref, item_of, kept_ref

NAMES = [
    "010-login.md",
    "a b.md",
    ".hidden",
    "..",
    "a..b",
    "a...b.",
    "x.lock",
    "x.lock.lock",
    "a.lockb",
    "-flag.md",
    "@",
    "@{1}",
    "HEAD",
    "~a^b:c?d*e[f\\g",
    "tab\tnewline\n",
    "größe.md",
    "%41.md",
    "A.md",
    "a/b.md",
    "x" * 255,
    "x" * 254 + "y",
    "ü" * 127,
    "ü" * 126 + "u",
    "\udcff.md",
]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_a_ref(name: str) -> None:
    """Any file name becomes a ref that git accepts and whose files fit into a file system."""
    for ref in (candidate_ref(name), kept_ref(name, 12)):
        subprocess.run(["git", "check-ref-format", ref], check=True, timeout=60)
        assert ref.count("/") == (3 if ref == candidate_ref(name) else 4)
        assert all(len(part) <= 200 for part in ref.split("/"))
        if len(name) < 100 and "\udcff" not in name:
            assert item_of(ref) == name


def test_names_do_not_collide() -> None:
    """Different items have different refs."""
    assert len({candidate_ref(name) for name in NAMES}) == len(NAMES)


def test_a_plain_name_stays_readable() -> None:
    """Usual names are unchanged in the ref."""
    assert candidate_ref("010-login.md") == "refs/cuggino/candidates/010-login.md"
    assert kept_ref("010-login.md", 2) == "refs/cuggino/kept/010-login.md/2"
    assert base_ref(3) == "refs/cuggino/bases/3"
    assert item_of(TRUNK) == ""
