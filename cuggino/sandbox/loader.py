# ruff: noqa: PTH101, PTH102, PTH112, PTH116, PTH123
# Importing pathlib would double the time, which every session pays for.
"""The program that prepares its own process for a view, then becomes the given program.

    python -I -S loader.py ORDERS PROGRAM ARGUMENT...
    python -I -S loader.py ORDERS -- PROGRAM ARGUMENT...

`ORDERS` is a JSON object. `overlays` are folders to show copy-on-write, with the writes in memory;
`kept` are paths within them to show unchanged; `PROGRAM` must then be a full path. `write` are the
only files and folders that Landlock leaves writable. The loader needs only the standard library and
no other file of cuggino.
"""

from __future__ import annotations

import ctypes
import json
import os
import stat
import struct
import sys

_NEW_MOUNTS, _NEW_USER = 0x0002_0000, 0x1000_0000
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x4_0000
_SYS_ADMIN = 21
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_NO_NEW_PRIVILEGES = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = (1 << bit for bit in range(4))
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_WRITE = _WRITE_FILE | sum(1 << bit for bit in range(4, 13)) | _REFER | _TRUNCATE | _IOCTL
_OF_FILES = _WRITE_FILE | _TRUNCATE | _IOCTL
_SOCKETS, _SIGNALS = 1, 2
"""Scopes: abstract sockets, and signals, of processes outside."""

_libc = ctypes.CDLL(None, use_errno=True)


def landlock_version() -> int:
    """Return the version of the kernel's Landlock, 0 without it."""
    version: int = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    return max(0, version)


def restrict(write: list[str]) -> None:
    """Let this process and its children write only in these files and folders.

    Raises:
        OSError: the kernel has no Landlock.
    """
    version = landlock_version()
    handled = _WRITE
    handled &= ~_REFER if version < 2 else -1
    handled &= ~_TRUNCATE if version < 3 else -1
    handled &= ~_IOCTL if version < 5 else -1
    _confine(handled, write, _SOCKETS | _SIGNALS if version >= 6 else 0)


def hide_sockets() -> None:
    """Cut this process and its children off from outer abstract sockets, where supported.

    They may still mount. A set-user-ID program would lose its privileges.
    """
    if landlock_version() >= 6:
        _confine(0, [], _SOCKETS)


def _confine(handled: int, write: list[str], scopes: int) -> None:
    fields = struct.pack("QQQ", handled, 0, scopes)[: 24 if scopes else 8]
    rules = _libc.syscall(_CREATE_RULESET, fields, ctypes.c_size_t(len(fields)), 0)
    _check(rules, "landlock_create_ruleset")
    for path in write:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        rights = handled if os.path.isdir(path) else handled & _OF_FILES
        rule = struct.pack("=Qi", rights, place)
        _check(_libc.syscall(_ADD_RULE, rules, 1, rule, 0), f"landlock_add_rule {path}")
        os.close(place)
    _check(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")
    _check(_libc.syscall(_RESTRICT_SELF, rules, 0), "landlock_restrict_self")
    os.close(rules)


def cover(overlays: list[str], kept: list[str]) -> None:
    """Show the folders copy-on-write to this process and its children.

    Mounts within them and `kept` paths are shown unchanged. Writes go to memory and are discarded
    with the last process. Each folder is covered twice, by a tmpfs and then by the overlay, so that
    no other folder is needed.

    Raises:
        OSError: the system does not permit it.
    """
    user, group = os.getuid(), os.getgid()
    is_inner = not _can_mount()
    _check(_libc.unshare(_NEW_MOUNTS | (_NEW_USER if is_inner else 0)), "unshare")
    if is_inner:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    _mount(None, "/", None, _RECURSIVE | _PRIVATE)
    options = ",userxattr" if _in_user_namespace() else ""
    apart = [path for path in (*_mounted_in(overlays), *kept) if path not in overlays]
    places = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in (*overlays, *apart)}
    for path in sorted(places, key=lambda path: path.count("/")):
        source = f"/proc/self/fd/{places[path]}"
        if path not in overlays:
            _mount(source, path, None, _BIND | _RECURSIVE)
            continue
        shown = os.stat(source)
        _mount("tmpfs", path, "tmpfs", 0, "mode=0700")
        for name in ("up", "work"):
            os.mkdir(f"{path}/{name}")
        if not is_inner:
            os.chown(f"{path}/up", shown.st_uid, shown.st_gid)
        os.chmod(f"{path}/up", shown.st_mode & 0o7777)
        data = f"lowerdir={source},upperdir={path}/up,workdir={path}/work{options}"
        _mount("overlay", path, "overlay", 0, data)


def _mounted_in(folders: list[str]) -> list[str]:
    """Return the mount points below the folders."""
    found = []
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            escaped = line.split(b" ")[4].decode("unicode_escape")
            path = os.fsdecode(escaped.encode("latin-1"))
            if any(path.startswith(f"{folder.rstrip('/')}/") for folder in folders):
                found.append(path)
    return found


def _can_mount() -> bool:
    with open("/proc/self/status", encoding="utf-8") as file:
        effective = next(line for line in file if line.startswith("CapEff"))
    return bool(int(effective.split()[1], 16) >> _SYS_ADMIN & 1)


def _in_user_namespace() -> bool:
    with open("/proc/self/uid_map", encoding="utf-8") as file:
        return file.read().split() != ["0", "0", "4294967295"]


def _mount(
    source: str | None, target: str, kind: str | None, flags: int, data: str | None = None
) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, data)]
    done = _libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3])
    _check(done, f"mount {kind or 'bind'} {target}")


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main(words: list[str]) -> None:
    """Follow the orders, then become the program.

    Raises:
        OSError: the system does not permit it, or the program does not exist.
    """
    orders, program = json.loads(words[0]), words[1:]
    if program[0] == "--":
        del program[0]
    if "overlays" in orders:
        cover(orders["overlays"], orders["kept"])
        if not os.stat(program[0]).st_mode & stat.S_ISUID:
            hide_sockets()
    if "write" in orders:
        restrict(orders["write"])
    os.execvp(program[0], program)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as error:
        sys.exit(f"cuggino sandbox: {error}")
