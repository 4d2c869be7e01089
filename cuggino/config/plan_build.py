"""Settings of the plan/build loop: `.lopen/loop-config.json`, in layers (LOP-020 to LOP-032).

For each key, the strongest layer that has it counts: the defaults, the user's file, the project's,
then the one of `--config`. An unusable file is an error, as in `.cuggino.json`.

How `cuggino loop` starts a run::

    settings, config = load_plan_build_config(folder).config, load_config(folder)
    agent = chosen_agent(settings, config)
    runtime = Runtime.live(cwd=folder, config=config, agent=agent)
    options = runtime.plan_build_options(**chosen_options(settings, config, agent=agent))
    run(runtime.plan_build(options), print)
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from cuggino.config.file import PLAN_BUILD_CONFIG_FILE, write_object, writing
from cuggino.config.model import Config
from cuggino.edited_files import (
    InvalidFile,
    SettingsFile,
    SharedSection,
    matching,
    read_object,
    read_settings,
    validated,
)
from cuggino.errors import ConfigError

LogLevel: TypeAlias = Literal["all", "info", "error"]

_GROUP = "verify"
"""The object with the commands; its keys may also be written as `verify.build`."""
_TEXT = r"[^\0\ud800-\udfff]*[^\0\s\ud800-\udfff][^\0\ud800-\udfff]*"
_CLAUDE_MODEL = re.compile(r"(claude-[a-z]+-\d+)\.(\d+)")


def _optional(value: object) -> object:
    """Turn "" into None, which overrides the value of a weaker layer."""
    return None if value == "" else value


Text: TypeAlias = Annotated[
    str, matching(_TEXT, "must not be blank, or contain NUL or half a surrogate pair")
]
OptionalText: TypeAlias = Annotated[Text | None, BeforeValidator(_optional)]


class PlanBuildSettings(BaseModel):
    """The settings that the files and the options of a run share."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    plan_prompt: Text = "PLAN.PROMPT.md"
    """The file with the prompt of the planning agent, relative to the project or absolute."""
    build_prompt: Text = "BUILD.PROMPT.md"
    """The file with the prompt of the building agents."""
    allow_all: bool = True
    """Let agents run any program, not only those on the guard's list."""
    auto_commit: bool = False
    """Commit changes that a build iteration leaves uncommitted."""
    verify_after_iteration: bool = True
    """Have agents verify the build after each iteration, and each job reported as done; otherwise
    exit codes and requirement codes decide."""
    verify_model: OptionalText = None
    """The model of the verifying agent; default: `model`."""
    verify_build: OptionalText = None
    """`verify.build`: the shell command that builds the project; its exit code decides."""
    verify_test: OptionalText = None
    """`verify.test`: the shell command that runs the tests."""
    protected_branches: Annotated[tuple[str, ...], Field(strict=False)] = ("main", "master")
    """Branches, by exact name, on which the loop does not run."""


def _key(field: str) -> str:
    special = {
        "plan_prompt": "planPromptPath",
        "build_prompt": "buildPromptPath",
        "verify_build": "verify.build",
        "verify_test": "verify.test",
    }
    return special.get(field) or to_camel(field)


class PlanBuildConfig(PlanBuildSettings, SharedSection):
    """The settings in `.lopen/loop-config.json`."""

    model_config = ConfigDict(alias_generator=_key, populate_by_name=True)

    model: Text = "claude-opus-4.5"
    """The model of the agents."""
    stream: bool = True
    """Show the agent's text as it arrives, not at the end of the session."""
    log_level: LogLevel = "all"
    """`info` hides debug output; `error` shows only errors of cuggino itself."""
    agent: Text = "claude"
    """The agent; where no file sets it, `agent` of `.cuggino.json` applies."""

    @model_validator(mode="before")
    @classmethod
    def _of_other_versions(cls, raw: object) -> object:
        """Pass over keys of other versions of Lopen, but not over misspelled ones (LOP-024)."""
        if not isinstance(raw, Mapping):
            return raw
        ours = KEYS.keys() | cls.model_fields
        return {key: value for key, value in raw.items() if key in ours or _is_mistyped(key)}


KEYS: Mapping[str, str] = MappingProxyType(
    {_key(name): name for name in PlanBuildConfig.model_fields}
)
"""The field of each key in a file."""


def _is_mistyped(key: str) -> bool:
    return key.startswith("verify.") or bool(difflib.get_close_matches(key, KEYS, n=1, cutoff=0.8))


_OPTIONAL = {
    key for key, name in KEYS.items() if PlanBuildConfig.model_fields[name].default is None
}
"""Keys where null is a value: it goes before the one of a weaker layer."""


@dataclass(frozen=True, slots=True)
class LoadedPlanBuildConfig:
    """The merged layers."""

    config: PlanBuildConfig
    origins: Mapping[str, str]
    """The layer of each key set in a file: `user`, `project`, or the path given to `--config`."""

    def origin_of(self, key: str) -> str:
        """Return the layer that sets a key such as `planPromptPath`, or `default`."""
        return self.origins.get(key, "default")


