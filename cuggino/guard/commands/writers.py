"""Programs that write a file which one of their options or operands names, and little else."""

from __future__ import annotations

import re
from typing import NamedTuple

from cuggino.guard.commands.base import Call, Judge, first
from cuggino.guard.commands.files import unclear_words
from cuggino.guard.commands.inline import scan
from cuggino.guard.commands.options import Syntax, parse_options
from cuggino.guard.commands.wordlist import words


class Writer(NamedTuple):
    """Which of its words are written."""

    short: str = ""
    """Letters of options that take a value."""
    long: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    """Options whose value is written."""
    operands: slice = slice(0, 0)
    """Operands that are written."""
    flags: tuple[str, ...] = ()


_PIP = Writer(
    "tdrceifb",
    words("target prefix root src dest report log cache-dir requirement constraint editable"
          " index-url extra-index-url find-links build wheel-dir python-version platform"
          " implementation abi proxy timeout"),
    words("-t --target --prefix --root --src -d --dest --report --log --cache-dir -b --build -w"
          " --wheel-dir"),
)  # fmt: skip
_WRITERS: dict[str, Writer] = {
    "link": Writer(operands=slice(0, None)),
    "mknod": Writer("mZ", ("mode",), operands=slice(0, 1)),
    "rename": Writer("e", ("expr",), operands=slice(1, None)),
    "gpg": Writer(
        "oruN",
        words("output recipient local-user homedir passphrase passphrase-fd passphrase-file"
              " status-fd status-file logger-file attribute-file pinentry-mode keyserver"),
        words("-o --output --status-file --logger-file --attribute-file --homedir"),
    ),
    "xxd": Writer("cglsoRn", operands=slice(1, 2)),
    "base64": Writer("obwi", ("output", "wrap", "break", "input"), ("-o", "--output")),
    "objcopy": Writer(
        "IOFBjRSNKLGWsd", ("input-target", "output-target"), operands=slice(-1, None)
    ),
    "strip": Writer("oFIORKN", ("output-file",), ("-o",), operands=slice(0, None)),
    "ranlib": Writer(operands=slice(0, None)),
    "sponge": Writer(operands=slice(0, None)),
    "fallocate": Writer("lo", ("length", "offset"), operands=slice(0, None)),
    "dos2unix": Writer("cD", ("convmode", "display-enc"), operands=slice(0, None)),
    "ctags": Writer("fILoh", ("options",), ("-f", "-o")),
    "indent": Writer(operands=slice(0, None)),
    "vi": Writer("cSTuUiwWt", ("cmd",), ("-w", "-W", "-i"), operands=slice(0, None)),
    "nano": Writer("orsTYCQXJ", operands=slice(0, None)),
    "emacs": Writer("flLtTd", ("eval", "load", "chdir"), operands=slice(0, None)),
    "ed": Writer("p", ("prompt",), operands=slice(0, None)),
    "less": Writer("bhjkpPtTxyzoO#", (), ("-o", "-O")),
    "pip": _PIP._replace(short="tdrceifbw"),
}  # fmt: skip
_SAME = {
    "prename": "rename", "gpg2": "gpg", "base32": "base64", "pip2": "pip", "pip3": "pip",
    **dict.fromkeys(("unix2dos", "mac2unix", "unix2mac"), "dos2unix"),
    **dict.fromkeys(("vim", "nvim", "ex"), "vi"), "pico": "nano",
}  # fmt: skip
_PRINTS = re.compile(
    r"\s*(select|explain|pragma\s+\w+(\(\w+\))?\s*;?\s*$"
    r"|\.(schema|tables|dump|help|indexes|databases|headers|mode|version|show)\b)",
    re.IGNORECASE,
)
# sqlite3 understands the beginnings of its commands, too.
_STARTS = re.compile(
    r"(?mi)^\s*\.(sh|sy|lo(?!g)|ex(?=c)|ww|(ou|on|im|rea)\w*\b.*\|)|\b(edit|load_extension)\s*\("
    r"|\bwritefile\s*\((?!\s*'[^']+'\s*,)"
)
_INTO = re.compile(
    r"(?mi)^\s*\.(?:(?:ou|on|sa|ba|cl|ar)\w*|log)\s+(\S+)"
    r"|\b(?:attach(?:\s+database)?|vacuum(?:\s+\w+)?\s+into)\s+[\"']([^\"']+)[\"']"
    r"|\bwritefile\s*\(\s*'([^']+)'"
)


