"""`.lopen/loop-config.json` with random contents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cuggino.config.file import PLAN_BUILD_CONFIG_FILE
from cuggino.config.plan_build import (
    PlanBuildConfig,
    change_plan_build_config,
    load_plan_build_config,
)
from cuggino.errors import ConfigError

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=6),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=6), below),
    max_leaves=8,
)
KEYS = ("model", "stream", "logLevel", "verify", "verify.build", "verifyModel", "protectedBranches")
LAYER = st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), JSON, max_size=5)


def project(made: pytest.TempPathFactory, content: bytes) -> Path:
    """Return a project with this file."""
    root = made.mktemp("project")
    (root / PLAN_BUILD_CONFIG_FILE).parent.mkdir()
    (root / PLAN_BUILD_CONFIG_FILE).write_bytes(content)
    return root


@given(st.binary(max_size=40) | (LAYER | JSON).map(lambda raw: json.dumps(raw).encode()))
def test_any_file_can_be_read(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Any content gives settings, or an error if the file was given explicitly."""
    root = project(tmp_path_factory, content)
    loaded = load_plan_build_config(root)
    assert isinstance(loaded.config, PlanBuildConfig)
    try:
        named = load_plan_build_config(root, custom=Path(PLAN_BUILD_CONFIG_FILE))
    except ConfigError:
        assert loaded.warnings or not content.decode("utf-8-sig").strip()
    else:
        assert loaded.config == named.config.model_copy(update={"origins": loaded.config.origins})


@given(LAYER, st.sampled_from(["model", "verify.build"]), st.sampled_from(["a", "ä b"]))
def test_a_change_keeps_unknown_keys(
    tmp_path_factory: pytest.TempPathFactory, raw: dict[str, Any], key: str, value: str
) -> None:
    """After a change its key has the value, and every other key is unchanged."""
    root = project(tmp_path_factory, json.dumps(raw).encode())
    change_plan_build_config(root / PLAN_BUILD_CONFIG_FILE, {key: value})
    after = json.loads((root / PLAN_BUILD_CONFIG_FILE).read_text(encoding="utf-8"))
    changed = {key, "verify"} if key == "verify.build" else {key}
    expected = {name: old for name, old in raw.items() if name not in changed}
    assert expected == {name: new for name, new in after.items() if name not in changed}
    loaded = load_plan_build_config(root)
    found = {"model": loaded.config.model, "verify.build": loaded.config.verify_build}
    assert (value, "project") == (found[key], loaded.config.origin_of(key))
