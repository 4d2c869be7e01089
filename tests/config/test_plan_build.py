"""`.lopen/loop-config.json`: its layers, any content, changes, and what a run makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cuggino import Runtime
from cuggino.config import Config
from cuggino.config.file import PLAN_BUILD_CONFIG_FILE
from cuggino.config.plan_build import (
    KEYS,
    LoadedPlanBuildConfig,
    PlanBuildConfig,
    change_plan_build_config,
    chosen_agent,
    chosen_model,
    chosen_options,
    load_plan_build_config,
    reset_plan_build_config,
    spelled_model,
)
from cuggino.errors import ConfigError
from cuggino.loops import PlanBuildOptions
from tests.vectors import each, not_followed, rows

ROWS = {row["id"]: row for row in rows("lopen_config")}
NOT_FOLLOWED = not_followed("lopen_config")
PATHS = {row["name"]: row["expected"] for row in rows("lopen_state") if row["kind"] == "paths"}


def of_op(*ops: str) -> list[str]:
    """Return the IDs of the rows of these operations."""
    return [row["id"] for row in ROWS.values() if row["op"] in ops]


class Place:
    """A project, and a home with the user's file."""

    def __init__(self, root: Path) -> None:
        self.project, self.home = root / "project", root / "home"
        self.project.mkdir()
        self.files = {
            "user": self.home / PLAN_BUILD_CONFIG_FILE,
            "project": self.project / PLAN_BUILD_CONFIG_FILE,
            "custom": self.project / "c.json",
        }

    def write(self, layer: str, content: str | bytes) -> Path:
        path = self.files[layer]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def load(self, *, custom: str | None = None) -> LoadedPlanBuildConfig:
        return load_plan_build_config(
            self.project, user=self.files["user"], custom=Path(custom) if custom else None
        )

    def refused(self, *, custom: str | None = None) -> str:
        """Return the message of the error of loading."""
        with pytest.raises(ConfigError) as caught:
            self.load(custom=custom)
        assert caught.value.hint
        return caught.value.message


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_paths() -> None:
    """The project and the home use the same relative path."""
    assert PATHS["project_config"] == PATHS["user_config"] == PLAN_BUILD_CONFIG_FILE


@pytest.mark.parametrize("case", of_op("load"))
def test_layers(case: str, place: Place) -> None:
    """The recorded files give the settings of their case, or the error we chose."""
    row = ROWS[case]
    for layer, content in row["files"].items():
        if content is not None:
            place.write(layer, content)
    has_custom = row["files"]["custom"] is not None or row.get("custom_path_missing")
    custom = "c.json" if has_custom or case == "lc-009" else None
    if case in NOT_FOLLOWED:
        assert place.refused(custom=custom)
        return
    config = place.load(custom=custom).config
    assert row["expected"] == {key: getattr(config, KEYS[key]) for key in row["expected"]}


@pytest.mark.parametrize("case", of_op("save"))
def test_a_layer_is_saved(case: str, place: Place) -> None:
    """The layer's file is created with its folder, holds the given values, and is indented."""
    row = ROWS[case]
    path = place.files[row["target"]]
    change_plan_build_config(path, row["config"])
    text = path.read_text()
    assert row["expected_file"]["json"] == json.loads(text)
    assert json.dumps(row["config"], indent=2) + "\n" == text


@pytest.mark.parametrize("case", of_op("reset"))
def test_the_users_layer_is_removed(case: str, place: Place) -> None:
    """The user's file is removed if present; the project's stays."""
    row = ROWS[case]
    for layer, content in row["before"].items():
        if content is not None:
            place.write(layer, content)
    had = place.files["user"].exists()
    assert had == reset_plan_build_config(place.files["user"])
    assert row["expected_file"]["exists"] == place.files["user"].exists()
    assert ("project" in row["before"]) == place.files["project"].exists()


OPTIONS = {"--model": "model", "--allow-all": "allowAll"}


@pytest.mark.parametrize("case", of_op("configure", "configure_interactive"))
def test_only_given_keys_are_changed(case: str, place: Place) -> None:
    """The user's file gets the given keys only, and nothing of other layers."""
    row = ROWS[case]
    for layer, content in row["before"].items():
        if content is not None:
            place.write(layer, content)
    args, path = row["args"], place.files["user"]
    if "--reset" in args:
        reset_plan_build_config(path)
        assert row["expected_user"] is None
        assert not path.exists()
        return
    given_ = [*args, True] if args[-1:] == ["--allow-all"] else args
    changes = {OPTIONS[key]: value for key, value in zip(given_[::2], given_[1::2], strict=True)}
    change_plan_build_config(path, row.get("answers", changes))
    assert row["expected_user"] == json.loads(path.read_text())


