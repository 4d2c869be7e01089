"""Listed programs that change the files they name: none of these may be protected.

Options are not distinguished: any argument that names a protected file is denied.
"""

from __future__ import annotations

import re
from itertools import pairwise

from cuggino.guard.commands.base import Call, Judge, first, plain_word
from cuggino.guard.commands.files import unsure
from cuggino.guard.commands.outputs import outputs_reason
from cuggino.guard.commands.wordlist import words
from cuggino.guard.shell.tree import Word

NAMES = words(
    "ln link mknod rename prename setfacl chattr compress 7za 7zr 7zz install rsync scp dd"
    " truncate shred split csplit mkfifo chown chgrp gzip gunzip bzip2 bunzip2 xz unxz zstd tar"
    " gtar bsdtar unzip zip 7z patch gpatch curl wget sqlite3 mktemp dos2unix unix2dos base64 xxd"
    " ctags gcc g++ cc c++ clang clang++ ld ar strip objcopy cmake"
)
"""Every argument counts."""

_IN_PLACE = re.compile(r"-[a-zA-Z]*i.*|--in-place.*|(.*[/;}\dIMg\s])?[wW]\s.*", re.DOTALL)
"""Options and scripts of `sed` that write."""

_RUNS = re.compile(r"^(\d+|\$|/[^/]*/)?\s*e(\s|$)|^s(.).*\2.*\2[gpIiMm\d]*e")
_PARTS = re.compile(r"[\s=:,@'\"()|]+")
_SYNCS = re.compile(r"--del(ete(-[a-z]+)?)?|--remove-(source|sent)-files")
_FOLDER = re.compile(r"--(directory|one-top[a-z-]*)=")
_STARTS = re.compile(
    r"--(to-command|use-compress|checkpoint-action|rsh|rsync-path|remote-opt|filter=|strip-prog"
    r"|unzip-command|use-askpass|info-script|new-volume-script|rmt-command)"
)
_SQLITE_RUNS = re.compile(
    r"^\s*\.(sh|sy|lo|exc|(on|ou|im)\w*\s+[\"']?\|)|writefile\s*\(\s*(?!')", re.IGNORECASE
)


def changes(call: Call) -> str:
    """Deny arguments that name a protected file, and outputs outside the project."""
    texts = [word.value or "" for word in call.args]
    if call.name == "sqlite3" and any(map(_SQLITE_RUNS.search, texts)):
        return "sqlite3 must not run or load anything, nor write files of unknown names"
    if any(map(_SYNCS.fullmatch, texts)):
        files = (word for word in call.args if not (word.value or "-").startswith("-"))
        return first(map(call.site.remove, files))
    if found := next(filter(_STARTS.match, texts), ""):
        return f"{call.name} must not start another program: leave {found} out"
    places = [after for word, after in pairwise(call.args) if word.value in ("-C", "--directory")]
    places += [plain_word(text.partition("=")[2]) for text in texts if _FOLDER.match(text)]
    return (
        first(_guarded(word, call) for word in call.args)
        or first(map(call.site.write, places))
        or outputs_reason(call)
    )


def _guarded(word: Word, call: Call) -> str:
    text = word.value if word.value is not None else word.prefix
    named = [text, *_PARTS.split(text)]
    if text.startswith("-") and not text.startswith("--"):
        named.append(text[2:])
    paths = (path for path in dict.fromkeys(named) if path)
    return first(call.site.paths.guards(path, call.site.known) for path in paths)


def sed(call: Call) -> str:
    """Judge the files of `sed -i`; deny the commands of a script that run programs."""
    texts = [word.value or "" for word in call.args]
    if any(word.value is None and not word.prefix for word in call.args[:1]):
        return unsure("sed", call.args[0])
    if any(_RUNS.search(text) for text in texts if not text.startswith("-")):
        return "sed must not run commands: leave its command e out"
    return changes(call) if any(map(_IN_PLACE.fullmatch, texts)) else ""


JUDGES: dict[str, Judge] = {**dict.fromkeys(NAMES, changes), "sed": sed, "gsed": sed}
