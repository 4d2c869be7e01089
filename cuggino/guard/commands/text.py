"""Programs that start others by an option, or have a language of their own that does."""

from __future__ import annotations

import re

from cuggino.guard.commands.base import Call, first
from cuggino.guard.commands.files import unclear_words, unsure
from cuggino.guard.commands.options import Syntax, parse_options
from cuggino.guard.commands.wordlist import words
from cuggino.guard.shell.tree import Word

_STARTS = "it starts another program by that; leave it out"
_ARCHIVERS = words("tar gtar bsdtar rsync zip unzip 7z wget install split strip")
_STARTING = (
    r"--(to-command|use-compress|checkpoint-action|rsh|rsync-path|remote-opt|filter=|strip-prog"
    r"|unzip-command|use-askpass|info-script|new-volume-script|rmt-command)"
)
_PATTERNS: dict[str, tuple[str, str]] = {
    "jq": ("--output", "it only prints; redirect its output to a file of the project"),
    "rg": (r"--(pre(?!tty)|hostname-bin)", _STARTS),
    **dict.fromkeys(
        ("sed", "gsed"),
        (r"(?!-)(?:(\d+|\$|/[^/]*/)?\s*e(\s|$)|s(.).*\2.*\2[gpIiMm\d]*e)", _STARTS),
    ),
    "sqlite3": (r"(?i)\s*\.(sh|sy|lo|exc|(on|ou|im)\w*\s+[\"']?\|)", _STARTS),
    **dict.fromkeys(_ARCHIVERS, (_STARTING, _STARTS)),
}
"""The beginning of arguments that are denied, with the reason."""
_AWK_RUN = r"\bsystem\s*\(|\|\s*(?:&\s*)?\"|\"\s*\|(?!\|)|\|&|\bgetline\b.*\||@load|@include"
_FD_RUNS = r"-[^-dteESocjC]*[xX]|--exec(-batch)?"
_FD_ATTACHED = r"-[^-dteESocjC]*[xX].|--exec"


def pattern(call: Call) -> str:
    """Deny arguments by which the program starts another one."""
    denied, why = _PATTERNS[call.name]
    if call.name == "sed" and call.args and not (call.args[0].value or call.args[0].prefix):
        return unsure("sed", call.args[0])
    for word in call.args:
        if re.match(denied, word.value or word.prefix):
            return f"{call.name} must not be given '{word.text}': {why}"
    return ""


def date(call: Call) -> str:
    """Deny setting the clock."""
    given = parse_options(
        call.args,
        Syntax("dfrsv", words("date file reference set iso-8601 rfc-3339"),
               words("utc universal"), attached="I"),
    )  # fmt: skip
    formats = [word for word in given.operands if not (word.value or word.prefix).startswith("+")]
    if given.has("-s", "--set") or (formats and not given.has("-j", "-f", "-r", "-v")):
        return "date must not set the clock: give it a format that begins with '+'"
    return unclear_words(call, given)


def awk(call: Call) -> str:
    """Deny awk programs that run others; judge the files of options."""
    given = parse_options(
        call.args,
        Syntax("fFvieElW", words("file field-separator assign source include exec load"),
               permutes=False, attached="dDopL"),
    )  # fmt: skip
    programs, files = given.values("-e", "--source"), given.operands
    if not programs and not given.has("-f", "--file", "-E", "--exec"):
        programs, files = list(files[:1]), files[1:]
    in_place = any("inplace" in word.text for word in given.values("-i", "--include"))
    written = given.values("-d", "-o", "-p", "--dump-variables", "--pretty-print", "--profile")
    if reason := first(map(call.site.change, (*written, *(files if in_place else ())))):
        return reason
    if any("/" in (word.value or "/") for word in given.values("-l", "--load")):
        return f"{call.name} must not load a library: leave -l out"
    for program in programs:
        if program.value is None:
            return unsure(call.name, program)
        if re.search(_AWK_RUN, program.value):
            return f"{call.name} must not run other programs from within its own: use a pipe"
        named = re.findall(r">\s*\"([^\"\\]+)\"", program.value)
        if reason := first(map(call.site.write_path, named)):
            return reason
    return ""


def fd(call: Call) -> str:
    """Judge the program of `fd -x` and `-X`, also among other letters: `-Hx`."""
    for index, word in enumerate(call.args):
        if re.fullmatch(_FD_RUNS, word.value or ""):
            inner = tuple(
                Word("{}", None) if "{" in (given.value or "") else given
                for given in call.args[index + 1 :]
            )
            return call.site.judge((*inner, Word("{}", None)), call.site)
        if re.match(_FD_ATTACHED, word.value or ""):
            return "Give the program that fd starts as separate words after -x"
    return ""
