"""`.lopen/loop-config.json`: its layers, invalid values, and changing a layer."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cuggino.config.file import PLAN_BUILD_CONFIG_FILE
from cuggino.config.plan_build import (
    KEYS,
    PlanBuildConfig,
    change_plan_build_config,
    load_plan_build_config,
    reset_plan_build_config,
)
from cuggino.errors import ConfigError
from tests.vectors import not_followed, rows

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

    def load(self, *, custom: str | None = None) -> tuple[PlanBuildConfig, tuple[str, ...]]:
        loaded = load_plan_build_config(
            self.project, user=self.files["user"], custom=Path(custom) if custom else None
        )
        return loaded.config, loaded.warnings


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
    if case in NOT_FOLLOWED:
        with pytest.raises(ConfigError, match=r"c\.json does not exist"):
            place.load(custom="c.json")
        return
    config, _ = place.load(custom="c.json" if has_custom else None)
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
    """The origin of a value is the strongest layer with a usable one."""
    place.write("user", '{"model": "u", "stream": false, "verify": {"build": "make"}}')
    place.write("project", '{"stream": true, "allowAll": "no", "verify": {"test": "make test"}}')
    place.write("custom", '{"logLevel": "error"}')
    config, warnings = place.load(custom="c.json")
    assert ["user", "project", "default", "c.json", "user", "project", "default"] == [
        config.origin_of(key)
        for key in [
            "model",
            "stream",
            "allowAll",
            "logLevel",
            "verify.build",
            "verify.test",
            "agent",
        ]
    ]
    assert (
        f'{place.files["project"]}: "allowAll": Input should be a valid boolean; ignored',
    ) == warnings
    assert ("make", "make test") == (config.verify_build, config.verify_test)


def test_our_own_keys(place: Place) -> None:
    """Our additional keys are read, with both notations of the commands."""
    place.write(
        "user",
        '{"verify.build": "b", "verifyModel": "v", "protectedBranches": ["trunk"], "agent": "x"}',
    )
    config, warnings = place.load()
    assert ("b", None, "v", ("trunk",), "x", ()) == (
        config.verify_build,
        config.verify_test,
        config.verify_model,
        config.protected_branches,
        config.agent,
        warnings,
    )
    place.write(
        "project", '{"verify": {"build": null}, "verifyModel": "", "protectedBranches": []}'
    )
    config, warnings = place.load()
    assert (None, None, (), ()) == (
        config.verify_build,
        config.verify_model,
        config.protected_branches,
        warnings,
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{\n  x}", "line 2 column 3: not valid JSON"),
        (b'{"model": "\xff"}', "byte 11: not UTF-8"),
        (b"[]", "not a JSON object"),
        (b'{"a": NaN}', "NaN is not valid JSON"),
        (b'{"a": 1e999}', "the number 1e999 is too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "Exceeds the limit"),
        (b"[" * 100_000, "nested too deeply"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_broken_file(content: bytes, words: str, place: Place) -> None:
    """A broken layer is skipped with the parser's message; an explicitly given file is an error."""
    path = place.write("project", content)
    place.write("user", '{"model": "u"}')
    config, (warning,) = place.load()
    assert "u" == config.model
    assert warning.startswith(f"{path}: {words}")
    assert warning.endswith("; ignored")
    place.write("custom", content)
    with pytest.raises(ConfigError) as caught:
        place.load(custom="c.json")
    assert words in caught.value.message
    with pytest.raises(ConfigError, match="; not changed"):
        change_plan_build_config(path, {"model": "m"})
    assert content == path.read_bytes()


def test_a_folder_or_pipe(place: Place) -> None:
    """A folder or a pipe is skipped without blocking; an empty given file is an error."""
    place.files["user"].mkdir(parents=True)
    place.files["project"].parent.mkdir()
    os.mkfifo(place.files["project"])
    config, warnings = place.load()
    assert PlanBuildConfig() == config
    assert [
        f"{place.files[name]}: not a regular file; ignored" for name in ("user", "project")
    ] == list(warnings)
    place.write("custom", "")
    with pytest.raises(ConfigError, match="line 1 column 1"):
        place.load(custom="c.json")


def test_a_byte_order_mark_is_ignored(place: Place) -> None:
    """A leading byte order mark is accepted."""
    place.write("user", b'\xef\xbb\xbf{"model": "u"}')
    assert ("u", ()) == (place.load()[0].model, place.load()[1])


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("model", None, "Input should be a valid string"),
        ("model", " ", "must not be blank"),
        ("agent", "a\0b", "must not contain NUL or half a surrogate pair"),
        ("buildPromptPath", "\ud800", "must not contain NUL or half a surrogate pair"),
        ("stream", 1, "Input should be a valid boolean"),
        ("logLevel", "ALL", "Input should be 'all', 'info' or 'error'"),
        ("logLevel", ["all"], "Input should be 'all', 'info' or 'error'"),
        ("protectedBranches", "main", "must be a list of strings"),
        ("protectedBranches", [1], "must be a list of strings"),
        ("verifyModel", 1, "Input should be a valid string"),
        ("verify.build", ["make"], "Input should be a valid string"),
    ],
)
def test_a_wrong_value(key: str, value: object, why: str, place: Place) -> None:
    """An invalid value is skipped with a warning, the others apply, and writing it fails."""
    path = place.write("user", json.dumps({key: value, "autoCommit": True}))
    config, warnings = place.load()
    assert config.auto_commit
    assert (f'{path}: "{key}": {why}; ignored',) == warnings
    if value is not None:
        with pytest.raises(ConfigError, match=why):
            change_plan_build_config(path, {key: value})


def test_commands_that_are_not_an_object(place: Place) -> None:
    """A `commands` value of another type is skipped with a warning, and replaced by a change."""
    path = place.write("user", '{"verify": "make"}')
    assert (f'{path}: "verify": must be an object; ignored',) == place.load()[1]
    change_plan_build_config(path, {"verify.test": None})
    assert {"verify": "make"} == json.loads(path.read_text())
    change_plan_build_config(path, {"verify.build": "make"})
    assert ("make", ()) == (place.load()[0].verify_build, place.load()[1])


def test_a_change_keeps_everything_else(place: Place) -> None:
    """Unknown keys, order, permissions and a symlink stay; None removes a key."""
    text = '{"x": {"y": "é\\ud800"}, "model": "a", "verify": {"z": 1}, "verify.build": "b", "w": 2}'
    real = place.write("custom", text)
    real.chmod(0o600)
    path = place.files["user"]
    path.parent.mkdir(parents=True)
    path.symlink_to(real)
    changes = {"model": "m", "verify.build": "c", "agent": None, "protectedBranches": ("a",)}
    change_plan_build_config(path, changes)
    expected = {
        "x": {"y": "é\ud800"},
        "model": "m",
        "verify": {"z": 1, "build": "c"},
        "w": 2,
        "protectedBranches": ["a"],
    }
    assert list(expected.items()) == list(json.loads(real.read_text()).items())
    assert (True, 0o600) == (path.is_symlink(), real.stat().st_mode & 0o777)
    assert ["c.json"] == [found.name for found in place.project.iterdir()]
    change_plan_build_config(path, {"verify.build": None, "model": None})
    assert ["x", "verify", "w", "protectedBranches"] == list(json.loads(real.read_text()))


def test_an_unknown_key_cannot_be_written(place: Place) -> None:
    """An unknown key is an error that lists the valid ones."""
    with pytest.raises(ConfigError) as caught:
        change_plan_build_config(place.files["user"], {"modle": "x"})
    assert "planPromptPath" in str(caught.value.hint)
    assert not place.files["user"].exists()
