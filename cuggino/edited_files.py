"""JSON files that people edit: read as pydantic models, in layers, with errors that name the place.

An unusable file is an error, never a silent default: a run with other settings than the user
believes costs a night, and may do what a setting was to prevent.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    ValidationError,
    model_validator,
)

from cuggino.errors import ConfigError
from cuggino.files import describe, parse_json, read_regular
from cuggino.protection import expected

Model = TypeVar("Model", bound=BaseModel)

SECRET = "secret"
"""The type of an error about a value that no message may show."""
SCHEMA = "$schema"
"""A key for editors, which name the schema that they check the file by."""

CORRECT = "correct the file, or remove it"

_TYPES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("int_type", "int_from_float"), "a whole number"),
        **dict.fromkeys(("list_type", "tuple_type"), "a list"),
        **dict.fromkeys(("dict_type", "model_type"), "an object"),
        "string_type": "a string",
        "bool_type": "true or false",
        "float_type": "a number",
    }
)
"""What a value must be, by pydantic's error for a wrong type."""

_LIMITS: Mapping[str, str] = MappingProxyType(
    {
        "literal_error": "{expected}",
        "greater_than": "greater than {gt:.15g}",
        "greater_than_equal": "at least {ge:.15g}",
        "less_than": "less than {lt:.15g}",
        "less_than_equal": "at most {le:.15g}",
        "finite_number": "a finite number",
        "string_unicode": "text without half a surrogate pair",
    }
)
"""What a value of the right type must be, by pydantic's error."""


class Section(BaseModel):
    """An object in a file: without unknown keys, and no value is converted to another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class SharedSection(Section):
    """An object in a file of another tool, where null counts as absent."""

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, raw: object) -> object:
        if not isinstance(raw, Mapping):
            return raw
        return {key: value for key, value in raw.items() if value is not None}


class InvalidFile(ValueError):
    """An unusable file: the message names the place in it, `hint` says what to do."""

    def __init__(self, message: str, hint: str = CORRECT) -> None:
        super().__init__(message)
        self.hint = hint


class SettingsFile(NamedTuple):
    """A file with settings; of several, each is a layer."""

    path: Path
    name: str
    """Its name in errors."""
    hint: str = CORRECT
    """What to do with a file that is no JSON object."""
    is_required: bool = False


def matching(pattern: str, message: str) -> AfterValidator:
    """Return the constraint that a text matches the whole pattern, and the message of its error."""

    def matched(value: str) -> str:
        if not re.fullmatch(pattern, value, re.ASCII):
            raise ValueError(message)
        return value

    return AfterValidator(matched)


def read_settings(
    model: type[Model],
    *files: SettingsFile,
    prepare: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> tuple[Model, Mapping[str, str]]:
    """Return the settings in the files, the strongest last, and the name of the file of each key.

    For each key the strongest file that has it counts. Each file is checked on top of the weaker
    ones, so an error names the file that causes it. `prepare` is applied to each object.

    Raises:
        ConfigError: a file is unusable, or a required one is missing.
    """
    settings = model()
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for file in files:
        try:
            raw = read_object(file.path)
            if raw is None and file.is_required:
                raise InvalidFile("the file does not exist", "check the path")
            if raw is None:
                continue
            given = prepare(raw)
            values |= given
            settings = validated(model, values)
        except InvalidFile as error:
            hint = file.hint if error.hint == CORRECT else error.hint
            raise ConfigError(f"{file.name}: {error}", hint=hint) from error
        origins |= dict.fromkeys(given, file.name)
    return settings, origins


def read_object(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in a file, or None without a file.

    Raises:
        InvalidFile: as `read_content` and `parse_content`, or it is another JSON value.
    """
    content = read_content(path)
    if content is None:
        return None
    raw = parse_content(content)
    if not isinstance(raw, dict):
        raise InvalidFile("not a JSON object")
    return raw


def read_content(path: Path) -> bytes | None:
    """Return the bytes of a file, or None without a file.

    While a session runs that the system does not confine, a protected file is what it was before.
    A link to a missing file is not a missing file: what it was to say would be dropped silently.

    Raises:
        InvalidFile: it is there and cannot be read, is empty, or is not a regular file.
    """
    try:
        known = expected(path)
        content = read_regular(path) if known is None else known
    except (FileNotFoundError, NotADirectoryError):
        if any(place.is_symlink() and not place.exists() for place in (path, path.parent)):
            raise InvalidFile(
                "a link to a missing file", "restore its target, or remove it"
            ) from None
        return None
    except (OSError, ValueError) as error:
        raise InvalidFile(describe(error)) from error
    if not content.removeprefix(b"\xef\xbb\xbf").strip():
        raise InvalidFile("the file is empty")
    return content


def parse_content(content: bytes) -> Any:
    """Return the JSON value of a file.

    Raises:
        InvalidFile: it is not JSON; the message names the line and column.
    """
    try:
        return parse_json(content)
    except ValueError as error:
        raise InvalidFile(str(error)) from error


def validated(model: type[Model], raw: object) -> Model:
    """Return the model of a JSON value. Its keys are the aliases of the fields, or `$schema`.

    Raises:
        InvalidFile: the value is invalid; the message is one sentence about the first problem.
    """
    if isinstance(raw, Mapping):
        raw = {key: value for key, value in raw.items() if key != SCHEMA}
        known = _keys_at(model, ())
        for key in raw:
            if key in model.model_fields and key not in known:
                raise InvalidFile(f'unknown key "{key}"', _nearest(key, known))
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise next(iter(_explained(error, model, raw).values())) from error


