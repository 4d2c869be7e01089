"""Programs that change what is kept beside a file: its flags, its access lists, its attributes."""

from __future__ import annotations

import re

from cuggino.guard.commands.base import Call, Judge, first, plain_word
from cuggino.guard.commands.files import unclear_words
from cuggino.guard.commands.options import Syntax, parse_options
from cuggino.guard.shell.tree import Word

_FLAGS = re.compile(r"[-+=][aAcCdDeEFijmNPsStTuxRVf]+")
_SETFACL = Syntax(
    "mxMX",
    ("modify", "remove", "modify-file", "remove-file", "set", "set-file", "restore"),
    ("remove-all", "remove-default", "recursive", "logical", "physical", "default", "mask",
     "no-mask", "test", "version", "help"),
)  # fmt: skip
_SETFATTR = Syntax("nvx", ("name", "value", "remove", "restore"), ("no-dereference", "raw"))
_FILE = Syntax(
    "eFfmP", ("exclude", "exclude-quiet", "separator", "files-from", "magic-file", "parameter"),
    ("compile", "checking-printout", "list"),
)  # fmt: skip


def chattr(call: Call) -> str:
    """Every file must be allowed: all words but the flags, and the numbers of `-p` and `-v`."""
    files: list[Word] = []
    before = ""
    for word in call.args:
        text = word.value if word.value is not None else word.prefix
        if before not in ("-p", "-v") and not _FLAGS.fullmatch(text):
            files.append(word)
        before = text
    return first(map(call.site.change, files))


def chflags(call: Call) -> str:
    """As `chown`: the first operand says what is changed."""
    given = parse_options(call.args, Syntax())
    return first(map(call.site.change, given.operands[1:])) or unclear_words(call, given)


def setfacl(call: Call) -> str:
    """Every file must be allowed; which ones a backup names is not known."""
    return _listed(call, _SETFACL)


def setfattr(call: Call) -> str:
    """As `setfacl`."""
    return _listed(call, _SETFATTR)


def _listed(call: Call, syntax: Syntax) -> str:
    given = parse_options(call.args, syntax)
    if given.has("--test"):
        return ""
    if given.has("--restore"):
        return f"{call.name} must name the files that it changes: leave --restore out"
    if any(word.value == "-" for word in given.operands):
        return f"{call.name} must name the files that it changes, and not read them"
    return first(map(call.site.change, given.operands)) or unclear_words(call, given)


def xattr(call: Call) -> str:
    """With `-w`, `-d` and `-c` every file must be allowed."""
    given = parse_options(call.args, Syntax(permutes=False))
    own = 2 if given.has("-w") else 1 if given.has("-d") else 0
    if not own and not given.has("-c"):
        return ""
    return first(map(call.site.change, given.operands[own:])) or unclear_words(call, given)


def file(call: Call) -> str:
    """`-C` writes what it has compiled beside the sources, or where it runs."""
    given = parse_options(call.args, _FILE)
    if not given.has("-C", "--compile"):
        return ""
    made = [plain_word("magic.mgc")]
    for value in given.values("-m", "--magic-file"):
        if value.value is None:
            made.append(value)
            continue
        for source in value.value.split(":"):
            name = source.rstrip("/")
            made += [plain_word(f"{name}.mgc"), plain_word(f"{name.rpartition('/')[2]}.mgc")]
    return first(map(call.site.write, made))


JUDGES: dict[str, Judge] = {
    "chattr": chattr,
    "chflags": chflags,
    "setfacl": setfacl,
    "setfattr": setfattr,
    "xattr": xattr,
    "file": file,
}
