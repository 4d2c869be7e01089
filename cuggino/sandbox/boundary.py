"""The boundary that this machine can enforce, found by starting a program in a view."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from cuggino.errors import ProcessError
from cuggino.processes import run_bounded
from cuggino.sandbox.bubblewrap import Overlay, bubblewrap
from cuggino.sandbox.enclosure import Enclosure
from cuggino.sandbox.landlock import landlock
from cuggino.sandbox.search_path import outside_path
from cuggino.sandbox.view import ROWS, RoleView, ViewRole

Engine: TypeAlias = Literal["bubblewrap", "landlock", "none"]

_OWN_OVERLAY = (0, 11)
"""First version of bubblewrap that can mount overlays."""

_TRIAL = ".cuggino-trial"
_OPAQUE = "rmdir x && mkdir x && : > x/y"
"""A folder in place of a removed one: overlays in memory support it from Linux 6.6 for users."""

_TIMEOUT = 30


@dataclass(frozen=True, kw_only=True)
class Boundary:
    """The confinement of the sessions in a project."""

    engine: Engine = "none"
    overlay: Overlay = ""
    """The mechanism that mounts copy-on-write folders; "" if they are read-only instead."""
    program: str = ""
    """The program of the engine."""
    reason: str = ""
    """The reason why a better one is unavailable, or ""."""

    @property
    def name(self) -> str:
        """The name for messages, such as `bubblewrap+overlay`."""
        return f"{self.engine}+overlay" if self.overlay else self.engine

    def holds(self, role: ViewRole) -> bool:
        """Return whether sessions of the role can write only the paths of the role."""
        match self.engine:
            case "bubblewrap":
                return True
            case "landlock":
                return ROWS[role].access != "writes"
            case "none":
                return False

    def enclose(self, view: RoleView, *, scratch: Path | None = None) -> Enclosure | None:
        """Return the enclosure of a view, or None without an engine.

        `scratch` is a folder for temporary files, for engines that cannot give a private one.
        """
        match self.engine:
            case "bubblewrap":
                return bubblewrap(view, bwrap=self.program, overlay=self.overlay)
            case "landlock":
                return landlock(view, scratch=scratch)
            case "none":
                return None


NO_BOUNDARY = Boundary(reason="the sandbox is turned off")


def probe(project: Path, *, home: Path | None = None) -> Boundary:
    """Return the best boundary for sessions in the project. Each is tried once per process."""
    return _probed(
        project.resolve(),
        home,
        shutil.which("bwrap", path=outside_path(project, os.environ.get("PATH", ""))),
        sys.platform,
    )


@cache
def _probed(project: Path, home: Path | None, bwrap: str | None, platform: str) -> Boundary:
    if platform != "linux":
        system = "macOS" if platform == "darwin" else platform
        return Boundary(reason=f"there is no engine for {system}")
    reason = "bubblewrap is not installed"
    if bwrap is not None:
        overlays: list[Overlay] = ["native"] if _version(bwrap) >= _OWN_OVERLAY else []
        reasons: list[str] = []
        for overlay in (*overlays, "loader", ""):
            found = Boundary(
                engine="bubblewrap",
                overlay=overlay,
                program=bwrap,
                reason=f"no overlay: {reasons[0]}" if reasons and not overlay else "",
            )
            failure = _failure(found, project, home)
            if not failure:
                return found
            reasons.append(failure)
        reason = f"the system does not permit bubblewrap ({reasons[-1]})"
    found = Boundary(engine="landlock", reason=reason)
    failure = _failure(found, project, home)
    return found if not failure else Boundary(reason=f"{reason}, nor Landlock ({failure})")


def _version(bwrap: str) -> tuple[int, ...]:
    try:
        printed = run_bounded((bwrap, "--version"), seconds=_TIMEOUT)
    except ProcessError:
        return ()
    return tuple(int(number) for number in re.findall(r"\d+", printed.text)[:2])


def _failure(boundary: Boundary, project: Path, home: Path | None) -> str:
    """Return the reason that the boundary does not work in the project, or ""."""
    # The prefix of private files: a later process removes it if this one is killed.
    with tempfile.TemporaryDirectory(prefix="cuggino-session-trial-") as name:
        folder = Path(name).resolve()
        (folder / "x").mkdir()
        if boundary.overlay:
            why = _tried(boundary, folder, home, _OPAQUE) or _tried(
                boundary, project, home, f": > {_TRIAL}"
            )
        else:
            why = _tried(boundary, folder, home, f"! (: > {_TRIAL}) 2>/dev/null")
        if not why and ((folder / "x/y").exists() or (folder / _TRIAL).exists()):
            why = "writes are not prevented"
    if boundary.overlay and (project / _TRIAL).exists():
        (project / _TRIAL).unlink()
        why = "writes do not vanish"
    return why


def _tried(boundary: Boundary, project: Path, home: Path | None, command: str) -> str:
    view = RoleView(role="reviewing", project=project, home_folder=home, copy_on_write=True)
    enclosure = boundary.enclose(view)
    assert enclosure is not None
    # An uninterrupted command: killed during setup, bubblewrap leaves a process that waits for it
    # indefinitely.
    try:
        done = run_bounded(
            ("/bin/sh", "-c", command), seconds=_TIMEOUT, cwd=project, enclosure=enclosure
        )
    except ProcessError as error:
        return str(error)
    if done.code == 0:
        return ""
    return (done.errors.strip().splitlines() or [f"exit code {done.code}"])[-1]
