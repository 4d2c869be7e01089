"""The programs that work beside a run, such as the guard's hook, in a copy of their own.

An agent may start the hook hours after its run has begun. The programs and the modules that they
import are therefore copied before the first agent starts: a run goes on when its package is
replaced or removed. The packages of the copy are empty, so that a program loads only the modules
that it names.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
import py_compile
import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from cuggino.files import state_folder
from cuggino.system_calls import system_call_filter

_PACKAGE = Path(__file__).parent
_COPIED = (
    "domain/deliverable_tools.py",
    "domain/deliverables.py",
    "errors.py",
    "guard/**/*.py",
    "mcp_server.py",
    "agents/base/calls.py",
    "agents/base/hook.py",
    "agents/claude/hook.py",
    "agents/codex/hook.py",
    "agents/gemini/hook.py",
    "agents/gemini/tools.py",
    "agents/opencode/hook.py",
    "agents/opencode/tools.py",
    "agents/scripted/mcp.py",
    "agents/scripted/process.py",
    "sandbox/loader.py",
    "processes/guardian.py",
    "processes/process_tree.py",
)
"""The programs and what they import, as patterns of paths in the package."""
SYSTEM_CALLS = "sandbox/system_calls.bpf"
"""The file with the filter of system calls, as the kernel reads it; empty where there is none."""
_UNUSED = 90 * 24 * 3600
"""Seconds after which a copy that nobody has used is removed."""


def program(path: str) -> Path:
    """Return the copy of a program, such as `agents/base/hook.py`; see `programs_folder`."""
    return programs_folder() / "cuggino" / path


def programs_folder() -> Path:
    """Return the folder of the copy, for `sys.path`.

    It is made once for each version, in the state folder of the user, and compared with what this
    process has loaded before it is used. Without a state folder it is a temporary one.
    """
    folder = _copy()
    if not folder.exists():  # removed under this process
        _copy.cache_clear()
        folder = _copy()
    return folder


@cache
def _contents() -> Mapping[str, bytes]:
    """Return the files of the copy by path, as they are when the first one is needed."""
    contents: dict[str, bytes] = {}
    for pattern in _COPIED:
        for source in sorted(_PACKAGE.glob(pattern)):
            path = Path("cuggino", source.relative_to(_PACKAGE))
            is_door = source.name == "__init__.py"
            contents[str(path)] = b"" if is_door else source.read_bytes()
            for parent in path.parents[:-1]:
                contents[str(parent / "__init__.py")] = b""
    contents[f"cuggino/{SYSTEM_CALLS}"] = system_call_filter()
    return contents


@cache
def _copy() -> Path:
    contents = _contents()
    digest = hashlib.sha256(repr(sorted(contents.items())).encode()).hexdigest()[:16]
    state = state_folder(os.environ)
    if state is not None:
        folder = state / "programs" / digest
        with suppress(OSError):
            if not _is_whole(folder, contents):
                _replace(folder, contents)
                _remove_old(folder.parent)
            os.utime(folder)
            return folder
    folder = Path(tempfile.mkdtemp(prefix="cuggino-programs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _write(folder, contents)
    return folder


def _is_whole(folder: Path, contents: Mapping[str, bytes]) -> bool:
    try:
        return all((folder / path).read_bytes() == content for path, content in contents.items())
    except OSError:
        return False


def _replace(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Put a new copy in the place of the folder, at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".new-"))
    try:
        _write(fresh, contents)
        if folder.exists():
            folder.rename(fresh / "replaced")
        fresh.rename(folder)
        shutil.rmtree(folder / "replaced", ignore_errors=True)
    except OSError:
        if not _is_whole(folder, contents):  # another process may have been faster
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _remove_old(folder: Path) -> None:
    """Remove the copies of versions that no process has used for a long time."""
    for copy in folder.iterdir():
        if copy.stat().st_mtime < time.time() - _UNUSED:
            shutil.rmtree(copy, ignore_errors=True)


def _write(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write the files, each with its bytecode; other users may read them."""
    folder.chmod(0o755)
    for path, content in contents.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        source = _PACKAGE.parent / path
        if content and target.suffix == ".py":
            with suppress(OSError):
                shutil.copystat(source, target)  # the bytecode is valid for a time and a size
            bytecode = Path(importlib.util.cache_from_source(str(target)))
            bytecode.parent.mkdir(exist_ok=True)
            try:
                shutil.copyfile(importlib.util.cache_from_source(str(source)), bytecode)
            except OSError:
                py_compile.compile(str(target), quiet=2)
