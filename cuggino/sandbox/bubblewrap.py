"""Bubblewrap (Linux): a mount namespace with the view, and a PID namespace that ends the tree."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from cuggino.programs import SYSTEM_CALLS, program
from cuggino.sandbox.enclosure import Enclosure, loader
from cuggino.sandbox.repository import git_folders
from cuggino.sandbox.view import RoleView

Overlay: TypeAlias = Literal["", "native", "loader"]
"""The mechanism that mounts copy-on-write folders: none, bubblewrap (from 0.11), or `loader`."""

KEPT = ("CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_CHOWN", "CAP_SETFCAP", "CAP_KILL")
"""Capabilities that let root write other users' files, and begin a sandbox of its own in a user
namespace (`CAP_SETFCAP`); none of them can mount."""

DEVICES = ("kvm", "dri", "kfd", "fuse", "nvidia*")
_SYS_ADMIN = 21


def bubblewrap(view: RoleView, *, bwrap: str, overlay: Overlay = "") -> Enclosure:
    """Return the enclosure of a view. Reads the disk once, before the session starts."""
    mounts = _Mounts(view, overlay)
    calls = program(SYSTEM_CALLS)
    words = [bwrap, *_namespaces(), "--ro-bind", "/", "/", "--dev", "/dev", *_devices()]
    words += ["--proc", "/proc", *mounts.words(), "--"]
    if overlay == "loader" and mounts.overlays:
        orders = {"overlays": mounts.overlays, "kept": mounts.kept()}
        words = [sys.executable, "-I", "-S", str(loader()), json.dumps(orders), *words]
    return Enclosure(
        words=tuple(words),
        # git does not look for a repository beyond a mount, such as that of a project in it.
        env={"TMPDIR": "/tmp", "GIT_DISCOVERY_ACROSS_FILESYSTEM": "1"},
        shows=view.show,
        filter=calls if calls.stat().st_size else None,
        reports=True,
        namespace=True,
    )


def can_mount() -> bool:
    """Return whether this process may mount without a user namespace."""
    if os.getuid() != 0:
        return False
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    effective = next(line for line in status.splitlines() if line.startswith("CapEff"))
    return bool(int(effective.split()[1], 16) >> _SYS_ADMIN & 1)


def _namespaces() -> list[str]:
    """Return the options that isolate processes and drop every capability to undo it.

    bubblewrap keeps all capabilities when started by root. A new user namespace is not an option:
    root could not write files of other users there.
    """
    words = ["--unshare-pid", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL"]
    if not can_mount():
        return ["--unshare-user", *words]
    return [*words, *(word for name in KEPT for word in ("--cap-add", name))]


def _devices() -> Iterator[str]:
    for pattern in DEVICES:
        for path in sorted(Path("/dev").glob(pattern)):
            yield from ("--dev-bind-try", str(path), str(path))


class _Mounts:
    """The mounts over the read-only root, outer paths before inner ones."""

    def __init__(self, view: RoleView, overlay: Overlay) -> None:
        self._view = view
        self._temporary = view.temporary
        self._closed = [path.resolve() for path in view.read_only]
        self._overlay = overlay
        self._at: dict[Path, tuple[str, ...]] = {}
        self.overlays: list[str] = []
        """The copy-on-write folders."""
        self._collect()

    def words(self) -> list[str]:
        """Return the options of bubblewrap."""
        ordered = sorted(self._at.items(), key=lambda item: len(item[0].parts))
        return [word for _, words in ordered for word in words]

    def kept(self) -> list[str]:
        """Return the paths within copy-on-write folders that are mounted as they are."""
        inside = [
            str(path)
            for path, words in self._at.items()
            if words[0] in ("--bind", "--ro-bind") and words[1] == str(path)
            if any(path.is_relative_to(folder) for folder in self.overlays)
            if str(path) not in self.overlays
        ]
        return sorted(inside)

    def _collect(self) -> None:
        view = self._view
        for folder in self._temporary:
            self._at[folder] = ("--tmpfs", str(folder))
        for path in view.visible:
            if self._is_apart(path):  # it may be gone by then, as during `pip install -U`
                self._bind(path, "--ro-bind-try")
        if view.home_folder is not None:
            if self._overlay:
                self._cover(view.home_folder)
            elif self._is_apart(view.home_folder):
                self._bind(view.home_folder, "--ro-bind")
        for path in view.state:
            self._bind(path)
        if view.copy_on_write and self._overlay:
            for folder in (view.project, *git_folders(view.project)):
                if folder == view.project or not folder.is_relative_to(view.project):
                    self._cover(folder)
        elif view.project not in view.writable:
            for folder in (view.project, *git_folders(view.project)):
                self._bind(folder, "--ro-bind")
        for path in view.writable:
            self._bind(path)
        for path in view.read_only:
            self._protect(path)
        for path, shown in view.replaced:
            self._replace(path, shown)
        if view.folder is not None:
            self._bind(view.folder)
        self._show_agent_socket()
        for path in view.hidden:
            self._hide(path)
        for path in view.shown:
            self._bind(path, "--ro-bind")

    def _bind(self, path: Path, option: str = "--bind") -> None:
        real = path.resolve()
        if real.exists():
            self._at[real] = (option, str(real), str(real))

    def _cover(self, folder: Path) -> None:
        """Show the folder copy-on-write."""
        name = str(folder)
        self.overlays.append(name)
        native = ("--overlay-src", name, "--tmp-overlay", name)
        self._at[folder] = native if self._overlay == "native" else ("--bind", name, name)

    def _protect(self, path: Path) -> None:
        """Show the path read-only, and prevent its parents from being renamed.

        Otherwise `mv docs x; mkdir -p docs/specs` would replace `docs/specs`. A link is protected
        at its target; verification restores the link itself.
        """
        if not path.exists():
            return
        real = path.resolve()
        self._at[real] = ("--ro-bind", str(real), str(real))
        for root in (*self._view.writable, *self._view.state):
            for parent in real.parents:
                if parent == root or not parent.is_relative_to(root):
                    continue
                if not any(parent.is_relative_to(other) for other in self._closed):
                    self._at.setdefault(parent, ("--bind", str(parent), str(parent)))

    def _replace(self, path: Path, shown: Path) -> None:
        """Show another file at the path; one that leads out of the project stays."""
        real = path.resolve()
        if real.is_file() and real.is_relative_to(self._view.project):
            self._at[real] = ("--ro-bind", str(shown), str(real))

    def _hide(self, path: Path) -> None:
        with suppress(PermissionError):  # a path that this user cannot read needs no hiding
            real = path.resolve()
            if real.is_dir():
                self._at[real] = ("--tmpfs", str(real))
            elif real.exists():
                self._at[real] = ("--ro-bind", "/dev/null", str(real))

    def _is_apart(self, path: Path) -> bool:
        """Return whether a private temporary folder would hide the path."""
        real = path.resolve()
        return any(real.is_relative_to(folder) for folder in self._temporary)

    def _show_agent_socket(self) -> None:
        """Show the socket of the user's ssh-agent, which is in a hidden folder."""
        socket = Path(os.environ.get("SSH_AUTH_SOCK") or "/nowhere")
        if socket.is_socket():
            self._bind(socket, "--ro-bind")
