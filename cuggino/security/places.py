# ruff: noqa: PTH115, PTH117, PTH118, PTH120
# Importing pathlib takes longer than all else here, and this starts for every tool call.
"""Where paths lead on the disk, and how names compare."""

from __future__ import annotations

import errno
import os
import pwd
import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_LONGEST = 4096
_MOST_LINKS = 40


def unusable(path: str) -> str:
    """Why the text is no path to judge; empty when it is one."""
    if not path:
        return "The path is empty: name a file"
    if len(path) > _LONGEST:
        return "The path is too long to be one"
    if _CONTROL.search(path):
        return f"Path {path!a} has a control character in it: use a plain name"
    if path.startswith("~"):
        return f"Path '{path}' begins with a tilde: write out the folder that is meant"
    return ""


def fold(name: str) -> str:
    """The name as file systems compare it that know no case and no forms of one letter.

    Nor blanks and dots at the end, nor characters that nobody sees.
    """
    folded = name.lower()
    if not name.isascii():
        import unicodedata

        plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
        folded = "".join(char for char in plain if unicodedata.category(char) != "Cf")
    return folded.rstrip(". ") or folded


def is_below(path: str, folder: str) -> bool:
    """Whether the path is the folder or in it; both are as `real_path` gives them."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def passes(path: str, folder: str) -> bool:
    """Whether the words of the path go into the folder, wherever they end: `folder/../x` does."""
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
    """As `real_path`, but a link at the end stays what it is."""
    head, tail = os.path.split(path.rstrip("/"))
    if tail in ("", ".", ".."):
        return real_path(path)
    return os.path.join(real_path(head), tail)


def real_path(path: str) -> str:
    """The absolute path with all links resolved as the kernel does, but for those in /proc.

    These say where this process is, not where the agent's is. What does not exist stays as it is
    written; a link that leads in a circle ends the path.
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
            # What is not there holds no links either.
            gone = "" if error.errno == errno.EINVAL else place + "/"
            continue
        links += 1
        if links > _MOST_LINKS:
            return place
        place = "/" if target.startswith("/") else os.path.dirname(place)
        todo += target.split("/")[::-1]
    return place


def temporary_folders() -> list[str]:
    """That of the system, and the user's own unless it is a home or all there is."""
    own = os.environ.get("TMPDIR", "")
    try:
        home = real_path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:  # a user without an entry, as in a container
        return ["/tmp"]
    if not os.path.isabs(own) or is_below(home, real_path(own)):
        return ["/tmp"]
    return ["/tmp", own]
