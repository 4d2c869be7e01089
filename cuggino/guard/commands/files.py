"""The files that programs write, move or remove: a table by program, with one engine.

At level `full` what is not known is denied. Level `roles` judges what is spelled out.
"""

from __future__ import annotations

import os
import re
from typing import Literal, NamedTuple, TypeAlias

from cuggino.guard.commands.base import Call, Site, first, plain_word, unclear
from cuggino.guard.commands.options import Parsed, Syntax, parse_options
from cuggino.guard.commands.outputs import outputs_reason
from cuggino.guard.commands.wordlist import words
from cuggino.guard.shell.tree import Word

_Use: TypeAlias = Literal["none", "write", "output", "remove", "copy", "move", "link", "any"]


class Files(NamedTuple):
    """The arguments in which a program names the files that it changes."""

    use: _Use = "none"
    """What happens to its operands: the last of those that are copied or linked is the target. With
    `any`, level `full` lets no argument name a protected file."""
    syntax: Syntax = Syntax()
    skips: int = 0
    """Number of operands before the files."""
    only: tuple[str, ...] = ()
    """The operands are changed only with one of these options."""
    replaces: tuple[str, ...] = ()
    """With one of these options there are no operands to skip."""
    targets: tuple[str, ...] = ()
    """Options whose value is written."""
    never: tuple[str, ...] = ()
    """Options that level `full` denies."""
    least: tuple[int, str] = (0, "")
    """The operands that level `full` requires, and their names."""
    is_open: bool = False
    """True if level `full` allows unknown files too: only the user lists the program."""


_COPIES = Syntax(
    "Stmog",
    words("suffix target-directory sparse no-preserve mode owner group"),
    words(
        "archive attributes-only copy-contents debug force interactive link dereference"
        " no-clobber no-dereference no-target-directory parents recursive remove-destination"
        " symbolic-link strip-trailing-slashes update verbose one-file-system"
        " keep-directory-symlink help version backup preserve reflink context exchange"
        " relative logical physical directory compare preserve-context"
    ),
)
_INTO = ("-t", "--target-directory")
_COPY = Files("copy", _COPIES, targets=_INTO, never=("-s", "-l", "--symbolic-link", "--link"))
_LINKS = Syntax("St", ("suffix", "target-directory"), _COPIES.flags)
_RM = words(
    "no-preserve-root preserve-root one-file-system recursive force interactive dir verbose help"
    " version"
)
_SORT = Files(
    syntax=Syntax(
        "kotST",
        words(
            "key output field-separator buffer-size temporary-directory compress-program"
            " files0-from batch-size parallel random-source sort"
        ),
        words("check stable unique merge reverse numeric-sort"),
    ),
    targets=("-o", "--output", "-T", "--temporary-directory"),
    never=("--compress-program",),
)
_CURL = "oXHdAebcCDEFKmPQrTtUuwxyYz"
_TAR = Files(
    syntax=Syntax("fCTXbgHIKLNV", words("file directory files-from exclude transform")),
    targets=("-C", "--directory"),
    is_open=True,
)
_ANY = words(
    "link mknod rename prename setfacl chattr compress 7za 7zr 7zz 7z rsync scp dd shred split"
    " csplit mkfifo chown chgrp gzip gunzip bzip2 bunzip2 xz unxz zstd zip patch gpatch sqlite3"
    " mktemp dos2unix unix2dos base64 xxd ctags gcc g++ cc c++ clang clang++ ld ar strip objcopy"
    " cmake"
)
_SED_WRITES = r"(.*[/;}\dIMg\s])?[wW]\s.*"
"""A script of `sed` that writes."""
_PARTS = r"[\s=:,@'\"()|]+"
PROGRAMS: dict[str, Files] = {
    **dict.fromkeys(_ANY, Files("any", is_open=True)),
    **dict.fromkeys(words("venv virtualenv compileall py_compile"), Files("output")),
    "rm": Files("remove", Syntax(flags=_RM), never=("--no-preserve-root",),
                least=(1, "at least one file path")),
    "rmdir": Files("remove"),
    "unlink": Files("remove"),
    "mkdir": Files("write", Syntax("m", ("mode",), ("parents",))),
    "touch": Files("write", Syntax("rtdA", words("reference date time"))),
    "tee": Files("write", Syntax(flags=words("append output-error"))),
    "truncate": Files("write", Syntax("sr", words("size reference")), is_open=True),
    "chmod": Files("write", skips=1),
    "cp": _COPY,
    "gcp": _COPY,
    "mv": Files("move", _COPIES, targets=_INTO, least=(2, "source and destination paths")),
    "ln": Files("link", _LINKS, targets=_INTO, is_open=True),
    "install": Files("copy", _COPIES, targets=_INTO, is_open=True),
    "sed": Files("write", Syntax("efl", words("expression file line-length"), attached="i"), 1,
                 only=("-i", "--in-place"), replaces=words("-e -f --expression --file"),
                 is_open=True),
    "gsed": Files("write", only=("-i", "--in-place"), skips=1, is_open=True),
    "sort": _SORT,
    "gsort": _SORT,
    "uniq": Files("write", Syntax("fsw", words("skip-fields skip-chars check-chars")), 1),
    "tree": Files(syntax=Syntax("LPIoHT", words("filelimit charset timefmt sort output")),
                  targets=("-o", "--output"), never=("-R",)),
    "tar": _TAR,
    "gtar": _TAR,
    "bsdtar": _TAR,
    "unzip": Files(syntax=Syntax("dP"), targets=("-d",), is_open=True),
    "curl": Files(syntax=Syntax(_CURL, words("output output-dir dump-header cookie-jar")),
                  targets=words("-o -c -D --output --output-dir --dump-header --cookie-jar"),
                  is_open=True),
    "wget": Files(syntax=Syntax("OPoaUetTwQi", words("output-document directory-prefix")),
                  targets=words("-O -P -o -a --output-document --directory-prefix"),
                  is_open=True),
}  # fmt: skip