def load_plan_build_config(
    project: Path, *, user: Path | None = None, custom: Path | None = None
) -> LoadedPlanBuildConfig:
    """Merge the user's file, the project's, and `custom`, the file of `--config`.

    A missing file is skipped, except `custom`, which is relative to the project.

    Raises:
        ConfigError: a file is unusable, or `custom` is missing.
    """
    files: dict[str, SettingsFile] = {}
    if user is not None:
        files["user"] = SettingsFile(user, str(user))
    own = project / PLAN_BUILD_CONFIG_FILE
    files["project"] = SettingsFile(own, str(own))
    if custom is not None:
        files[str(custom)] = SettingsFile(
            project / custom, f"--config: {project / custom}", is_required=True
        )
    config, names = read_settings(PlanBuildConfig, *files.values(), prepare=_flat)
    layers = {file.name: layer for layer, file in files.items()}
    return LoadedPlanBuildConfig(config, {key: layers[name] for key, name in names.items()})


def change_plan_build_config(path: Path, changes: Mapping[str, object]) -> None:
    """Set keys such as `planPromptPath` or `verify.build` in a file; None removes a key.

    Everything else in the file is kept. A missing file is created.

    Raises:
        ConfigError: the file, a key or a value is unusable, or it cannot be written. The file is
            unchanged.
    """
    try:
        raw = read_object(path) or {}
        for key, value in changes.items():
            _set(raw, key, list(value) if isinstance(value, tuple) else value)
        validated(PlanBuildConfig, _flat(raw))
    except InvalidFile as error:
        raise ConfigError(f"{path}: {error}; not changed", hint=error.hint) from error
    write_object(path, raw)


def reset_plan_build_config(path: Path) -> bool:
    """Remove the file of a layer; return whether it existed.

    Raises:
        ConfigError: it cannot be removed.
    """
    with writing(path):
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
    return True


def chosen_agent(settings: PlanBuildConfig, config: Config, *, given: str | None = None) -> str:
    """Return the agent's name: `given`, else a loop file's, else that of `.cuggino.json`.

    Loop defaults never override `.cuggino.json`.
    """
    if given is not None:
        return given
    return settings.agent if "agent" in settings.model_fields_set else config.agent


def chosen_model(
    settings: PlanBuildConfig, config: Config, *, agent: str, given: str | None = None
) -> str:
    """Return the model, chosen like the agent, in the agent's spelling (`spelled_model`)."""
    name = given or (settings.model if "model" in settings.model_fields_set else config.model)
    return spelled_model(name or settings.model, agent=agent)


def chosen_options(
    settings: PlanBuildConfig, config: Config, *, agent: str, model: str | None = None
) -> dict[str, Any]:
    """Return the options for `Runtime.plan_build_options` that the files set.

    `model` overrides the files. `stream` and `log_level` are left out: they are for the output.
    """
    options = {name: getattr(settings, name) for name in PlanBuildSettings.model_fields}
    if settings.verify_model is not None:
        options["verify_model"] = spelled_model(settings.verify_model, agent=agent)
    return {**options, "model": chosen_model(settings, config, agent=agent, given=model)}


def spelled_model(model: str, *, agent: str) -> str:
    """Return the model's name in the agent's spelling (LOP-114); unknown names are unchanged.

    Claude Code spells `claude-opus-4.5` as `claude-opus-4-5`.
    """
    found = _CLAUDE_MODEL.fullmatch(model)
    return f"{found[1]}-{found[2]}" if found and agent == "claude" else model


def _flat(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys with those of the `verify` object as `verify.build` and `verify.test`.

    Elsewhere than in optional keys null counts as absent.
    """
    group = {} if raw.get(_GROUP) is None else raw[_GROUP]
    if not isinstance(group, dict):
        raise InvalidFile(f'"{_GROUP}" must be an object')
    flat = {f"{_GROUP}.{key}": value for key, value in group.items()}
    if twice := flat.keys() & raw.keys():
        raise InvalidFile(f'"{min(twice)}" is given twice: in "{_GROUP}", and as a separate key')
    keys = {key: value for key, value in raw.items() if key != _GROUP} | flat
    return {key: value for key, value in keys.items() if value is not None or key in _OPTIONAL}


def _set(raw: dict[str, Any], key: str, value: object) -> None:
    holder = raw
    if key.startswith(f"{_GROUP}."):
        raw.pop(key, None)
        group = raw.get(_GROUP)
        if not isinstance(group, dict):
            if value is None:
                return
            group = raw[_GROUP] = {}
        holder, key = group, key.removeprefix(f"{_GROUP}.")
    if value is None:
        holder.pop(key, None)
    else:
        holder[key] = value
