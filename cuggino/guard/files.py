"""Rules for the tools that write files (AUT-220 to AUT-223, CUG-006)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from cuggino.guard.paths import NOTE, STATE_REASON, SYNC_REASON, Paths
from cuggino.guard.places import fold, is_below
from cuggino.guard.policy import Policy
from cuggino.guard.verdict import Part

_KEYS = frozenset({"file_path", "filePath", "notebook_path", "notebookPath"})
_DRIVE = re.compile(r"[A-Za-z]:[/\\]")
_STATE = ".autonoe"


def judge_files(
    policy: Policy, paths: Paths, tool: str, tool_input: Mapping[str, object], cwd: str
) -> Iterator[Part]:
    """Yield a part for each file that the input names."""
    for key, value in values(tool_input):
        if key not in _KEYS or value is None or value == "":
            continue
        if not isinstance(value, str):
            yield Part(f"{tool} {key}", f"{key} is no text: give the path of the file")
            continue
        yield Part(f"{tool} {value}", judge_file(policy, paths, value, cwd))


def judge_file(policy: Policy, paths: Paths, path: str, cwd: str) -> str:
    """Return why a tool may not write the file, or "".

    Backslashes count as separators too and a drive letter is skipped; the path is judged both ways.
    """
    cwds = (cwd,) if cwd else ()
    if not policy.judges_paths:
        return paths.guards(path, cwds)
    windows = path.replace("\\", "/")
    if _DRIVE.match(path):
        # On this system it is also a relative path that contains the drive letter.
        windows = windows[2:]
        reason = paths.write(windows, cwds) or paths.guards(path, cwds)
    else:
        reason = paths.write(path, cwds)
        if "\\" in path:
            reason = reason or paths.write(windows, cwds)
    if reason or paths.is_granted(windows, cwd):
        return reason
    if _STATE in policy.protected and _names_state(paths, windows):
        return STATE_REASON
    if policy.mode == "sync" and paths.resolve(windows, cwd) != f"{paths.project}/{NOTE}":
        return SYNC_REASON
    return ""


def _names_state(paths: Paths, path: str) -> bool:
    """Return whether the path mentions the state folder, even if `..` leaves it again."""
    for top in (paths.project, paths.given):
        if is_below(path, top):
            path = path[len(top) :]
    return any(fold(word) == _STATE for word in path.split("/"))


def values(data: object, *, most: int = 20_000) -> Iterator[tuple[str, object]]:
    """Yield every scalar in nested data, with the key that it is stored under.

    Raises:
        ValueError: there are more than `most`.
    """
    todo: list[tuple[str, object]] = [("", data)]
    count = 0
    while todo:
        key, value = todo.pop()
        count += 1
        if count > most:
            raise ValueError("the input has too many values")
        if isinstance(value, Mapping):
            todo += reversed([(str(name), item) for name, item in value.items()])
        elif isinstance(value, list | tuple):
            todo += reversed([(key, item) for item in value])
        else:
            yield key, value
