"""Role views: what each role may write, independent of the engine that enforces it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from cuggino.files import state_folder
from cuggino.guard import CACHES, NOTE, Role
from cuggino.sandbox.git_config import named_by_settings
from cuggino.sandbox.home import home_of, named_paths
from cuggino.sandbox.logins import login_files
from cuggino.sandbox.repository import (
    GIT_PROTECTED,
    git_folders,
    shared_objects,
    submodule_settings,
    top_of,
)
from cuggino.sandbox.resolving import Resolver
from cuggino.sandbox.search_path import own_programs

ViewRole: TypeAlias = Role | Literal["pm"]
"""A role of a loop, or `pm` for a session with the project manager."""

Access: TypeAlias = Literal["writes", "looks", "reads"]
"""`looks`: copy-on-write, so that tests and builds work and their files vanish."""


class _Row(NamedTuple):
    """The paths that a role may write, relative to the project."""

    access: Access
    specs: bool = False
    """True if the specifications may be written."""
    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


_ISSUES = (".cuggino/spec-issues", ".cuggino/backlog", ".cuggino/tbd")
_BROWSER = (".cuggino/browser",)
"""The folder for the pictures of the browser that tests a project."""
_REQUIREMENTS = "docs/requirements"

ROWS: Mapping[ViewRole, _Row] = MappingProxyType(
    {
        # cuggino run; the plan and the review are written to the session's own folder
        "planning": _Row("looks"),
        "implementing": _Row("writes"),
        "reviewing": _Row("looks"),
        # cuggino watch
        "audit": _Row("looks"),
        # cuggino pm: a person edits at the same time, and sees the changes
        "pm": _Row("reads", specs=True, folders=_ISSUES, files=(".cuggino/memory.md",)),
        # cuggino deliver; .autonoe/status.json is written by cuggino alone
        "initializer": _Row("writes", specs=True, folders=_BROWSER),
        "coding": _Row("writes", specs=True, folders=_BROWSER),
        "sync": _Row("looks", files=(NOTE,)),
        "verify": _Row("looks", folders=_BROWSER, files=(NOTE,)),
        # cuggino loop: the jobs and specifications are in the folder of the requirements
        "plan": _Row("looks", specs=True, folders=(_REQUIREMENTS,)),
        "build": _Row("writes", specs=True),
        "judge": _Row("looks"),
    }
)
"""The paths that each role may write, by loop."""

PROTECTED = (
    *(".autonoe", ".cuggino", ".cuggino.json"),
    *(".claude", ".mcp.json", ".codex", ".agents", ".gemini", ".opencode", "opencode.json"),
    *("opencode.jsonc", ".github/copilot", ".github/hooks", ".lopen"),
    *(".qwen", ".kimi-code", ".vibe"),
)
"""Files and folders of a project that decide what agents and cuggino do."""

INSTRUCTIONS = (
    *("AGENTS.md", "AGENTS.override.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "QWEN.md"),
    *(".clinerules", ".cursor", ".cursorrules", ".vscode", ".windsurfrules"),
    *(".github/copilot-instructions.md", ".github/instructions", ".github/agents"),
    *(".github/prompts", ".github/skills"),
)
"""Files and folders that instruct agents and editors, and that an implementer may write as work."""

SNAPSHOTS = "refs/cuggino/snapshots"
"""The references by which an undo finds what was there: there may be thousands."""

_RECORDS = ("journal", "control", "snapshots", "kept", "lock", "lock.json")
"""The parts of `.cuggino` that only cuggino writes."""

SOCKETS = ("/run/docker.sock", "/run/containerd", "/run/podman", "/run/dbus", "/run/systemd")
"""Services that act outside of any view."""


@dataclass(frozen=True, kw_only=True)
class RoleView:
    """The file system as the processes of one session see it.

    Everything can be read except `hidden`; only `writable`, `state`, `folder` and a private
    temporary folder can be written. If paths contain each other, the innermost applies.
    """

    role: ViewRole
    project: Path
    home_folder: Path | None = None
    copy_on_write: bool = False
    """True if writes in the project succeed and vanish; otherwise they fail."""
    writable: tuple[Path, ...] = ()
    read_only: tuple[Path, ...] = ()
    """Read-only parts of the paths above."""
    folder: Path | None = None
    """The session's own folder, for its results."""
    state: tuple[Path, ...] = ()
    """The state of the agent's program, and caches."""
    visible: tuple[Path, ...] = ()
    """Files and folders that can be read, even in a folder for temporary files."""
    hide: tuple[str, ...] = ()
    """More paths that cannot be read; `~` is the home folder."""
    show: tuple[str, ...] = ()
    """Paths that are accessible although they would be hidden, such as the socket of a service."""
    hidden: tuple[Path, ...] = ()
    shown: tuple[Path, ...] = ()
    replaced: tuple[tuple[Path, Path], ...] = ()
    """Files of the project, each with the one that is shown in its place."""

    def with_program(
        self,
        *,
        home: Path | None = None,
        state: Iterable[Path] = (),
        visible: Iterable[Path] = (),
        read_only: Iterable[Path] = (),
        shown: Iterable[Path] = (),
    ) -> RoleView:
        """Return the view for a program with this home and state, which reads these files.

        `shown` are paths that it can read although a folder around them is hidden.
        """
        view = self
        if home is not None and home != self.home_folder:
            view = replace(self.at_home(home), state=tuple(_caches(home)))
        return replace(
            view,
            state=(*view.state, *state),
            visible=(*view.visible, *visible),
            read_only=(*view.read_only, *read_only),
            shown=(*view.shown, *shown),
        )

    def at_home(self, home: Path | None) -> RoleView:
        """Return the view with this home folder, and what is hidden and shown with it."""
        return replace(
            self,
            home_folder=home,
            hidden=tuple(_hidden(self.hide, home)),
            shown=named_paths(self.show, home),
        )

    @property
    def temporary(self) -> tuple[Path, ...]:
        """Return the folders for temporary files, each replaced by a private one."""
        own = Path(os.environ.get("TMPDIR") or "/tmp")
        folders = [Path("/tmp"), Path("/var/tmp"), *([own] if own.is_absolute() else [])]
        real = [folder.resolve() for folder in folders if folder.is_dir()]
        keep = (self.home_folder, self.project) if self.home_folder else (self.project,)
        return tuple(f for f in dict.fromkeys(real) if f not in keep and f != Path("/"))


