"""Programs that make, change or remove the files that their arguments name."""

from __future__ import annotations

import os

from cuggino.guard.commands.base import Call, Judge, Site, first
from cuggino.guard.commands.options import Parsed, Syntax, parse_options
from cuggino.guard.shell.tree import Word

_RM = Syntax(
    long=(),
    flags=("no-preserve-root", "preserve-root", "one-file-system", "recursive", "force",
           "interactive", "dir", "verbose", "help", "version"),
)  # fmt: skip


def rm(call: Call) -> str:
    """Judge every path that `rm` removes (AUT-168, AUT-215)."""
    given = parse_options(call.args, _RM)
    if given.has("--no-preserve-root"):
        return "Flag '--no-preserve-root' is not allowed with rm"
    if not given.operands:
        return "rm requires at least one file path"
    for option in given.options:
        if option.value is not None and option.value.value is None:
            return unsure(call.name, option.value)
    return first(map(call.site.remove, given.operands)) or unclear_words(call, given)


def removes(call: Call) -> str:
    """Judge `rmdir` and `unlink` like `rm`."""
    given = parse_options(call.args, Syntax())
    return first(map(call.site.remove, given.operands)) or unclear_words(call, given)


def mkdir(call: Call) -> str:
    """Judge every folder that `mkdir` makes (AUT-214)."""
    given = parse_options(call.args, Syntax(short="m", long=("mode",), flags=("parents",)))
    if call.site.is_limited and given.has("-p", "--parents"):
        made = tuple(word for word in given.operands if not _is_folder(word, call.site))
        given = given._replace(operands=made)
    return writes(call, given)


def _is_folder(word: Word, site: Site) -> bool:
    """Return whether the folder exists already, so that `mkdir -p` does nothing."""
    if not word.value or word.has_glob or word.has_tilde or not site.known:
        return False
    return all(os.path.isdir(os.path.join(cwd, word.value)) for cwd in site.known)  # noqa: PTH112, PTH118


def touch(call: Call) -> str:
    """Judge every file."""
    given = parse_options(call.args, Syntax(short="rtdA", long=("reference", "date", "time")))
    return writes(call, given)


def tee(call: Call) -> str:
    """Judge every file."""
    return writes(call, parse_options(call.args, Syntax(flags=("append", "output-error"))))


def writes(call: Call, given: Parsed) -> str:
    """Return why an operand may not be written."""
    return first(map(call.site.change, given.operands)) or unclear_words(call, given)


def unclear_words(call: Call, given: Parsed) -> str:
    """Return why a word that could be several, or an option, is denied."""
    if not given.unclear or call.site.is_open:
        return ""
    return unsure(call.name, given.unclear[0])


def unsure(name: str, word: Word) -> str:
    """Return the reason for denying an unknown word."""
    text = word.text.replace("xargs{}", "what xargs adds")
    return f"It cannot be told what '{text}' means to {name}: write the arguments out"


JUDGES: dict[str, Judge] = {
    "rm": rm,
    "rmdir": removes,
    "unlink": removes,
    "mkdir": mkdir,
    "touch": touch,
    "tee": tee,
}