def writer(call: Call) -> str:
    """Every file that it writes must be allowed."""
    known = _WRITERS[_SAME.get(call.name, call.name)]
    given = parse_options(call.args, Syntax(known.short, known.long, known.flags))
    named = [*given.values(*known.written), *given.operands[known.operands]]
    named = [word for word in named if word.value != "-" and not (word.value or "").startswith("+")]
    for word in given.operands[:1] if _SAME.get(call.name, call.name) == "rename" else ():
        if word.value is not None and (reason := scan(call, "perl", f"rename {word.value}")):
            return reason
    if reason := first(map(call.site.change, named)):
        return reason
    return unclear_words(call, given) if named and not call.site.is_full else ""


def ar(call: Call) -> str:
    """The archive that `d`, `m`, `q`, `r` and `s` change; where it runs, for `x`."""
    operands = [word for word in call.args if not (word.value or word.prefix).startswith("--")]
    key = (operands[0].value or "").lstrip("-") if operands else ""
    if "x" in key:
        return call.site.write_path("x")
    if not set(key) & set("dmqrs"):
        return ""
    # The name of a member stands between with these letters.
    at = 2 if set(key) & set("abi") else 1
    return first(map(call.site.change, operands[at : at + 1]))


def mktemp(call: Call) -> str:
    """Its template, unless that is for the temporary folder, and the folder that it is given."""
    given = parse_options(call.args, Syntax("p", ("suffix",), ("tmpdir", "directory", "dry-run")))
    named = given.values("-p", "--tmpdir")
    if not given.has("-p", "--tmpdir", "-t", "-u", "--dry-run"):
        named += given.operands
    return first(call.site.write(word) for word in named if word.value is not None)


def archive(call: Call) -> str:
    """`7z`: the archive of `a`, `d`, `u` and `rn`; the folder into which `x` and `e` unpack."""
    plain = [word for word in call.args if not (word.value or word.prefix).startswith("-")]
    verb = plain[0].value if plain else ""
    if verb in ("x", "e"):
        into = [word for word in call.args if (word.value or word.prefix).startswith("-o")]
        named = [
            word._replace(
                text=word.text.replace("-o", "", 1),
                value=None if word.value is None else word.value[2:],
                prefix=word.prefix[2:],
            )
            for word in into
        ]
        return first(map(call.site.write, named)) or ("" if named else call.site.write_path("x"))
    if any((word.value or "").startswith("-sdel") for word in call.args):
        return "7z must not remove what it packs: leave -sdel out"
    if verb in ("l", "t", "i", "b", "h", ""):
        return ""
    return first(map(call.site.write, plain[1:2]))


def sqlite(call: Call) -> str:
    """Its file, unless it is only read, and the files that its commands name."""
    operands = [word for word in call.args if not (word.value or word.prefix).startswith("-")]
    flags = {word.value for word in call.args}
    texts = [word.value or word.text for word in call.args[1:]] + [call.site.document or ""]
    for text in texts:
        if _STARTS.search(text):
            return (
                "sqlite3 must not start programs, nor write files that cannot be told: leave out"
                " .shell, .system, .load, .excel and '|', and give writefile a plain name"
            )
        for match in _INTO.finditer(text):
            if reason := call.site.write_path((match[1] or match[2] or match[3]).strip("'\"")):
                return reason
    statements = [
        part
        for word in operands[1:]
        for part in (word.value or "").split(";")
        if part.strip() or not word.value
    ]
    reads = bool(statements) and all(map(_PRINTS.match, statements))
    if flags & {"-readonly", "--readonly", "-version", "--version", "-help"} or reads:
        return ""
    return first(call.site.write(word) for word in operands[:1] if word.value != ":memory:")


JUDGES: dict[str, Judge] = {
    **dict.fromkeys((*_WRITERS, *_SAME), writer),
    **dict.fromkeys(("7z", "7za", "7zr", "7zz"), archive),
    "sqlite3": sqlite,
    "ar": ar,
    "mktemp": mktemp,
}