def files_reason(call: Call) -> str:
    """Return why the program must not change what its arguments name (AUT-168 to AUT-215)."""
    row = PROGRAMS[call.name]
    call = call._replace(site=call.site._replace(is_open=call.site.is_open or row.is_open))
    site = call.site
    given = parse_options(call.args, row.syntax)
    if site.is_full and (reason := _form(call, row, given)):
        return reason
    files = () if row.only and not given.has(*row.only) else given.operands
    if row.skips and not given.has(*row.replaces):
        files = files[row.skips :]
    targets = [word for word in given.values(*row.targets) if word.value != "-"]
    if row is _TAR and not _extracts(call):
        targets = []
    match row.use:
        case "any":
            reason = outputs_reason(call)
        case "output":
            reason = first(map(site.output, files))
        case "write":
            reason = first(site.change(word) for word in files if not _exists(call, given, word))
        case "remove":
            reason = first(map(site.remove, files))
        case "copy" | "move" | "link":
            reason = _placed(call, row, given, targets[-1:])
            targets = []
        case _:
            reason = ""
    writes = (
        not row.only
        or given.has(*row.only)
        or any(re.fullmatch(_SED_WRITES, word.value or "", re.DOTALL) for word in call.args)
    )
    if site.is_full and row.is_open and writes:
        reason = reason or first(_guarded(word, site) for word in call.args)
    return reason or first(map(site.write, targets)) or unclear_words(call, given)


def _guarded(word: Word, site: Site) -> str:
    """Return why an argument of any kind must not name a protected path."""
    text = word.value if word.value is not None else word.prefix
    named = [text, *re.split(_PARTS, text)]
    if text.startswith("-") and not text.startswith("--"):
        named.append(text[2:])
    return first(site.paths.guards(path, site.known) for path in dict.fromkeys(named) if path)


def _form(call: Call, row: Files, given: Parsed) -> str:
    """Return why level `full` denies the arguments, whatever the files are."""
    for option in given.options:
        if option.name in row.never:
            return f"Flag '{option.name}' is not allowed with {call.name}: leave it out"
        if option.value is None and option.name in row.targets:
            return f"{call.name} {option.name} needs the file it writes"
        if row.use == "remove" and option.value is not None and option.value.value is None:
            return unsure(call.name, option.value)
    least, what = row.least
    if len(given.operands) < least - given.has(*row.targets):
        return f"{call.name} requires {what}"
    if call.name == "uniq" and any(word.has_glob for word in given.operands):
        return "uniq writes its second file: name its files without wildcards"
    return ""


def _extracts(call: Call) -> bool:
    texts = [word.value or "" for word in call.args]
    bundled = texts[:1] if texts and not texts[0].startswith("-") else []
    short = [text for text in texts if text[:1] == "-" and text[1:2] != "-"]
    return any("x" in text for text in (*bundled, *short)) or "--extract" in texts


def _exists(call: Call, given: Parsed, word: Word) -> bool:
    """Return whether `mkdir` leaves the folder as it is, because it exists."""
    if call.name != "mkdir" or word.has_glob or word.has_tilde:
        return False
    ignores = not call.site.is_full or (call.site.is_limited and given.has("-p", "--parents"))
    return ignores and call.site.is_folder(word.value or "")