def role_view(
    role: ViewRole,
    *,
    project: Path,
    specs: str = ".specs",
    home: Path | None = None,
    folder: Path | None = None,
    hide: Sequence[str] = (),
    show: Sequence[str] = (),
) -> RoleView:
    """Return the view of a role. Reads the disk once, before the session starts.

    `folder` is the session's own folder. `hide` are additional paths that cannot be read, and
    `show` are paths to exempt from hiding; `~` is `home`. A view cannot protect paths that do not
    exist yet.
    """
    root = project.resolve()
    row = ROWS[role]
    home = home.resolve() if home is not None and home.is_dir() else None
    granted = [root / name for name in (*row.folders, *row.files)]
    writable: list[Path] = []
    if row.access == "writes":
        writable += [root, *git_folders(root)]
    writable += granted
    if row.specs:
        writable.append((root / specs).resolve())
    protected = list(protected_paths(root, None if row.specs else specs))
    if row.access == "writes":
        protected += (git / SNAPSHOTS for git in git_folders(root))
    read_only = [] if row.access == "looks" else protected
    return RoleView(
        role=role,
        project=root,
        copy_on_write=row.access == "looks",
        writable=tuple(dict.fromkeys(writable)),
        read_only=tuple(dict.fromkeys(path for path in read_only if path not in granted)),
        folder=folder.resolve() if folder is not None else None,
        state=tuple(_caches(home)),
        visible=(top_of(root), *(at for git in git_folders(root) for at in shared_objects(git))),
        hide=tuple(hide),
        show=tuple(show),
    ).at_home(home)


