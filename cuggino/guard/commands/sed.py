"""`sed`: its script is read as sed reads it, for the commands that write files or run something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cuggino.guard.commands.base import Call, Judge, first
from cuggino.guard.commands.files import unclear_words, unsure
from cuggino.guard.commands.options import Syntax, parse_options


class Effect(NamedTuple):
    """What a command of the script does beside printing."""

    runs: bool = False
    file: str = ""


def sed(call: Call) -> str:
    """`-i` changes its files; the commands `w` and `e` write and run."""
    given = parse_options(
        call.args,
        Syntax(short="efl", long=("expression", "file", "line-length"), attached="i",
               flags=("in-place", "null-data", "posix", "quiet", "silent", "separate")),
    )  # fmt: skip
    scripts = given.values("-e", "--expression")
    files = list(given.operands)
    if not scripts and not given.has("-f", "--file") and files:
        scripts.append(files.pop(0))
    in_place = given.has("-i", "--in-place")
    # The one of macOS takes the ending after -i as a word of its own, which then looks empty.
    if in_place and scripts and scripts[0].value == "" and files:
        scripts = [files.pop(0)]
    for script in scripts:
        if script.value is None:
            if call.site.is_full:
                return unsure("sed", script)
            continue
        for effect in effects(script.value):
            if effect.runs:
                return "sed must not run commands: leave its command e out"
            if reason := call.site.write_path(effect.file):
                return reason
    if not in_place:
        return ""
    return first(map(call.site.change, files)) or unclear_words(call, given)


def effects(script: str) -> Iterator[Effect]:
    """Each command that writes a file, or runs something, in the order of the script."""
    at, end = 0, len(script)
    while at < end:
        at = _address(script, at)
        if at >= end:
            return
        command = script[at]
        at += 1
        if command in "sy":
            at = _parts(script, at, 2)
            flags, at = _until(script, at, ";}\n# ")
            if command == "s" and "w" in flags:
                at -= len(flags) - flags.index("w") - 1
                name, at = _until(script, at, "\n")
                yield Effect(file=name.strip())
            elif command == "s" and "e" in flags:
                yield Effect(runs=True)
        elif command in "wW":
            name, at = _until(script, at, "\n")
            yield Effect(file=name.strip())
        elif command == "e":
            yield Effect(runs=True)
            _, at = _until(script, at, "\n")
        elif command in "aic":
            at = _text(script, at)
        elif command in "rR#:":
            _, at = _until(script, at, "\n")
        elif command in "btT":
            _, at = _until(script, at, ";\n}")


def _address(script: str, at: int) -> int:
    """Where the command begins: behind blanks, separators and addresses."""
    while at < len(script):
        char = script[at]
        if char == "/":
            at = _parts(script, at, 1)
            while at < len(script) and script[at] in "IM":
                at += 1
        elif char == "\\" and at + 1 < len(script):
            at = _parts(script, at + 1, 1)
        elif char.isdigit() or char in " \t\n;{},!$~+":
            at += 1
        else:
            break
    return at


def _parts(script: str, at: int, count: int) -> int:
    """Behind so many texts that the character here ends, brackets and backslashes minded."""
    if at >= len(script):
        return at
    delimiter = script[at]
    at += 1
    while at < len(script) and count:
        char = script[at]
        if char == "\\":
            at += 1
        elif char == delimiter:
            count -= 1
        at += 1
    return at


def _until(script: str, at: int, ends: str) -> tuple[str, int]:
    start = at
    while at < len(script) and script[at] not in ends:
        at += 1
    return script[start:at], at


def _text(script: str, at: int) -> int:
    """Behind the text of `a`, `i` or `c`, which goes on over lines that end in a backslash."""
    while at < len(script):
        if script[at] == "\\":
            at += 1
        elif script[at] == "\n":
            break
        at += 1
    return at


JUDGES: dict[str, Judge] = {"sed": sed, "gsed": sed}
