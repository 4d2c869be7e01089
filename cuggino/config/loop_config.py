"""`.lopen/loop-config.json`: what the plan/build loop can be told, in layers (LOP-020 to LOP-032).

Of each key the strongest layer that has it counts: the defaults, the user's file, the project's,
the one of `--config`. Unlike in `.cuggino.json`, what cannot be used is passed over with a warning:
the files may be those of the original, which does so too. But a file that was named must be good.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from cuggino.config.json_object import read_object, words_of, write_object, writing
from cuggino.errors import ConfigError

LOOP_CONFIG_FILE = ".lopen/loop-config.json"
"""Where the file is, in a project and in a user's home."""

LogLevel: TypeAlias = Literal["all", "info", "error"]

_GROUP = "verify"
"""The object that holds the commands; its keys may also stand in the file as `verify.build`."""

_HINT = "correct the file, or remove it"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBuildConfig:
    """The settings of the plan/build loop."""

    model: str = "claude-opus-4.5"
    """The model that agents are asked to use."""
    plan_prompt_path: str = "PLAN.PROMPT.md"
    """The file with what the planning agent is told, relative to the project, or absolute."""
    build_prompt_path: str = "BUILD.PROMPT.md"
    """The file with what a building agent is told."""
    allow_all: bool = True
    """Let agents use any program; else those that the guard lists."""
    stream: bool = True
    """Show the agent's words as they come, not at the end of its session."""
    auto_commit: bool = False
    """Commit what an iteration of building leaves uncommitted."""
    log_level: LogLevel = "all"
    """`info`: nothing for debugging; `error`: of our own lines errors alone."""
    verify_after_iteration: bool = True
    """Have agents verify the build after each iteration, and each job that is said to be done."""
    verify_model: str | None = None
    """The model of the verifying agent; absent means `model`."""
    verify_build: str | None = None
    """`verify.build`: the command that builds the project, in a shell; its exit code is proof."""
    verify_test: str | None = None
    """`verify.test`: the command that runs its tests."""
    protected_branches: tuple[str, ...] = ("main", "master")
    """Branches, by their exact names, on which the loop does not run."""
    agent: str = "claude"
    """Who works, as `agent` of `.cuggino.json`, which counts where no file here has it."""
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Of each key that is in a file, `user`, `project`, or the path of the `--config` file."""

    def origin_of(self, key: str) -> str:
        """Where the value of the key, such as `planPromptPath`, comes from; else `default`."""
        return self.origins.get(key, "default")


@dataclass(frozen=True, slots=True)
class LoadedPlanBuildConfig:
    """What the layers have come to."""

    config: PlanBuildConfig
    warnings: tuple[str, ...] = ()
    """A sentence for each file and each value that was passed over."""


def load_loop_config(
    project: Path, *, user: Path | None = None, custom: Path | None = None
) -> LoadedPlanBuildConfig:
    """The settings for the project; `user` is the user's file, `custom` that of `--config`.

    A missing or empty file is no layer. `custom` is relative to the project.

    Raises:
        ConfigError: `custom` is missing, or holds no object.
    """
    layers = [] if user is None else [("user", user)]
    layers.append(("project", project / LOOP_CONFIG_FILE))
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
                    name, read = KEYS[key]
                    values[name] = read(value)
                    origins[key] = origin
                elif key == _GROUP:
                    raise ValueError("is no object")
            except ValueError as error:
                warnings.append(f'{path}: "{key}" {error}; it is ignored')
    return LoadedPlanBuildConfig(PlanBuildConfig(**values, origins=origins), tuple(warnings))


def change_loop_config(path: Path, changes: Mapping[str, object]) -> None:
    """Set these keys in the file of one layer, and nothing else in it; it is made when missing.

    Keys are those of the file, such as `planPromptPath` or `verify.build`; None removes a key.

    Raises:
        ConfigError: a key or a value cannot be used, the file cannot be written, or it is broken;
            then it stays as it is.
    """
    for key, value in changes.items():
        if key not in KEYS:
            raise ConfigError(
                f'unknown key "{key}" of {path}', hint="valid keys: " + ", ".join(KEYS)
            )
        if value is not None:
            try:
                KEYS[key][1](value)
            except ValueError as error:
                raise ConfigError(f'"{key}" {error}') from error
    try:
        raw = read_object(path)
    except (FileNotFoundError, NotADirectoryError):
        raw = {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} {words_of(error)}; it stays as it is", hint=_HINT) from error
    for key, value in changes.items():
        _set(raw, key, list(value) if isinstance(value, tuple) else value)
    write_object(path, raw)


def reset_loop_config(path: Path) -> bool:
    """Remove the file of a layer (LOP-028); gives whether there was one.

    Raises:
        ConfigError: it cannot be removed.
    """
    with writing(path):
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
    return True


def _lenient(path: Path, warnings: list[str]) -> dict[str, Any]:
    try:
        return read_object(path)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        warnings.append(f"{path} {words_of(error)}; it is ignored")
        return {}


def _strict(path: Path) -> dict[str, Any]:
    try:
        return read_object(path, is_empty_good=False)
    except FileNotFoundError as error:
        raise ConfigError(f"--config: {path} does not exist", hint="check the path") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"--config: {path} {words_of(error)}", hint="correct the file") from error


def _flat(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The keys with those of `verify` beside them, which may also be written so in the file."""
    group = raw.get(_GROUP)
    if not isinstance(group, dict):
        return dict(raw)
    rest = {key: value for key, value in raw.items() if key != _GROUP}
    return rest | {f"{_GROUP}.{key}": value for key, value in group.items()}


def _set(raw: dict[str, Any], key: str, value: object) -> None:
    """Set the key where it belongs; None removes it."""
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


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("is no text")
    if not value.strip():
        raise ValueError("is blank")
    if "\0" in value or value != value.encode("utf-8", "replace").decode():
        raise ValueError("holds what is no character")  # no command and no path may have it
    return value


def _optional(value: object) -> str | None:
    """A text; null or a blank one takes back what a weaker layer says."""
    return None if value is None or value == "" else _text(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("is neither true nor false")
    return value


def _level(value: object) -> str:
    if value not in get_args(LogLevel):
        raise ValueError("is none of " + ", ".join(get_args(LogLevel)))
    return str(value)


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError("is no list of texts")
    return tuple(value)


KEYS: Mapping[str, tuple[str, Callable[[object], object]]] = {
    "model": ("model", _text),
    "planPromptPath": ("plan_prompt_path", _text),
    "buildPromptPath": ("build_prompt_path", _text),
    "allowAll": ("allow_all", _flag),
    "stream": ("stream", _flag),
    "autoCommit": ("auto_commit", _flag),
    "logLevel": ("log_level", _level),
    "verifyAfterIteration": ("verify_after_iteration", _flag),
    "verifyModel": ("verify_model", _optional),
    "verify.build": ("verify_build", _optional),
    "verify.test": ("verify_test", _optional),
    "protectedBranches": ("protected_branches", _names),
    "agent": ("agent", _text),
}
"""Of each key in a file its name here, and what reads its value; a `ValueError` says why not."""
