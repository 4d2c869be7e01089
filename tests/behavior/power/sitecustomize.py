"""A power cut at an fsync, for a program in Python: this folder is on its PYTHONPATH.

The model of the disk is a strict one that file systems allow: at a cut, everything is as it was at
the sync before, and beyond that only the file that is being synced. `POWER_FOLDER` has the counter
`fsyncs`, a byte for each fsync and syncfs; at number `POWER_AT` of them `disk` is what is left of
the project, `cut` is made, and the program stands still until its machine is gone, which is up to
the engine.
"""

import ctypes
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

_sync = os.fsync


def _fsync(file: int) -> None:
    with (folder / "fsyncs").open("ab") as count:
        count.write(b"x")
        number = count.tell()
    if number < at:
        _sync(file)
        if number == at - 1:
            with suppress(OSError):  # what goes meanwhile, and what is no file
                shutil.copytree(project, folder / "disk", symlinks=True)
        return
    synced = Path(f"/proc/self/fd/{file}").readlink()
    if synced.is_relative_to(project) and synced.is_file():
        kept = folder / "disk" / synced.relative_to(project)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(synced, kept)
    (folder / "cut").touch()
    time.sleep(3600)


class _Library(ctypes.CDLL):
    def __getattr__(self, name: str) -> Any:
        return _fsync if name == "syncfs" else super().__getattr__(name)


if "POWER_FOLDER" in os.environ:
    folder = Path(os.environ["POWER_FOLDER"])
    project, at = folder.parent / "project", int(os.environ["POWER_AT"])
    os.fsync = lambda fd: _fsync(fd if isinstance(fd, int) else fd.fileno())
    ctypes.CDLL = _Library  # type: ignore[misc]  # for whoever is imported later
