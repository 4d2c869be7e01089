"""Policies as JSON for the hook."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cuggino.guard.policy import Policy

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
    rules=("WebSearch",),
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
    ("apart", None),
    ("apart", "../project"),
    ("variables", None),
    ("variables", ["CUGGINO_PLAN_FILE"]),
    ("allow_destructive", 1),
    ("allow_destructive", "yes"),
    ("confined", None),
    ("confined", 1),
    ("rules", "WebSearch"),
    ("rules", [0]),
)


def test_round_trip() -> None:
    """Lists become tuples again, and absent values stay absent."""
    assert GIVEN == Policy.from_json(GIVEN.to_json())
    open_one = GIVEN._replace(profiles=None, writable=None, mode="sync", level="full")
    assert open_one == Policy.from_json(open_one.to_json())


@pytest.mark.parametrize(("key", "value"), WRONG)
def test_invalid_values(key: str, value: object) -> None:
    """A policy of a later or broken version is refused, never widened."""
    with pytest.raises(ValueError, match=r"is no|no value|unknown"):
        Policy.from_json(json.dumps({**GIVEN._asdict(), key: value}))


@pytest.mark.parametrize("key", Policy._fields)
def test_exactly_these_fields(key: str) -> None:
    """Every field is required, and no other is accepted."""
    data = GIVEN._asdict()
    with pytest.raises(ValueError, match="no policy of this version"):
        Policy.from_json(json.dumps({**data, f"{key}_x": data[key]}))
    del data[key]
    with pytest.raises(ValueError, match="no policy of this version"):
        Policy.from_json(json.dumps(data))


def test_other_json_is_refused() -> None:
    """A list, a string and empty input are refused."""
    for text in ("[]", '"x"', "null", ""):
        with pytest.raises(ValueError, match=r"no policy|Expecting"):
            Policy.from_json(text)
