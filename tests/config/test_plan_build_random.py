"""`.lopen/loop-config.json` with random contents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cuggino.config.file import PLAN_BUILD_CONFIG_FILE
from cuggino.config.plan_build import (
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
VALUES = st.none() | st.just("a") | st.just(["a"]) | st.booleans() | st.just({"test": "t"}) | JSON
LAYER = st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), VALUES, max_size=3)


def project(made: pytest.TempPathFactory, content: bytes) -> Path:
    """Return a project with this file."""
    root = made.mktemp("project")
    (root / PLAN_BUILD_CONFIG_FILE).parent.mkdir()
    (root / PLAN_BUILD_CONFIG_FILE).write_bytes(content)
    return root


@given(st.binary(max_size=40) | (LAYER | JSON).map(lambda raw: json.dumps(raw).encode()))
def test_any_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    """Any content gives settings or an error that names the file; `--config` is no different."""
    root = project(tmp_path_factory, content)
    try:
        loaded = load_plan_build_config(root)
    except ConfigError as error:
        assert error.message.startswith(str(root / PLAN_BUILD_CONFIG_FILE))
        with pytest.raises(ConfigError):
            load_plan_build_config(root, custom=Path(PLAN_BUILD_CONFIG_FILE))
    else:
        named = load_plan_build_config(root, custom=Path(PLAN_BUILD_CONFIG_FILE))
        assert loaded.config == named.config


@given(LAYER, st.sampled_from(["model", "verify.build"]), st.sampled_from(["a", "ä b"]))
def test_a_change_keeps_other_keys(
    tmp_path_factory: pytest.TempPathFactory, raw: dict[str, Any], key: str, value: str
) -> None:
    """After a change its key has the value and other keys are unchanged, or nothing is changed."""
    root = project(tmp_path_factory, json.dumps(raw).encode())
    path = root / PLAN_BUILD_CONFIG_FILE
    try:
        change_plan_build_config(path, {key: value})
    except ConfigError:
        assert json.dumps(raw) == path.read_text(encoding="utf-8")
        return
    after = json.loads(path.read_text(encoding="utf-8"))
    changed = {key, "verify"} if key == "verify.build" else {key}
    expected = {name: old for name, old in raw.items() if name not in changed}
    assert expected == {name: new for name, new in after.items() if name not in changed}
    loaded = load_plan_build_config(root)
    found = {"model": loaded.config.model, "verify.build": loaded.config.verify_build}
    assert (value, "project") == (found[key], loaded.origin_of(key))