def read_model(model: type[Model], path: Path) -> Model | None:
    """Return the model in a JSON file of cuggino's own, or None without a file.

    Raises:
        InvalidFile: as `read_content` and `parse_content`, or a value is invalid.
    """
    content = read_content(path)
    if content is None:
        return None
    raw = parse_content(content)
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        raise next(iter(_explained(error, model, raw).values())) from error


def usable(model: type[Model], raw: Mapping[str, Any]) -> tuple[Model, list[str]]:
    """Return the model of an object without its invalid values, and a sentence for each of them."""
    try:
        return model.model_validate(raw), []
    except ValidationError as error:
        problems = _explained(error, model, raw)
    rest = {key: value for key, value in raw.items() if (key,) not in problems}
    return validated(model, rest), [str(problem) for problem in problems.values()]


class _Found(NamedTuple):
    """An error of pydantic, and where it is in the data."""

    keys: tuple[int | str, ...]
    value: object
    kind: str
    context: Mapping[str, Any]
    message: str
    of_key: bool
    """True if the last key itself is invalid, not its value."""
    missing: str
    """The key that is missing in the value, if any."""


def _explained(
    error: ValidationError, model: type[BaseModel], raw: object
) -> dict[tuple[int | str, ...], InvalidFile]:
    """Return the error of each invalid value by its key, or by () for the whole."""
    found: dict[tuple[int | str, ...], list[_Found]] = {}
    for one in error.errors(include_url=False):
        where = _found(one, raw)
        found.setdefault(where.keys[:1], []).append(where)
    return {key: _sentence(errors, model) for key, errors in found.items()}


def _sentence(found: list[_Found], model: type[BaseModel]) -> InvalidFile:
    """Return the error of one value.

    Where several forms are allowed, pydantic reports each of them: the one that was meant is the
    one that the data follows the furthest.
    """
    depth = max(len(one.keys) for one in found)
    deepest = [one for one in found if len(one.keys) == depth]
    first = next((one for one in deepest if one.kind not in _TYPES), deepest[0])
    *around, key = first.keys or ("",)
    holder = f' in "{_place(around)}"' if around else ""
    if first.missing:
        where = f'"{_place(first.keys)}"' if first.keys else "it"
        return InvalidFile(f'{where} has no "{first.missing}"', "add it")
    if first.kind == "extra_forbidden":
        return InvalidFile(f'unknown key "{key}"{holder}', _nearest(key, _keys_at(model, around)))
    if first.of_key and first.kind == "literal_error":
        known = re.findall(r"'([^']*)'", first.context["expected"])
        return InvalidFile(f'unknown key "{key}"{holder}', _nearest(key, known))
    if first.of_key:
        return InvalidFile(f'invalid key "{key}"{holder}: {first.message}', "rename it")
    message = first.message
    if first.kind in _TYPES:
        message = "must be " + " or ".join(dict.fromkeys(_TYPES[one.kind] for one in deepest))
    if not first.keys:
        return InvalidFile(f"a key {message}" if first.kind == "string_unicode" else message)
    hint = _example(model, first.keys[0])
    if first.kind == SECRET:
        return InvalidFile(f'"{_place(first.keys)}" {message}', hint)
    return InvalidFile(f'"{_place(first.keys)}" is {_shown(first.value)}: {message}', hint)


def _found(error: Mapping[str, Any], raw: object) -> _Found:
    """Follow the location of an error in the data; the names of alternatives are left out."""
    keys: list[int | str] = []
    value: Any = raw
    for part in error["loc"]:
        is_there = part in value if isinstance(value, dict) else isinstance(value, list)
        if is_there and (isinstance(value, dict) or isinstance(part, int)):
            keys.append(part)
            value = value[part]
    kind, context = error["type"], error.get("ctx", {})
    if kind in _LIMITS:
        message = "must be " + _LIMITS[kind].format(**context).replace("'", '"')
    elif context.get("pattern") == r"\S":
        message = "must not be blank"
    else:
        message = error["msg"].removeprefix("Value error, ")
    return _Found(
        keys=tuple(keys),
        value=value,
        kind=kind,
        context=context,
        message=message,
        of_key=error["loc"][-1:] == ("[key]",),
        missing=str(error["loc"][-1]) if kind == "missing" else "",
    )


def _place(keys: Iterable[int | str]) -> str:
    """Return the place as it is written in JavaScript, such as `fallback[0].model`."""
    parts = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return "".join(parts).removeprefix(".")


def _shown(value: object) -> str:
    # Show only the scheme of a URL: the rest may contain a password.
    text = re.sub(r'://[^"]+', "://…", json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= 60 else text[:57] + "..."


def _nearest(key: object, known: Iterable[str]) -> str:
    """Return a hint with the nearest of the known keys, or with all of them."""
    known = list(known)
    near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.5)
    return f'did you mean "{near[0]}"?' if near else "valid keys: " + ", ".join(known)


def _example(model: type[BaseModel], key: int | str) -> str:
    """Return a hint with the example of a setting, if it has one."""
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    examples = fields[str(key)].examples if str(key) in fields else None
    if not examples:
        return "correct the value"
    return f'correct the value; for example "{key}": {json.dumps(examples[0])}'


def _keys_at(model: type[BaseModel], keys: Iterable[int | str]) -> list[str]:
    """Return the keys of the object at this place."""
    for key in keys:
        for name, field in model.model_fields.items():
            if key == (field.alias or name):
                model = _model_in(field.annotation) or model
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model that a type contains, as in `list[Model] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)
