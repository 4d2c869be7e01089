"""The folders of installed programs, which may be in a folder for temporary files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path


def installed(env: Mapping[str, str], programs: Iterable[str] = ()) -> Iterator[Path]:
    """Yield the folders of Python, cuggino, the programs on the PATH and the given ones."""
    yield from (Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[2])
    yield from (Path(entry) for entry in env.get("PATH", "").split(":") if entry[:1] == "/")
    for program in programs:
        for path in (Path(program), Path(os.path.realpath(program))):
            packages = [parent for parent in path.parents if parent.name == "node_modules"]
            yield packages[-1] if packages else path.parent
