"""JSON files of settings: reading an object with the place of what is wrong, writing it whole."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cuggino.errors import ConfigError

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def read_object(path: Path, *, is_empty_good: bool = True) -> dict[str, Any]:
    """What the file holds; an empty file holds nothing, if that is good.

    Raises:
        ValueError: it is no JSON object; the message, with the place, follows the file's name.
        OSError: there is no such file, or it cannot be read.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("is no file")  # opening a pipe would wait for its writer
    try:
        text = path.read_bytes().decode("utf-8-sig")
        if is_empty_good and not text.strip():
            return {}
        raw = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise ValueError(f"{place}: not valid JSON ({error.msg})") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start}: not UTF-8") from error
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error
    except ValueError as error:  # an endless number
        raise ValueError(f"is not usable JSON ({error})") from error
    if not isinstance(raw, dict):
        raise ValueError("holds no object")
    return raw


def words_of(error: OSError | ValueError) -> str:
    """What is wrong with a file, to follow its name."""
    if isinstance(error, OSError):
        return f"cannot be read ({error.strerror or error})"
    return str(error)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an `OSError` into a `ConfigError` that names the file."""
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written: {error.strerror or error}",
            hint="check the permissions of the folder",
        ) from error


def write_object(path: Path, raw: Mapping[str, Any]) -> None:
    """Put the object in the file's place, indented by two; folders are made.

    Raises:
        ConfigError: it cannot be written.
    """
    try:
        text = json.dumps(raw, indent=2, ensure_ascii=False) + "\n"
    except RecursionError as error:
        raise ConfigError(f"{path} is nested too deeply; it stays as it is") from error
    text = _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    with writing(path):
        _replace(path, text)


def _replace(path: Path, text: str) -> None:
    real = Path(os.path.realpath(path))  # a link stays one
    real.parent.mkdir(parents=True, exist_ok=True)
    beside = real.with_name(f".{real.name}.tmp")
    try:
        with beside.open("w", encoding="utf-8", newline="") as file:
            with suppress(FileNotFoundError):
                os.fchmod(file.fileno(), stat.S_IMODE(real.stat().st_mode))
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(real)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


def _finite(digits: str) -> float:
    if math.isinf(value := float(digits)):
        raise ValueError("a number is too large")
    return value