def _placed(call: Call, row: Files, given: Parsed, into: list[Word]) -> str:
    """Judge the sources and the target of programs like `cp`, `mv` and `ln` (AUT-169)."""
    site, operands = call.site, given.operands
    if any(word.value is None or "/" in word.value for word in given.values("-S", "--suffix")):
        return f"The suffix of {call.name} must be a plain ending without a slash"
    if into or (row.use == "link" and len(operands) == 1):
        sources, place = operands, (*into, plain_word("."))
    else:
        sources, place = operands[:-1], operands[-1:] if operands[1:] else ()
    reason = first(map(site.remove, sources or operands)) if row.use == "move" else ""
    if reason or not place:
        return reason or unclear_words(call, given)
    target = place[0]
    is_plain = given.has("-n", "-h", "-T", "--no-dereference", "--no-target-directory")
    in_folder = row.use == "copy" or (not is_plain and site.is_folder(target.value or ""))
    made = [_inside(target, source, given.has("--parents")) for source in sources]
    reason = unclear_words(call, given)
    if in_folder:
        reason = reason or ("" if row.use == "link" else site.write(target))
        reason = reason or first(map(site.write if row.use == "copy" else site.put, made))
    if reason := reason or ("" if in_folder else site.put(target)):
        return reason
    if row.use == "link":
        is_symbolic = given.has("-s", "--symbolic-link")
        return first(_linked(site, word, target, is_symbolic, in_folder) for word in sources)
    return _copied(site, given, sources, target) if row.use == "copy" and site.is_full else ""


def _inside(target: Word, source: Word, whole: bool = False) -> Word:
    """Return the path of a source within a target folder; the folder itself if it is unknown."""
    value = (source.value or "").strip("/") if whole else (source.value or "").rstrip("/")
    name = value if whole else os.path.basename(value)  # noqa: PTH119
    if target.value is None or name in ("", ".", "..") or source.has_glob:
        return target
    return target._replace(text="", value=f"{target.value.rstrip('/')}/{name}")


def _linked(site: Site, source: Word, target: Word, is_symbolic: bool, in_folder: bool) -> str:
    """Return why a link must not lead to the source: writes through it would end up there."""
    path = source.value or ""
    if not is_symbolic or not path or source.has_glob or source.has_tilde:
        return site.write(source)  # a second name of the same file
    link = _inside(target, source) if in_folder else target
    folder = os.path.dirname(link.value or "")  # noqa: PTH120
    for cwd in site.known:
        place = os.path.join(cwd, folder, path)  # noqa: PTH118
        if reason := site.paths.output(place, ()):
            if os.path.isabs(path) or os.path.lexists(place):  # noqa: PTH117
                return f"{reason}; a link to '{path}' would lead there"
            # It leads nowhere yet, but must not be written through.
            site.trail.made.append(site.paths.resolve(link.value or "", cwd))
    return ""


def _copied(site: Site, given: Parsed, sources: tuple[Word, ...], target: Word) -> str:
    """Judge copied folders, which may bring protected files into their place, and copied links."""
    recursive = given.has("-r", "-R", "-a", "--recursive", "--archive")
    for source in sources:
        for cwd in site.known if recursive or given.has("-d", "-P", "--no-dereference") else ():
            full = os.path.join(cwd, source.value or "")  # noqa: PTH118
            if os.path.islink(full) or site.trailed(source.value or ""):  # noqa: PTH114
                places = (target.value or "", _inside(target, source).value or "")
                site.trail.made += [os.path.normpath(os.path.join(cwd, place)) for place in places]  # noqa: PTH118
        if not recursive or target.value is None:
            continue
        if reason := unclear(source, "copied with all that is in it"):
            if source.value is not None or _above_project(site, target.value):
                return reason
        elif reason := _folder(site, source.value or "", target.value):
            return reason
    return ""


def _folder(site: Site, source: str, target: str) -> str:
    name = os.path.basename(source.rstrip("/"))  # noqa: PTH119
    keeps_name = name not in ("", ".", "..") and not source.endswith("/.")
    for cwd in site.known or {"/"}:
        into, origin = site.paths.resolve(target, cwd), site.paths.resolve(source, cwd)
        places = [into, os.path.join(into, name)] if keeps_name else [into]  # noqa: PTH118
        for place, entry in ((place, entry) for place in places for entry in site.policy.protected):
            guarded = os.path.join(site.paths.project, entry)  # noqa: PTH118
            if not guarded.startswith(place + "/"):
                continue
            inner = os.path.join(origin, guarded[len(place) + 1 :])  # noqa: PTH118
            is_fresh = any(path.startswith(origin + "/") for path in site.trail.written)
            is_missing = place == into and not os.path.lexists(origin)
            if is_fresh or is_missing or os.path.lexists(inner):
                return (
                    f"'{source}' may hold {entry}, which is protected here: copy the files that"
                    " are needed by their names"
                )
        if not (origin + "/").startswith(site.paths.project + "/"):
            site.trail.made.append(places[-1].rstrip("/"))
    return ""


def _above_project(site: Site, target: str) -> bool:
    """Return whether the target is the project or above it."""
    return any(
        (site.paths.project + "/").startswith(site.paths.resolve(target, cwd).rstrip("/") + "/")
        for cwd in site.known
    )


def unclear_words(call: Call, given: Parsed) -> str:
    """Return why a word that could be several, or an option, is denied."""
    if not given.unclear or call.site.is_lenient:
        return ""
    return unsure(call.name, given.unclear[0])


def unsure(name: str, word: Word) -> str:
    """Return the reason for denying an unknown word."""
    text = word.text.replace("xargs{}", "what xargs adds")
    return f"Cannot tell what '{text}' means to {name}: write the arguments literally"
