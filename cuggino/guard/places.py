# ruff: noqa: PTH115, PTH117, PTH118, PTH120
# Importing pathlib would dominate the startup, which every tool call pays for.
"""Path resolution on the disk, and comparison of names."""

from __future__ import annotations

import errno
import os
import pwd
import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_LONGEST = 4096
_MOST_LINKS = 40


def unusable(path: str) -> str:
    """Return why the text cannot be judged as a path, or ""."""
    if not path:
        return "The path is empty: name a file"
    if len(path) > _LONGEST:
        return "The path is too long"
    if _CONTROL.search(path):
        return f"Path {path!a} contains a control character: use a plain name"
    if path.startswith("~"):
        return f"Path '{path}' begins with a tilde: write the folder literally"
    return ""


def fold(name: str) -> str:
    """Return the name as case-insensitive and normalizing file systems compare it.

    Trailing blanks, trailing dots and invisible characters are dropped.
    """
    folded = name.lower()
    if not name.isascii():
        import unicodedata

        plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
        folded = "".join(char for char in plain if unicodedata.category(char) != "Cf")
    return folded.rstrip(". ") or folded


def is_below(path: str, folder: str) -> bool:
    """Return whether the path is the folder or in it; both must come from `real_path`."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def passes(path: str, folder: str) -> bool:
    """Return whether the parts of the path enter the folder at any point, as `folder/../x` does."""
    wanted = folder.strip("/").split("/")
    stack: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del stack[-1:]
        elif part not in ("", "."):
            stack.append(part)
            if len(stack) == len(wanted) and stack == wanted:
                return True
    return not folder.strip("/")


def real_link(path: str) -> str:
    """Resolve like `real_path`, except for a link in the last part."""
    head, tail = os.path.split(path.rstrip("/"))
    if tail in ("", ".", ".."):
        return real_path(path)
    return os.path.join(real_path(head), tail)


def real_path(path: str) -> str:
    """Return the absolute path with all links resolved as the kernel does, except those in /proc.

    Links in /proc describe this process, not the agent's. Parts that do not exist are kept as
    written; a circular link ends the resolution.
    """
    todo = path.split("/")[::-1]
    place, links, gone = "/", 0, ""
    while todo:
        part = todo.pop()
        if part in ("", "."):
            continue
        if part == "..":
            place = os.path.dirname(place)
            continue
        place = os.path.join(place, part)
        if place in ("/proc", "/dev/fd"):
            return "/".join((place, *reversed(todo)))
        if gone and place.startswith(gone):
            continue
        try:
            target = os.readlink(place)
        except OSError as error:
            # A missing folder contains no links.
            gone = "" if error.errno == errno.EINVAL else place + "/"
            continue
        links += 1
        if links > _MOST_LINKS:
            return place
        place = "/" if target.startswith("/") else os.path.dirname(place)
        todo += target.split("/")[::-1]
    return place


def temporary_folders() -> list[str]:
    """Return the temporary folders of the system and the user, unless the latter holds a home."""
    own = os.environ.get("TMPDIR", "")
    try:
        home = real_path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:  # a user without an entry, e.g. in a container
        return ["/tmp"]
    if not os.path.isabs(own) or is_below(home, real_path(own)):
        return ["/tmp"]
    return ["/tmp", own]
