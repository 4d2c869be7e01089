"""Rules for `find`: the programs it starts, and the files it removes or writes."""

from __future__ import annotations

from itertools import pairwise

from cuggino.guard.commands.artefacts import is_artefact
from cuggino.guard.commands.base import UNKNOWN, Call, first, plain_word
from cuggino.guard.commands.options import may_split
from cuggino.guard.commands.wordlist import words
from cuggino.guard.shell.tree import Word

_WITH_VALUE = frozenset(
    words(
        "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type"
        " -xtype -size -mtime -mmin -atime -amin -ctime -cmin -newer -anewer -cnewer -user"
        " -group -uid -gid -perm -links -inum -samefile -fstype -maxdepth -mindepth -printf"
        " -regextype -used -context -D -files0-from -Bmin -Bnewer -Btime"
    )
)
_OR = ("-o", "-or")
_NAMING = ("-name", "-iname", "-path", "-ipath", "-wholename")
_HERE = plain_word(".")
_WRITES = ("-fprint", "-fprint0", "-fls", "-fprintf")
_RUNS = ("-exec", "-execdir", "-ok", "-okdir")


def find(call: Call) -> str:
    """Judge the actions; an unknown word could be one (AUT-212)."""
    args = list(call.args)
    roots: list[Word] = []
    in_roots = True
    follows = False
    reasons: list[str] = []
    while args:
        word = args.pop(0)
        if word.value is None:
            is_quoted = call.site.is_open and in_roots and not may_split(word)
            if not is_quoted and not _is_root(word, in_roots):
                return (
                    f"'{word.text}' could be an action of find such as -delete: write it literally,"
                    " or begin it with './'"
                )
            roots += [word] if in_roots else []
            continue
        name = word.value
        if not name.startswith(("-", "(", ")", "!")) and in_roots:
            roots.append(word)
            continue
        if name in ("-H", "-L", "-P", "-E", "-X", "-x", "-s", "-d") or name.startswith("-O"):
            follows = follows or name == "-L"
            continue
        in_roots = False
        follows = follows or name == "-follow"
        if name in _WITH_VALUE or name.startswith("-newer"):
            if args and may_split(args.pop(0)):
                return f"What follows {name} could be several words: put it in double quotes"
        elif name in _WRITES:
            reasons.append(call.site.write(args.pop(0)) if args else "")
            if name == "-fprintf" and args:
                args.pop(0)
        elif name == "-delete":
            reasons.append(_delete(call, roots, follows=follows))
        elif name in _RUNS:
            inner = _inner(args)
            del args[: len(inner) + 1]
            if call.site.is_open and _removes_found(inner):
                reasons.append(_delete(call, roots, follows=follows))
            else:
                reasons.append(first(_run(call, name, inner, [root]) for root in roots or [_HERE]))
    return first(reasons)


def _removes_found(inner: list[Word]) -> bool:
    """Return whether the command only removes the files that `find` has found."""
    files = [word.value for word in inner[1:] if not (word.value or "").startswith("-")]
    return bool(inner) and inner[0].value == "rm" and files == ["{}"]


def _is_root(word: Word, in_roots: bool) -> bool:
    return (
        in_roots and bool(word.prefix) and not word.prefix.startswith("-") and not may_split(word)
    )


def _is_artefacts(args: tuple[Word, ...], roots: list[Word]) -> bool:
    """Return whether the search is limited to artefacts, by place or by name."""
    if roots and all(is_artefact(root.value or "/") for root in roots):
        return True
    depth = 0
    alternatives: list[list[str]] = [[]]
    for word, after in pairwise((*args, _HERE)):
        depth += (word.value == "(") - (word.value == ")")
        if word.value in ("!", "-not", ",") or (word.value in _OR and not depth):
            return False
        if word.value in _OR:
            alternatives.append([])
        elif word.value in _NAMING:
            alternatives[-1].append(after.value or "/")
    return all(any(map(_names_artefact, names)) for names in alternatives)


def _names_artefact(pattern: str) -> bool:
    return is_artefact(pattern.strip("*/") + "/x" if "/" in pattern else pattern)


def _delete(call: Call, roots: list[Word], *, follows: bool) -> str:
    site = call.site
    is_fine = site.is_open and site.policy.mode == "run" and _is_artefacts(call.args, roots)
    if not site.is_destructive and not is_fine:
        return (
            "find must not delete here: -delete is not in the allowlist unless destructive commands"
            " are allowed"
        )
    if follows:
        return "find -delete must not follow links: leave -L out"
    return first(map(site.change if is_fine else site.remove, roots or [_HERE]))


def _inner(args: list[Word]) -> list[Word]:
    """Return the command up to `;`, or to a `+` after `{}`."""
    for index, word in enumerate(args):
        if word.value == ";" or (
            word.value == "+" and index and (args[index - 1].value or "").endswith("{}")
        ):
            return args[:index]
    return list(args)


def _run(call: Call, name: str, inner: list[Word], roots: list[Word]) -> str:
    if not inner:
        return f"find {name} needs a command"
    base = "./" if name.endswith("dir") or not roots else (roots[0].value or "")
    if base.startswith("-") or any(root.value is None for root in roots):
        base = ""
    words = []
    for word in inner:
        if word.value is None or "{}" not in word.value:
            words.append(word)
            continue
        before = word.value.partition("{}")[0]
        words.append(Word("{}", None, before or base))
    site = call.site
    if name.endswith("dir"):
        site = site._replace(cwds=site.cwds | {UNKNOWN})
    return site.judge(tuple(words), site._replace(is_fed=True))
