"""A policy is handed to the hook as JSON, and nothing in it is guessed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cuggino.security.policy import Policy

GIVEN = Policy(
    "/project",
    level="roles",
    role="planning",
    profiles=("node",),
    extra_commands=("make",),
    pkill_targets=("vite",),
    read_only=(".specs",),
    writable=("docs",),
    granted=("plan.md",),
    scoped_reads=True,
    variables=("CUGGINO_PLAN_FILE=plan.md",),
)
WRONG: tuple[tuple[str, Any], ...] = (
    ("level", "none"),
    ("level", None),
    ("mode", "any"),
    ("mode", None),
    ("project", None),
    ("role", 1),
    ("profiles", "node"),
    ("profiles", [1]),
    ("extra_commands", None),
    ("extra_commands", "rm"),
    ("pkill_targets", None),
    ("pkill_targets", {"vite": 1}),
    ("protected", None),
    ("protected", ".git"),
    ("read_only", None),
    ("writable", "docs"),
    ("writable", [None]),
    ("granted", None),
    ("granted", "plan.md"),
    ("variables", None),
    ("variables", ["CUGGINO_PLAN_FILE"]),
    ("allow_destructive", 1),
    ("allow_destructive", "yes"),
    ("scoped_reads", None),
    ("scoped_reads", 0),
)


def test_it_comes_back_as_it_was() -> None:
    """Lists are tuples again, and what is open stays open."""
    assert GIVEN == Policy.from_json(GIVEN.to_json())
    open_one = GIVEN._replace(profiles=None, writable=None, mode="sync", level="full")
    assert open_one == Policy.from_json(open_one.to_json())


@pytest.mark.parametrize(("key", "value"), WRONG)
def test_a_value_of_another_kind_is_refused(key: str, value: object) -> None:
    """What a later or a broken version writes is no policy, and never a wider one."""
    with pytest.raises(ValueError, match=r"no list|no text|no value|unknown|neither"):
        Policy.from_json(json.dumps({**GIVEN._asdict(), key: value}))


@pytest.mark.parametrize("key", Policy._fields)
def test_nothing_may_be_missing_or_more(key: str) -> None:
    """Each field stands there, under its name."""
    data = GIVEN._asdict()
    with pytest.raises(ValueError, match="no policy of this version"):
        Policy.from_json(json.dumps({**data, f"{key}_x": data[key]}))
    del data[key]
    with pytest.raises(ValueError, match="no policy of this version"):
        Policy.from_json(json.dumps(data))


def test_what_is_no_object_is_refused() -> None:
    """Neither a list nor a text nor nothing at all."""
    for text in ("[]", '"x"', "null", ""):
        with pytest.raises(ValueError, match=r"no policy|Expecting"):
            Policy.from_json(text)