def test_every_value_has_an_origin(place: Place) -> None:
    """The origin of a value is the strongest layer that has it."""
    place.write("user", '{"model": "u", "stream": false, "verify": {"build": "make"}}')
    place.write("project", '{"stream": true, "verify": {"test": "make test"}}')
    place.write("custom", '{"logLevel": "error"}')
    loaded = place.load(custom="c.json")
    origins = {
        "model": "user",
        "stream": "project",
        "allowAll": "default",
        "logLevel": "c.json",
        "verify.build": "user",
        "verify.test": "project",
        "agent": "default",
    }
    assert origins == {key: loaded.origin_of(key) for key in origins}
    assert ("make", "make test") == (loaded.config.verify_build, loaded.config.verify_test)


def test_our_own_keys(place: Place) -> None:
    """Our additional keys are read, with both notations of the commands."""
    place.write(
        "user",
        '{"verify.build": "b", "verifyModel": "v", "protectedBranches": ["trunk"], "agent": "x"}',
    )
    config = place.load().config
    assert ("b", None, "v", ("trunk",), "x") == (
        config.verify_build,
        config.verify_test,
        config.verify_model,
        config.protected_branches,
        config.agent,
    )
    place.write(
        "project", '{"verify": {"build": null}, "verifyModel": "", "protectedBranches": []}'
    )
    config = place.load().config
    assert (None, None, ()) == (
        config.verify_build,
        config.verify_model,
        config.protected_branches,
    )


def test_null_does_not_override(place: Place) -> None:
    """A null is as absent: the restriction of a weaker layer stays."""
    place.write("user", '{"allowAll": false, "protectedBranches": ["trunk"]}')
    place.write("project", '{"allowAll": null, "protectedBranches": null, "verify": null}')
    config = place.load().config
    assert (False, ("trunk",)) == (config.allow_all, config.protected_branches)


@pytest.mark.parametrize("layer", ["user", "project", "custom"])
def test_a_broken_file(layer: str, place: Place) -> None:
    """An unusable layer is an error that names its file, whatever other layers say."""
    for other in place.files:
        place.write(other, '{"model": "m"}')
    path = place.write(layer, "{")
    name = f"--config: {path}" if layer == "custom" else str(path)
    problem = f"{name}: line 1 column 2: not valid JSON"
    assert place.refused(custom="c.json").startswith(problem)
    with pytest.raises(ConfigError, match="; not changed"):
        change_plan_build_config(path, {"model": "m"})
    assert "{" == path.read_text()


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("model", " ", "must not be blank"),
        ("agent", "a\0b", "must not be blank, or contain NUL"),
        ("buildPromptPath", "\ud800", "NUL or half a surrogate pair"),
        ("stream", 1, "must be true or false"),
        ("logLevel", "ALL", 'must be "all", "info" or "error"'),
        ("logLevel", ["all"], 'must be "all", "info" or "error"'),
        ("protectedBranches", "main", "must be a list"),
        ("protectedBranches", [1], "must be a string"),
        ("verifyModel", 1, "must be a string"),
        ("verify.build", ["make"], "must be a string"),
    ],
)
def test_a_wrong_value(key: str, value: object, why: str, place: Place) -> None:
    """An invalid value is an error with its place; writing it fails too."""
    path = place.write("project", json.dumps({key: value, "autoCommit": True}))
    problem = place.refused()
    assert problem.startswith(f'{path}: "{key}')
    assert why in problem
    place.write("project", "{}")
    with pytest.raises(ConfigError, match=why):
        change_plan_build_config(path, {key: value})
    assert "{}" == path.read_text()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"verify": "make"}', '"verify" must be an object'),
        ('{"verify": {"z": 1}}', 'unknown key "verify.z"'),
        ('{"verify": {"test": "a"}, "verify.test": "b"}', '"verify.test" is given twice: in'),
        ('{"protectedBranchs": ["trunk"]}', 'unknown key "protectedBranchs"'),
    ],
)
def test_a_key_that_would_have_no_effect(content: str, problem: str, place: Place) -> None:
    """A misspelled key, or one that is given twice, is an error: it may restrict."""
    path = place.write("project", content)
    assert place.refused().startswith(f"{path}: {problem}")


def test_a_change_keeps_everything_else(place: Place) -> None:
    """The schema, order, permissions and a symlink stay; None removes a key."""
    text = '{"$schema": "x", "model": "a", "verify": {"test": "t"}, "stream": true}'
    real = place.write("custom", text)
    real.chmod(0o600)
    path = place.files["project"]
    path.parent.mkdir(parents=True)
    path.symlink_to(real)
    changes = {"model": "m", "verify.build": "c", "agent": None, "protectedBranches": ("a",)}
    change_plan_build_config(path, changes)
    expected = {
        "$schema": "x",
        "model": "m",
        "verify": {"test": "t", "build": "c"},
        "stream": True,
        "protectedBranches": ["a"],
    }
    assert list(expected.items()) == list(json.loads(real.read_text()).items())
    assert (True, 0o600) == (path.is_symlink(), real.stat().st_mode & 0o777)
    assert ["c.json"] == [found.name for found in place.project.iterdir() if found.is_file()]
    change_plan_build_config(path, {"verify.build": None, "model": None})
    assert ["$schema", "verify", "stream", "protectedBranches"] == list(
        json.loads(real.read_text())
    )


