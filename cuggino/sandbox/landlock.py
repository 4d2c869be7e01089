"""Landlock (Linux without user namespaces): an allow-list of writable paths.

It confines the roles that only read: their tests and builds cannot write in the project. A role
that writes the project may write all of it: protected files are left to verification, as an
allow-list of the other files would permit no commit and no new file in the project's folder.
Landlock hides nothing, and does not control modes, owners and times of files.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from cuggino.sandbox.enclosure import Enclosure, loader
from cuggino.sandbox.view import RoleView

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm")


def landlock(view: RoleView, *, scratch: Path | None = None) -> Enclosure:
    """Return the enclosure of a view; `scratch` is its folder for temporary files.

    Without it, the system's temporary folders are writable, unless they contain the project.
    """
    temporary = (scratch,) if scratch else view.temporary
    write = [*view.writable, *view.state, *([view.folder] if view.folder else [])]
    write += [path for path in temporary if scratch or not view.project.is_relative_to(path)]
    write += [Path("/dev", name) for name in _DEVICES]
    orders = {"write": sorted({str(path.resolve()) for path in write})}
    words = (sys.executable, "-I", "-S", str(loader()), json.dumps(orders), "--")
    return Enclosure(words=words, env=_environment(view, scratch), shows=view.show)


def _environment(view: RoleView, scratch: Path | None) -> dict[str, str]:
    """Return variables that make programs write outside the project."""
    # Claude Code has its own variable, and does not start without a writable folder.
    env = {"TMPDIR": str(scratch), "CLAUDE_CODE_TMPDIR": str(scratch)} if scratch else {}
    if view.project not in view.writable:
        env["PYTHONDONTWRITEBYTECODE"] = "1"
        if scratch:
            env["CARGO_TARGET_DIR"] = str(scratch / "target")
    return env
