"""Common writes with an explicit target, judged at level `roles`.

This helps the agent and is not a boundary: a write that the sandbox would deny, or the verification
after the stage would undo, is denied at once, with a reason. They handle all less obvious writes.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from cuggino.guard.commands.base import UNKNOWN, Site, first
from cuggino.guard.commands.options import Parsed, Syntax, parse_options
from cuggino.guard.shell.tree import Redirect, Word

_REDIRECTS = frozenset((">", ">>", ">|", "<>", "&>", "&>>", ">&"))


class _Writer(NamedTuple):
    """The arguments in which a program names the files that it writes."""

    syntax: Syntax = Syntax()
    skips: int = 0
    """Number of operands before the files."""
    last: bool = False
    """True if only the last operand is written."""


_COPIES = Syntax("Stmog", ("suffix", "target-directory", "mode", "owner", "group"))
_WRITERS = {
    "rm": _Writer(),
    "rmdir": _Writer(),
    "mv": _Writer(_COPIES),
    "cp": _Writer(_COPIES, last=True),
    "ln": _Writer(_COPIES, last=True),
    "install": _Writer(_COPIES, last=True),
    "mkdir": _Writer(Syntax("m", ("mode",))),
    "touch": _Writer(Syntax("rtdA", ("reference", "date", "time"))),
    "tee": _Writer(),
    "truncate": _Writer(Syntax("sr", ("size", "reference"))),
    "chmod": _Writer(skips=1),
    "sed": _Writer(Syntax("efl", ("expression", "file", "line-length"), attached="i"), skips=1),
}
NAMES = frozenset(_WRITERS)


def written_reason(name: str, args: tuple[Word, ...], site: Site) -> str:
    """Return why the program must not write or remove a file among its arguments, or ""."""
    writer = _WRITERS[name]
    given = parse_options(args, writer.syntax)
    files = given.operands[writer.skips :]
    if name == "sed":
        if not given.has("-i", "--in-place"):
            return ""
        files = given.operands if given.has("-e", "-f", "--expression", "--file") else files
    if name == "mkdir":
        files = tuple(word for word in files if not _is_folder(word, site))
    if name in ("rm", "rmdir", "mv"):
        kept = files[-1:] if name == "mv" and not given.has("-t", "--target-directory") else ()
        gone = files[: len(files) - len(kept)]
        removed = first(_reason(word, site, removes=True) for word in gone)
        files = kept if name == "mv" else ()
        if removed:
            return removed
    elif writer.last:
        if name == "ln" and (reason := _linked(files[:-1], given, site)):
            return reason
        files = files[-1:] if len(files) > 1 else ()
    return first(_reason(word, site) for word in (*files, *_targets(given)))


def redirect_reason(redirect: Redirect, site: Site) -> str:
    """Return why the file that a redirection writes is denied, or ""."""
    target = redirect.target
    if redirect.operator not in _REDIRECTS or not target.value:
        return ""
    if (redirect.operator == ">&" and target.value.rstrip("-").isdigit()) or target.value == "-":
        return ""
    if target.has_glob:
        return f"Write the name of the file out instead of '{target.text}'"
    return _reason(target, site)


def _linked(files: tuple[Word, ...], given: Parsed, site: Site) -> str:
    if not given.has("-s", "--symbolic"):
        return first(_reason(word, site) for word in files)  # a second name of the same file
    return first(site.paths.guards(word.value or "", site.cwds) for word in files)


def _targets(given: Parsed) -> list[Word]:
    return given.values("-t", "--target-directory")


def _is_folder(word: Word, site: Site) -> bool:
    """Return whether it exists already, so that `mkdir -p` does nothing."""
    if not word.value or UNKNOWN in site.cwds:
        return False
    return all(os.path.isdir(os.path.join(cwd, word.value)) for cwd in site.cwds)  # noqa: PTH112, PTH118


def _reason(word: Word, site: Site, *, removes: bool = False) -> str:
    path = word.value
    if not path or "{}" in path:
        return ""
    if word.has_tilde:
        return f"'{word.text}' is in a home folder: nothing outside the project may be written"
    if word.has_glob:
        folder, _, name = re.split(r"[?[]", path)[0].partition("*")[0].rpartition("/")
        if not removes or name or path.rpartition("/")[2] != "*":
            return site.paths.guards(folder, site.cwds) if folder else ""
        path = folder or "."
    if not os.path.isabs(path) and UNKNOWN in site.cwds:  # noqa: PTH117
        return ""
    check = site.paths.remove if removes else site.paths.write
    return check(path, site.cwds)
