"""Settings of the plan/build loop: `.lopen/loop-config.json`, in layers (LOP-020 to LOP-032).

For each key, the strongest layer with a usable value wins: the defaults, the user's file, the
project's, then the one of `--config`. Unlike in `.cuggino.json`, an unusable value is ignored with
a warning, as Lopen does, whose files these may be. Only a file named with `--config` must be valid.

How `cuggino loop` starts a run::

    settings, config = load_plan_build_config(folder).config, load_config(folder)
    agent = chosen_agent(settings, config)
    runtime = Runtime.live(cwd=folder, config=config, agent=agent)
    options = runtime.plan_build_options(**chosen_options(settings, config, agent=agent))
    run(runtime.plan_build(options), print)
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from cuggino.config.file import PLAN_BUILD_CONFIG_FILE, write_object, writing
from cuggino.config.model import Config
from cuggino.errors import ConfigError
from cuggino.files import describe, read_json_object

LogLevel: TypeAlias = Literal["all", "info", "error"]

_GROUP = "verify"
"""The object with the commands; its keys may also be written as `verify.build`."""
_HINT = "correct the file, or remove it"
_CLAUDE_MODEL = re.compile(r"(claude-[a-z]+-\d+)\.(\d+)")


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be blank")
    if "\0" in value or value != value.encode("utf-8", "replace").decode():
        raise ValueError("must not contain NUL or half a surrogate pair")
    return value


def _optional(value: object) -> object:
    """Turn "" into None, which overrides the value of a weaker layer."""
    return None if value == "" else value


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError("must be a list of strings")
    return tuple(value)


Text: TypeAlias = Annotated[str, AfterValidator(_text)]
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
    protected_branches: Annotated[tuple[str, ...], BeforeValidator(_names)] = ("main", "master")
    """Branches, by exact name, on which the loop does not run."""


def _key(field: str) -> str:
    special = {
        "plan_prompt": "planPromptPath",
        "build_prompt": "buildPromptPath",
        "verify_build": "verify.build",
        "verify_test": "verify.test",
    }
    return special.get(field) or to_camel(field)


class PlanBuildConfig(PlanBuildSettings):
    """The settings in `.lopen/loop-config.json`."""

    model_config = ConfigDict(strict=True, alias_generator=_key, populate_by_name=True)

    model: Text = "claude-opus-4.5"
    """The model of the agents."""
    stream: bool = True
    """Show the agent's text as it arrives, not at the end of the session."""
    log_level: LogLevel = "all"
    """`info` hides debug output; `error` shows only errors of cuggino itself."""
    agent: Text = "claude"
    """The agent; where no file sets it, `agent` of `.cuggino.json` applies."""
    origins: Mapping[str, str] = Field(default={})
    """The layer of each key set in a file: `user`, `project`, or the path given to `--config`."""

    def origin_of(self, key: str) -> str:
        """Return the layer that sets a key such as `planPromptPath`, or `default`."""
        return self.origins.get(key, "default")


KEYS: Mapping[str, str] = MappingProxyType(
    {_key(name): name for name in PlanBuildConfig.model_fields if name != "origins"}
)
"""The field of each key in a file."""


@dataclass(frozen=True, slots=True)
class LoadedPlanBuildConfig:
    """The merged layers."""

    config: PlanBuildConfig
    warnings: tuple[str, ...] = ()
    """One sentence per ignored file or value."""


def load_plan_build_config(
    project: Path, *, user: Path | None = None, custom: Path | None = None
) -> LoadedPlanBuildConfig:
    """Merge the user's file, the project's, and `custom`, the file of `--config`.

    A missing or empty file is skipped. `custom` is relative to the project.

    Raises:
        ConfigError: `custom` is missing or not a JSON object.
    """
    layers = [] if user is None else [("user", user)]
    layers.append(("project", project / PLAN_BUILD_CONFIG_FILE))
    warnings: list[str] = []
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    raws = [(origin, path, _lenient(path, warnings)) for origin, path in layers]
    if custom is not None:
        raws.append((str(custom), custom, _strict(project / custom)))
    for origin, path, raw in raws:
        for key, value in _flat(raw).items():
            try:
                if key in KEYS:
                    values[key] = _checked(key, value)
                    origins[key] = origin
                elif key == _GROUP:
                    raise ValueError("must be an object")
            except ValueError as error:
                warnings.append(f'{path}: "{key}": {error}; ignored')
    return LoadedPlanBuildConfig(PlanBuildConfig(**values, origins=origins), tuple(warnings))


def change_plan_build_config(path: Path, changes: Mapping[str, object]) -> None:
    """Set keys such as `planPromptPath` or `verify.build` in a file; None removes a key.

    Everything else in the file is kept. A missing file is created.

    Raises:
        ConfigError: a key or value is invalid, or the file is broken or cannot be written. The file
            is unchanged.
    """
    for key, value in changes.items():
        if key not in KEYS:
            raise ConfigError(
                f'unknown key "{key}" in {path}', hint="valid keys: " + ", ".join(KEYS)
            )
        if value is not None:
            try:
                _checked(key, value)
            except ValueError as error:
                raise ConfigError(f'"{key}": {error}') from error
    try:
        raw = read_json_object(path, may_be_blank=True)
    except (FileNotFoundError, NotADirectoryError):
        raw = {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {describe(error)}; not changed", hint=_HINT) from error
    for key, value in changes.items():
        _set(raw, key, list(value) if isinstance(value, tuple) else value)
    write_object(path, raw)


def reset_plan_build_config(path: Path) -> bool:
    """Remove the file of a layer (LOP-028); return whether it existed.

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
    return settings.agent if "agent" in settings.origins else config.agent


def chosen_model(
    settings: PlanBuildConfig, config: Config, *, agent: str, given: str | None = None
) -> str:
    """Return the model, chosen like the agent, in the agent's spelling (`spelled_model`)."""
    name = given or (settings.model if "model" in settings.origins else config.model)
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


def _checked(key: str, value: object) -> object:
    try:
        return getattr(PlanBuildConfig.model_validate({key: value}), KEYS[key])
    except ValidationError as error:
        raise ValueError(error.errors()[0]["msg"].removeprefix("Value error, ")) from error


def _lenient(path: Path, warnings: list[str]) -> dict[str, Any]:
    try:
        return read_json_object(path, may_be_blank=True)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        warnings.append(f"{path}: {describe(error)}; ignored")
        return {}


def _strict(path: Path) -> dict[str, Any]:
    try:
        return read_json_object(path)
    except FileNotFoundError as error:
        raise ConfigError(f"--config: {path} does not exist", hint="check the path") from error
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"--config: {path}: {describe(error)}", hint="correct the file"
        ) from error


def _flat(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys with those of the `verify` object as `verify.build` and `verify.test`."""
    group = raw.get(_GROUP)
    if not isinstance(group, dict):
        return dict(raw)
    rest = {key: value for key, value in raw.items() if key != _GROUP}
    return rest | {f"{_GROUP}.{key}": value for key, value in group.items()}


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