def test_a_key_of_another_version(place: Place) -> None:
    """A key that is none of ours, and nearly none of ours, is passed over (LOP-024)."""
    place.write("project", '{"futureFeature": {"on": true}, "model": "m"}')
    assert "m" == place.load().config.model


def test_an_unknown_key_cannot_be_written(place: Place) -> None:
    """An unknown key is an error that names the nearest one."""
    with pytest.raises(ConfigError, match='unknown key "modle"') as caught:
        change_plan_build_config(place.files["user"], {"modle": "x"})
    assert 'did you mean "model"?' == caught.value.hint
    assert not place.files["user"].exists()


@pytest.mark.parametrize(
    ("expected", "given", "own", "shared", "agent"),
    [
        ("claude-opus-4-5", None, None, None, "claude"),
        ("claude-opus-4.5", None, None, None, "copilot"),
        ("of-cuggino", None, None, "of-cuggino", "claude"),
        ("claude-sonnet-4-5", None, "claude-sonnet-4.5", "of-cuggino", "claude"),
        ("claude-sonnet-4", "claude-sonnet-4", "own", None, "claude"),
        ("gpt-5.1", "gpt-5.1", None, None, "claude"),
    ],
)
def test_the_model(
    expected: str, given: str | None, own: str | None, shared: str | None, agent: str
) -> None:
    """The most specific model applies, in the agent's spelling (LOP-114)."""
    settings = PlanBuildConfig()
    if own is not None:
        settings = PlanBuildConfig(model=own)
    assert expected == chosen_model(settings, Config(model=shared), agent=agent, given=given)


def test_the_agent() -> None:
    """The most specific agent applies."""
    own = PlanBuildConfig(agent="own")
    shared = Config(agent="scripted:x.toml")
    agents = [chosen_agent(s, shared) for s in (own, PlanBuildConfig())]
    assert ["own", "scripted:x.toml"] == agents
    assert "given" == chosen_agent(own, shared, given="given")


@each(
    "expected, model, agent",
    [
        ("claude-opus-4-5", "claude-opus-4.5", "claude"),
        ("claude-opus-4-5", "claude-opus-4-5", "claude"),
        ("claude-opus-4.5", "claude-opus-4.5", "copilot"),
        ("claude-opus-4.5-fast", "claude-opus-4.5-fast", "claude"),
        ("my.model", "my.model", "claude"),
        ("", "", "claude"),
    ],
)
def test_spelling(expected: str, model: str, agent: str) -> None:
    """Claude Code uses a dash for the dot in a Claude model; other names stay (LOP-114)."""
    assert expected == spelled_model(model, agent=agent)


def test_the_options() -> None:
    """Every relevant setting reaches the run, with the verifier's model respelled."""
    settings = PlanBuildConfig(
        plan_prompt="p.md",
        build_prompt="b.md",
        allow_all=False,
        auto_commit=True,
        verify_after_iteration=False,
        verify_model="claude-haiku-4.5",
        verify_build="make",
        verify_test="make check",
        protected_branches=("prod",),
    )
    expected = {
        "allow_all": False,
        "auto_commit": True,
        "verify_after_iteration": False,
        "verify_build": "make",
        "verify_test": "make check",
        "protected_branches": ("prod",),
        "plan_prompt": "p.md",
        "build_prompt": "b.md",
        "model": "claude-sonnet-4-5",
        "verify_model": "claude-haiku-4-5",
    }
    options = chosen_options(settings, Config(), agent="claude", model="claude-sonnet-4.5")
    assert expected == options
    assert options.keys() <= PlanBuildOptions.model_fields.keys()


def test_the_default_options(tmp_path: Path) -> None:
    """Without files a run has the runtime's defaults, with the model respelled."""
    runtime = Runtime.live(cwd=tmp_path, config=Config(), agent="claude")
    options = chosen_options(PlanBuildConfig(), runtime.config, agent="claude")
    made = runtime.plan_build_options(**options)
    assert "claude-opus-4-5" == made.model
    assert runtime.plan_build_options() == made.model_copy(update={"model": None})


NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=6),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=6), below),
    max_leaves=8,
)
DRAWN_KEYS = (
    "model",
    "stream",
    "logLevel",
    "verify",
    "verify.build",
    "verifyModel",
    "protectedBranches",
)
VALUES = st.none() | st.just("a") | st.just(["a"]) | st.booleans() | st.just({"test": "t"}) | JSON
LAYER = st.dictionaries(st.sampled_from(DRAWN_KEYS) | st.text(max_size=4), VALUES, max_size=3)


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
