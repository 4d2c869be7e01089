"""Programs that mostly print, and the options with which they write or run something."""

from __future__ import annotations

import re

from cuggino.guard.commands.base import Call, Judge, first
from cuggino.guard.commands.files import unclear_words, unsure
from cuggino.guard.commands.options import Syntax, parse_options
from cuggino.guard.shell.tree import Word

_AWK_RUN = re.compile(
    r"\bsystem\s*\(|\|\s*(?:&\s*)?\"|\"\s*\|(?!\|)|\|&|\bgetline\b.*\||@load|@include"
)
_FD_RUNS = re.compile(r"-[^-dteESocjC]*[xX]|--exec(-batch)?")
_FD_ATTACHED = re.compile(r"-[^-dteESocjC]*[xX].|--exec")
_AWK_FILE = re.compile(r"(?:print|printf)\b[^;}\n]*>{1,2}\s*([^;}\n]+)")


def date(call: Call) -> str:
    """Deny setting the clock."""
    given = parse_options(
        call.args,
        Syntax(short="dfrsv", long=("date", "file", "reference", "set",
               "iso-8601", "rfc-3339"), flags=("utc", "universal"), attached="I"),
    )  # fmt: skip
    formats = [word for word in given.operands if not (word.value or word.prefix).startswith("+")]
    if given.has("-s", "--set") or (formats and not given.has("-j", "-f", "-r", "-v")):
        return "date must not set the clock: give it a format that begins with '+'"
    return unclear_words(call, given)


def awk(call: Call) -> str:
    """Judge what an awk program writes; deny those that run others."""
    given = parse_options(
        call.args,
        Syntax(short="fFvieElW", permutes=False, attached="dDopL",
               long=("file", "field-separator", "assign", "source", "include", "exec", "load")),
    )  # fmt: skip
    programs, files = given.values("-e", "--source"), given.operands
    if not programs and not given.has("-f", "--file", "-E", "--exec"):
        programs, files = list(files[:1]), files[1:]
    if any("inplace" in word.text for word in given.values("-i", "--include")) and (
        reason := first(map(call.site.change, files))
    ):
        return reason
    written = given.values("-d", "-o", "-p", "--dump-variables", "--pretty-print", "--profile")
    written += [_behind(word) for word in given.values("-W") if "=" in word.text]
    if reason := first(map(call.site.write, written)):
        return reason
    if any("/" in (word.value or "/") for word in given.values("-l", "--load")):
        return f"{call.name} must not load a library: leave -l out"
    for program in programs:
        if program.value is None:
            return unsure(call.name, program)
        if _AWK_RUN.search(program.value):
            return f"{call.name} must not run other programs from within its own: use a pipe"
        for match in _AWK_FILE.finditer(program.value):
            name = match[1].strip()
            if not re.fullmatch(r'"[^"\\]*"', name):
                if call.site.is_open:
                    continue
                return f"It cannot be told which file {call.name} writes by '{name}'"
            if reason := call.site.write_path(name[1:-1]):
                return reason
    return ""


def _behind(word: Word) -> Word:
    """Return the text after `=`."""
    known = None if word.value is None else word.value.partition("=")[2]
    return word._replace(value=known, prefix=word.prefix.partition("=")[2])


def jq(call: Call) -> str:
    """Deny options of `jq` that look like an output."""
    for word in call.args:
        if (word.value or "").startswith("--output"):
            return "jq only prints: redirect its output to a file of the project"
    return ""


def ripgrep(call: Call) -> str:
    """Deny `rg --pre`, which runs a program."""
    for word in call.args:
        if re.match(r"--(pre(?!tty)|hostname-bin)", word.value or word.prefix):
            return "rg must not start another program: leave --pre out"
    return ""


def fd(call: Call) -> str:
    """Judge the program of `fd -x` and `-X`, also among other letters: `-Hx`."""
    args = call.args
    for index, word in enumerate(args):
        if _FD_RUNS.fullmatch(word.value or ""):
            inner = tuple(
                Word("{}", None) if "{" in (given.value or "") else given
                for given in args[index + 1 :]
            )
            return call.site.judge((*inner, Word("{}", None)), call.site)
        if _FD_ATTACHED.match(word.value or ""):
            return "Give the program that fd starts as words of their own behind -x"
    return ""


JUDGES: dict[str, Judge] = {
    "date": date,
    "awk": awk,
    "gawk": awk,
    "mawk": awk,
    "nawk": awk,
    "jq": jq,
    "rg": ripgrep,
    "fd": fd,
    "fdfind": fd,
}
