"""Programs that make, change or remove the files that their arguments name."""

from __future__ import annotations

import os
import re

from cuggino.guard.commands.base import Call, Judge, Site, first, plain_word
from cuggino.guard.commands.options import Parsed, Syntax, parse_options
from cuggino.guard.shell.tree import Word

_RM = Syntax(
    long=(),
    flags=("no-preserve-root", "preserve-root", "one-file-system", "recursive", "force",
           "interactive", "dir", "verbose", "help", "version"),
)  # fmt: skip

_MODE = re.compile(r"-[rwxXst]+")


def rm(call: Call) -> str:
    """Every path must lie in the project, and hold nothing protected (AUT-168, AUT-215)."""
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
    """`rmdir`, `unlink`, `shred`: as `rm`."""
    syntax = Syntax(short="nss", long=("iterations", "size", "random-source"))
    given = parse_options(call.args, syntax if call.name == "shred" else Syntax())
    return first(map(call.site.remove, given.operands)) or unclear_words(call, given)


def mkdir(call: Call) -> str:
    """Every folder made must be allowed (AUT-214)."""
    given = parse_options(call.args, Syntax(short="m", long=("mode",), flags=("parents",)))
    if call.site.is_limited and given.has("-p", "--parents"):
        made = tuple(word for word in given.operands if not _is_folder(word, call.site))
        given = given._replace(operands=made)
    return writes(call, given)


def _is_folder(word: Word, site: Site) -> bool:
    """Whether it is there already, wherever the command runs: `mkdir -p` does nothing then."""
    if not word.value or word.has_glob or word.has_tilde or not site.known:
        return False
    return all(os.path.isdir(os.path.join(cwd, word.value)) for cwd in site.known)  # noqa: PTH112, PTH118


def touch(call: Call) -> str:
    """Every file must be allowed."""
    given = parse_options(call.args, Syntax(short="rtdA", long=("reference", "date", "time")))
    return writes(call, given)


def truncate(call: Call) -> str:
    """Every file must be allowed."""
    syntax = Syntax(short="sr", long=("size", "reference"), flags=("no-create", "io-blocks"))
    return writes(call, parse_options(call.args, syntax))


def tee(call: Call) -> str:
    """Every file must be allowed."""
    return writes(call, parse_options(call.args, Syntax(flags=("append", "output-error"))))


def owners(call: Call) -> str:
    """`chown`, `chgrp`, and under roles `chmod`: every file must be allowed."""
    args = tuple(word for word in call.args if not _MODE.fullmatch(word.value or ""))
    syntax = Syntax(long=("reference", "from"), flags=("recursive",))
    given = parse_options(args, syntax)
    has_mode = len(args) != len(call.args) or given.has("--reference")
    changed = given.operands if has_mode else given.operands[1:]
    return first(map(call.site.change, changed)) or unclear_words(call, given)


def dd(call: Call) -> str:
    """`of=` must be allowed."""
    for word in call.args:
        if word.value is None and not re.match(r"(if|bs|count|skip|seek)=", word.prefix):
            if not (call.site.is_lenient and word.prefix.startswith("of=")):
                return unsure("dd", word)
            target = Word(word.text.partition("of=")[2], None, word.prefix[3:])
            if reason := call.site.write(target):
                return reason
    written = (word for word in call.args if (word.value or "").startswith("of="))
    return first(
        call.site.write(word._replace(value=(word.value or "")[3:], has_tilde=False))
        for word in written
    )


def split(call: Call) -> str:
    """The names that `split` and `csplit` make begin with their last operand."""
    given = parse_options(
        call.args,
        Syntax(short="abCflnt" if call.name == "split" else "bfn",
               long=("suffix-length", "bytes", "line-bytes", "lines", "number", "filter",
                     "separator", "additional-suffix", "prefix", "suffix-format", "digits")),
    )  # fmt: skip
    if given.has("--filter"):
        return "split must not start a program: leave --filter out"
    named = given.operands[1:2] if call.name == "split" else given.values("-f", "--prefix")
    made = [word._replace(value=f"{word.value}aa") for word in named if word.value is not None]
    dynamic = [word for word in named if word.value is None]
    return first(map(call.site.write, (*dynamic, *made, *([] if named else [plain_word("xaa")]))))


def in_place(call: Call) -> str:
    """`gzip`, `gunzip`, `bzip2`, `xz`, `zstd`: the file is replaced unless it is sent on."""
    given = parse_options(call.args, Syntax("So", ("suffix",), ("stdout", "list")))
    if given.has("-c", "--stdout", "--to-stdout", "-l", "--list", "-t", "--test"):
        return ""
    return first(map(call.site.change, (*given.operands, *given.values("-o"))))


def writes(call: Call, given: Parsed) -> str:
    """Why not every operand may be written."""
    return first(map(call.site.change, given.operands)) or unclear_words(call, given)


def unclear_words(call: Call, given: Parsed) -> str:
    """Why a word that could be several, or an option, stands in the way."""
    if not given.unclear or call.site.is_lenient:
        return ""
    return unsure(call.name, given.unclear[0])


def unsure(name: str, word: Word) -> str:
    """The sentence about a word that is not known."""
    text = word.text.replace("xargs{}", "what xargs adds")
    return f"It cannot be told what '{text}' means to {name}: write the arguments out"


JUDGES: dict[str, Judge] = {
    "rm": rm,
    "rmdir": removes,
    "unlink": removes,
    "shred": removes,
    "mkdir": mkdir,
    "mkfifo": mkdir,
    "touch": touch,
    "truncate": truncate,
    "tee": tee,
    "chown": owners,
    "chgrp": owners,
    "dd": dd,
    "split": split,
    "csplit": split,
    "gzip": in_place,
    "gunzip": in_place,
    "bzip2": in_place,
    "bunzip2": in_place,
    "xz": in_place,
    "unxz": in_place,
    "zstd": in_place,
}
