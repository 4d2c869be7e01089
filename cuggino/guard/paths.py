# ruff: noqa: PTH100, PTH114, PTH117, PTH118
# Importing pathlib would dominate the startup, which every tool call pays for.
"""Rules for writing files, however their paths are spelled.

A path is judged by where a write to it would end up: symbolic links, `..` and doubled slashes are
resolved both as the kernel does it and as programs do that shorten `a/../b` to `b` first. Hard
links cannot be detected: a second name of a protected file that existed before looks like any file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from typing import Literal, TypeAlias

from cuggino.guard.places import (
    fold,
    is_below,
    passes,
    real_link,
    real_path,
    temporary_folders,
    unusable,
)
from cuggino.guard.policy import PROTECTED, Policy

NOTE = ".autonoe-note.md"
"""The only file that a session in `sync` mode may write (AUT-223)."""

_Use: TypeAlias = Literal["write", "output", "replace", "remove"]
_DEVICES = re.compile(r"/dev/(null|zero|full|tty|stdout|stderr|fd/[12])")
# Linux reopens other descriptors, also for writing: `3< file > /dev/fd/3` writes file.
_MOST_FOLDERS = 64
STATE_REASON = "Direct writes to .autonoe/ directory are not allowed. Use StatusTool instead."
SYNC_REASON = f"Sync mode only allows writing to {NOTE}"
_HINTS = {
    ".cuggino": "cuggino itself writes what is in it; declare what it should know in your answer",
    ".git": "only git itself may write there; use git commands",
    ".claude": "these settings belong to the user; describe in your answer what should change",
    ".mcp.json": "these settings belong to the user; describe in your answer what should change",
}


class Paths:
    """The path rules of a policy. Reads the disk and changes nothing.

    If the policy leaves the paths of writes to a sandbox, only those are judged that an agent's
    guard has added for its own files, such as its log of verdicts, which can be written there.

    `cwds` are the absolute folders in which the writing program may be running. A relative path
    must be allowed in each of them and is denied when there is none. Methods return the reason for
    a denial, or "".
    """

    def __init__(self, policy: Policy, *, temporary: Collection[str] | None = None) -> None:
        """Create the rules; `temporary` replaces the system's folders for scratch files."""
        self._policy = policy
        self.project = real_path(os.path.abspath(policy.project))
        self.given = os.path.abspath(policy.project)
        found = temporary_folders() if temporary is None else temporary
        self._temporary = tuple(dict.fromkeys(real_path(os.path.abspath(path)) for path in found))
        protected = [name for entry in policy.protected if (name := entry.strip("/"))]
        if not policy.judges_paths:
            protected = [name for name in protected if name not in PROTECTED]
        self.is_idle = not (policy.judges_paths or protected)
        """True if no path is denied."""
        self._names = {fold(name): name for name in protected if "/" not in name}
        self._entries = [self._place(name) for name in protected if "/" in name]
        self._read_only = [(entry, self._place(entry)) for entry in policy.read_only]
        self._granted = [self._place(entry)[0] for entry in policy.granted]
        self._apart = [real_path(os.path.abspath(folder)) for folder in policy.apart]
        writable = (NOTE,) if policy.mode == "sync" else policy.writable
        self._writable = None if writable is None else [self._place(entry)[0] for entry in writable]

    def write(self, path: str, cwds: Collection[str]) -> str:
        """Return why the file must not be written (AUT-170, AUT-214, AUT-220, CUG-006)."""
        return "" if _DEVICES.fullmatch(path) else self._judge(path, cwds, "write")

    def output(self, path: str, cwds: Collection[str]) -> str:
        """Return why no role may write there: the place is protected or outside the project."""
        return "" if _DEVICES.fullmatch(path) else self._judge(path, cwds, "output")

    def replace(self, path: str, cwds: Collection[str]) -> str:
        """Return why the entry of the folder must not be made or replaced.

        A link is replaced itself; its target does not matter.
        """
        return self._judge(path, cwds, "replace")

    def remove(self, path: str, cwds: Collection[str]) -> str:
        """Return why the file or folder must not be removed or moved away (AUT-215).

        A link is removed itself; its target does not matter.
        """
        return self._judge(path, cwds, "remove")

    def enter(self, path: str, cwds: Collection[str]) -> frozenset[str]:
        """Return the folders that a script may be in after entering the folder.

        Every folder may be entered and read. If the path cannot be resolved the set is empty, and
        no relative path can be written from there.
        """
        if unusable(path):
            return frozenset()
        places: set[str] = set()
        for cwd in [""] if os.path.isabs(path) else cwds:
            joined = os.path.join(cwd, path)
            if self._is_scratch(real_path(joined)) and self._leaves_project(path, cwd):
                return frozenset()
            # For `..` bash uses the logical path, `cd -P` and the kernel the real one.
            places |= {os.path.normpath(joined), real_path(joined)}
        return frozenset(places) if len(places) <= _MOST_FOLDERS else frozenset()

    def resolve(self, path: str, cwd: str) -> str:
        """Return the target of the path: links of existing parts resolved, the rest as written."""
        return real_path(os.path.join(cwd, path))

    def is_inside(self, path: str, cwd: str) -> bool:
        """Return whether the path leads into the project or is the project."""
        return is_below(self.resolve(path, cwd), self.project)

    def is_own_repository(self, folder: str) -> bool:
        """Return whether git may change the repository of the folder: the project's, or scratch."""
        place = real_path(folder)
        if is_below(place, self.project):
            return True
        top = self.project
        while top != "/" and not os.path.exists(os.path.join(top, ".git")):  # noqa: PTH110
            top = os.path.dirname(top)  # noqa: PTH120
        return (top != "/" and is_below(place, top)) or self._is_scratch(place)

    def places(self) -> dict[str, str]:
        """Return the places of the protected and read-only paths by name, without git's folder."""
        found = {name: os.path.join(self.project, name) for name in self._names.values()}
        found.pop(".git", None)
        found |= {os.path.relpath(forms[0], self.project): forms[0] for forms in self._entries}
        found |= {entry: forms[0] for entry, forms in self._read_only}
        return {name: place for name, place in found.items() if place not in self._granted}

    def is_granted(self, path: str, cwd: str) -> bool:
        """Return whether the role was granted the path explicitly."""
        place = self.resolve(path, cwd)
        return any(is_below(place, granted) for granted in self._granted)

    def guards(self, path: str, cwds: Collection[str]) -> str:
        """Return why the text must not be named because it is or leads to a protected path, or "".

        Use it for text that may or may not be a path: everything that is not protected is allowed.
        """
        if unusable(path):
            return ""
        for cwd in cwds or (self.project,):
            full = os.path.join(cwd, path)
            for place in (real_path(full), real_path(os.path.normpath(full))):
                reason = self._protection(path, place)
                if reason and not any(is_below(place, top) for top in self._granted):
                    return reason
        return ""

    def _judge(self, path: str, cwds: Collection[str], use: _Use) -> str:
        if not self._policy.judges_paths:
            return self.guards(path, cwds)
        if reason := unusable(path):
            return reason
        if os.path.isabs(path):
            return self._judge_in(path, "", use)
        if not cwds:
            return (
                f"Cannot tell in which folder '{path}' would be written: use an absolute path"
                f" below {self.project}, or change the folder in a separate call"
            )
        return next(filter(None, (self._judge_in(path, cwd, use) for cwd in cwds)), "")

    def _judge_in(self, path: str, cwd: str, use: _Use) -> str:
        full = os.path.join(cwd, path)
        if not os.path.isabs(full):
            return f"Path '{path}' is relative to '{cwd}', which is not an absolute path"
        plain = os.path.normpath(full)
        entries = (real_link(full), real_link(plain))
        # A write may follow or replace a link. `link/` is the folder that it leads to.
        follows = use in ("write", "output") or path.endswith("/")
        ends = (real_path(full), real_path(plain)) if follows else ()
        known = ends or map(os.path.dirname, entries)
        if any(os.path.islink(end) for end in known if not end.startswith(("/proc/", "/dev/"))):
            return "Symlink target escapes project directory: the links form a loop"
        escape = (
            f"Path '{path}' escapes project directory: write below {self.project},"
            " or in the temporary folder with an absolute path"
        )
        removes = use == "remove"
        for place in dict.fromkeys((*ends, *entries)):
            if reason := self._judge_place(path, place, escape, use):
                return reason
            if self._is_scratch(place) and (
                self._leaves_project(path, cwd)
                or (removes and cwd and self._policy.level == "full" and not self._holds(cwd))
            ):
                return escape
        return ""

    def _judge_place(self, path: str, place: str, escape: str, use: _Use) -> str:
        if any(is_below(place, granted) for granted in self._granted):
            return ""
        if reason := self._protection(path, place):
            return reason
        if is_below(place, self.project):
            reason = "" if use == "output" else self._permission(path, place)
        else:
            reason = "" if self._is_scratch(place) else escape
        return reason or (self._loss(path, place) if use == "remove" else "")

    def _protection(self, path: str, place: str) -> str:
        """Return why the place is protected, or ""."""
        base = next((b for b in (self.project, *self._temporary) if is_below(place, b)), "/")
        for segment in place[len(base.rstrip("/")) :].split("/"):
            if name := self._names.get(fold(segment)):
                return self._protected(path, name)
        folded = fold(place)
        for entry in self._entries:
            if any(is_below(folded, fold(form)) for form in entry):
                return self._protected(path, os.path.relpath(entry[0], self.project))
        return ""

    def _protected(self, path: str, name: str) -> str:
        top = name.partition("/")[0]
        if top == ".autonoe":
            return STATE_REASON
        if self._policy.granted:
            return self._only(path)
        hint = _HINTS.get(top, "leave it as it is")
        return f"Path '{path}' is protected: {self._who()} must not write {name}; {hint}"

    def _permission(self, path: str, place: str) -> str:
        """Return why the role may not write this place of the project, or ""."""
        if self._writable is not None and not any(is_below(place, form) for form in self._writable):
            if self._policy.mode == "sync":
                return SYNC_REASON
            return self._only(path)
        for entry, forms in self._read_only:
            if any(is_below(fold(place), fold(form)) for form in forms):
                return (
                    f"Path '{path}' is read-only: {self._who()} must not change {entry};"
                    " tell in your answer what should change there"
                )
        return ""

    def _only(self, path: str) -> str:
        may = ", ".join(dict.fromkeys((*self._policy.granted, *(self._policy.writable or ()))))
        if not may:
            return (
                f"Path '{path}' must not be written: {self._who()} may write nothing in the"
                " project; describe in your answer what should change"
            )
        return (
            f"Path '{path}' must not be written: {self._who()} may write only {may};"
            " write there what should change"
        )

    def _loss(self, path: str, place: str) -> str:
        """Return why removing the place would remove too much, or ""."""
        if is_below(self.project, place):
            return f"Path '{path}' is the project itself or above it: list the files in it"
        if place in self._temporary:
            return f"Path '{path}' is a temporary folder itself: list the files in it"
        forms = [form for entry in self._entries for form in entry]
        forms += [form for _, entry in self._read_only for form in entry]
        folded = fold(place)
        for form in forms:
            if is_below(fold(form), folded):
                name = os.path.relpath(form, self.project)
                return f"Path '{path}' holds {name}, which must stay: list the other files in it"
        return ""

    def _who(self) -> str:
        role = self._policy.role
        return f"the {role} agent" if role else "an agent"

    def _place(self, entry: str) -> tuple[str, ...]:
        """Return the location of a policy entry: its own name, and its target if it is a link.

        Only the first may grant a permission, because an agent may have made the link.
        """
        full = os.path.join(self.project, entry.rstrip("/") or "/")
        return tuple(dict.fromkeys((real_link(full), real_path(full))))

    def _holds(self, cwd: str) -> bool:
        return is_below(os.path.normpath(cwd), self.given) or is_below(real_path(cwd), self.project)

    def _leaves_project(self, path: str, cwd: str) -> bool:
        """Return whether the spelling passes through the project before it leaves it."""
        full = os.path.join(cwd, path)
        tops = (self.project, self.given)
        return (bool(cwd) and self._holds(cwd)) or any(passes(full, top) for top in tops)

    def _is_scratch(self, place: str) -> bool:
        """Return whether the place is in a temporary folder but not next to a project in there.

        A name that only begins like the project's is not scratch either: it may be a copy or a
        typo.
        """
        if is_below(place, self.project):
            return False
        if any(is_below(place, folder) for folder in self._apart):
            return False
        for top in self._temporary:
            if is_below(place, top):
                if not is_below(self.project, top) or place == top:
                    return True
                first = self.project[len(top.rstrip("/")) + 1 :].partition("/")[0]
                return not place.startswith(os.path.join(top, first))
        return False