def git_view(
    folder: Path, *, home: Path | None = None, hide: Sequence[str] = (), show: Sequence[str] = ()
) -> RoleView:
    """Return the view of git in a folder: it may write the repository around it, but no settings.

    Git may start programs that an agent has named. They get no logins, and neither the records of
    runs nor what git runs or obeys can be written.
    """
    top = top_of(folder.resolve())
    home = home.resolve() if home is not None and home.is_dir() else None
    folders = git_folders(top)
    read_only = [top / ".git"] if (top / ".git").is_file() else []
    for git in folders:
        read_only += [*joined(git, *GIT_PROTECTED), *submodule_settings(git)]
    read_only += named_by_settings(top, folders, home)
    read_only += joined(folder.resolve() / ".cuggino", *_RECORDS)
    return RoleView(
        role="implementing",
        project=top,
        writable=(top, *folders),
        read_only=tuple(read_only),
        visible=tuple(shared for git in folders for shared in shared_objects(git)),
        hide=tuple(hide),
        show=tuple(show),
    ).at_home(home)


def writes_files(role: ViewRole) -> bool:
    """Return whether a session with this role may write the files of the project itself."""
    return ROWS[role].access == "writes"


def writes_project(role: ViewRole) -> bool:
    """Return whether a session with this role may change files of the project."""
    row = ROWS[role]
    return row.access == "writes" or row.specs or bool(row.folders)


def make_granted(view: RoleView) -> None:
    """Create the files and folders that the role may write, so that they can be mounted.

    Raises:
        OSError: a file or folder cannot be created.
    """
    row = ROWS[view.role]
    for name in row.folders:
        (view.project / name).mkdir(parents=True, exist_ok=True)
    for name in row.files:
        path = view.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    if view.folder is not None:
        view.folder.mkdir(parents=True, exist_ok=True)


def has_inside(root: Path, specs: str, resolver: Resolver) -> bool:
    """Return whether the specifications are not the project itself or around it."""
    place = resolver.text(str(root / specs)).rstrip("/")
    return not f"{root}/".startswith(f"{place}/")


def protected_paths(
    root: Path, specs: str | None, resolver: Resolver | None = None, *, has_view: bool = True
) -> Iterator[Path]:
    """Yield paths that no agent may write: settings, git's hooks and config, specifications.

    If git has no view, also the programs of the project that it may start.
    """
    resolver = resolver or Resolver()
    names = set(PROTECTED)
    with suppress(OSError), os.scandir(root) as entries:
        names.update(entry.name for entry in entries if entry.name.startswith(".cuggino"))
    yield from joined(root, *sorted(names))
    if specs is not None and has_inside(root, specs, resolver):
        yield root / specs
    if (root / ".git").is_file():
        yield root / ".git"
    folders = git_folders(root, resolver)
    for git in folders:
        yield from joined(git, *GIT_PROTECTED)
        yield from submodule_settings(git)
    yield from named_by_settings(root, folders, home_of(os.environ), has_view=has_view)
    yield from own_programs(root)


def instruction_paths(root: Path) -> tuple[Path, ...]:
    """Return the paths that instruct agents, and that an implementer may write as work."""
    return joined(root, *INSTRUCTIONS)


@lru_cache(maxsize=256)
def joined(folder: Path, *names: str) -> tuple[Path, ...]:
    """Return cached paths in the folder, as creating them takes time."""
    return tuple(folder / name for name in names)


def _caches(home: Path | None) -> Iterator[Path]:
    if home is not None:
        for cache in CACHES:
            yield home / cache.removeprefix("~/")


def _hidden(hide: Iterable[str], home: Path | None) -> Iterator[Path]:
    yield from map(Path, SOCKETS)
    yield Path(f"/run/user/{os.getuid()}")
    if (own := state_folder(os.environ)) is not None:
        yield own
    yield from login_files(os.environ, home)
    yield from named_paths(hide, home)
