"""Seatbelt (macOS): a profile per role, in which the last matching rule decides.

The profile was written from documentation and has not been tested. It has no copy-on-write: roles
that only read cannot write in the project.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from cuggino.sandbox.enclosure import Enclosure
from cuggino.sandbox.view import RoleView

SANDBOX_EXEC = "/usr/bin/sandbox-exec"


def seatbelt(view: RoleView, *, scratch: Path | None = None) -> Enclosure:
    """Return the enclosure of a view; `scratch` is its folder for temporary files."""
    env = {"TMPDIR": str(scratch)} if scratch else {}
    words = (SANDBOX_EXEC, "-p", profile(view, scratch=scratch), "--")
    return Enclosure(words=words, env=env, shows=view.show)


def profile(view: RoleView, *, scratch: Path | None = None) -> str:
    """Return the profile of a view, which also protects paths that do not exist yet."""
    temporary = (scratch,) if scratch else view.temporary
    own = (view.folder,) if view.folder else ()
    protected = [path for path in view.read_only if path not in view.writable]
    parents = [
        parent
        for path in protected
        for root in view.writable
        for parent in path.parents
        if parent.is_relative_to(root)
    ]
    lines = [
        "(version 1)",
        "(allow default)",
        "(deny file-write*)",
        '(allow file-write* (subpath "/dev"))',
        *_rules("allow file-write*", (*temporary, *view.state, *_outer(view))),
        *_rules("deny file-write*", protected),
        *_rules("deny file-write-unlink", parents, kind="literal"),
        *_rules("allow file-write*", (*_inner(view), *own)),
        *_rules("deny file-read*", view.hidden),
        *_rules("allow file-read*", view.shown),
    ]
    return "\n".join(lines) + "\n"


def _outer(view: RoleView) -> list[Path]:
    """Return writable paths that may contain protected ones."""
    return [path for path in view.writable if path not in _inner(view)]


def _inner(view: RoleView) -> list[Path]:
    """Return writable paths within protected ones."""
    return [
        path
        for path in view.writable
        if any(path != other and path.is_relative_to(other) for other in view.read_only)
    ]


def _rules(rule: str, paths: Iterable[Path], *, kind: str = "subpath") -> Iterator[str]:
    for path in dict.fromkeys(paths):
        text = str(path).replace("\\", "\\\\").replace('"', '\\"')
        yield f'({rule} ({kind} "{text}"))'
