"""`cp` and `mv`: from several sources to one place."""

from __future__ import annotations

import os

from cuggino.guard.commands.base import Call, Judge, Site, first, plain_word, unclear
from cuggino.guard.commands.options import Parsed, Syntax, parse_options
from cuggino.guard.commands.wordlist import words
from cuggino.guard.shell.tree import Word

_LONG_FLAGS = words(
    "archive attributes-only copy-contents debug force interactive link dereference"
    " no-clobber no-dereference no-target-directory parents recursive remove-destination"
    " symbolic-link strip-trailing-slashes update verbose one-file-system"
    " keep-directory-symlink help version backup preserve reflink context exchange"
    " relative logical physical directory compare preserve-context"
)
_SYNTAX = Syntax(
    short="St",
    long=("suffix", "target-directory", "sparse", "no-preserve", "mode", "owner", "group"),
    flags=_LONG_FLAGS,
)
_KEEPS_LINKS = words("-a -d -P -r -R --archive --recursive --no-dereference")


def cp(call: Call) -> str:
    """Judge every file that `cp` makes; deny making links (AUT-214)."""
    given = parse_options(call.args, _SYNTAX)
    if given.has("-s", "-l", "--symbolic-link", "--link"):
        return "cp must not make links: copy the files themselves"
    if len(given.operands) == 1 and not given.has("-t", "--target-directory"):
        return "" if given.operands[0].value is not None else _unsure(call, given)
    reason = _targets(call, given)
    if not reason and given.has(*_KEEPS_LINKS):
        _remember_links(call.site, given)
    copies_folders = given.has("-r", "-R", "-a", "--recursive", "--archive")
    if not reason and copies_folders:
        reason = _folders(call.site, given)
    return reason


def _remember_links(site: Site, given: Parsed) -> None:
    """Record copied links: they lead elsewhere from their new place."""
    sources, target = _split(given)
    for source in sources if target is not None else ():
        for cwd in site.known:
            full = os.path.join(cwd, source.value or "")  # noqa: PTH118
            if target is None or not (os.path.islink(full) or site.trailed(source.value or "")):  # noqa: PTH114
                continue
            for word in (target, _inside(target, source)):
                site.trail.made.append(os.path.normpath(os.path.join(cwd, word.value or "")))  # noqa: PTH118


def mv(call: Call) -> str:
    """Judge the sources and the target of `mv` (AUT-169, AUT-215)."""
    given = parse_options(call.args, _SYNTAX)
    least = 1 if given.has("-t", "--target-directory") else 2
    if len(given.operands) < least:
        return "mv requires source and destination paths"
    sources, _ = _split(given)
    return first((*map(call.site.remove, sources), _targets(call, given)))


def _targets(call: Call, given: Parsed) -> str:
    for suffix in given.values("-S", "--suffix"):
        if suffix.value is None or "/" in suffix.value:
            return f"The suffix '{suffix.text}' must be a plain ending without a slash"
    sources, target = _split(given)
    if target is None:
        return ""
    reason = _unsure(call, given)
    return reason or _to(call.site, sources, target, parents=given.has("--parents"))


def _split(given: Parsed) -> tuple[list[Word], Word | None]:
    folders = given.values("-t", "--target-directory")
    if folders:
        return list(given.operands), folders[-1]
    if len(given.operands) < 2:
        return list(given.operands), None
    return list(given.operands[:-1]), given.operands[-1]


def _unsure(call: Call, given: Parsed) -> str:
    if not given.unclear or call.site.is_open:
        return ""
    text = given.unclear[0].text.replace("xargs{}", "what xargs adds")
    return (
        f"'{text}' could be an option of {call.name} or several words: write the names out, or put"
        " '--' before it and the variable in double quotes"
    )


def _to(site: Site, sources: list[Word], target: Word, *, parents: bool) -> str:
    if reason := site.write(target):
        return reason
    for source in sources:
        if source.value is None:
            continue
        made = _inside(target, source._replace(value=source.value.lstrip("/")), whole=parents)
        if made.value and any(char in made.value for char in "*?["):
            continue
        if reason := site.write(made):
            return reason
    return ""


def _inside(target: Word, source: Word, *, whole: bool = False) -> Word:
    """Return the path of a source within a target folder."""
    value = (source.value or "").rstrip("/")
    name = value if whole else os.path.basename(value)  # noqa: PTH119
    if name in ("", ".", ".."):
        return target
    return plain_word(f"{(target.value or '').rstrip('/')}/{name}" if target.value else name)


def _folders(site: Site, given: Parsed) -> str:
    """Judge recursive copies, which could bring protected files into their place."""
    sources, target = _split(given)
    if target is None or target.value is None:
        return ""
    for source in sources:
        if reason := unclear(source, "copied with all that is in it"):
            if source.value is None and not _above_protected(site, target.value):
                continue
            return reason
        if reason := _folder(site, source.value or "", target.value):
            return reason
    return ""


def _folder(site: Site, source: str, target: str) -> str:
    name = os.path.basename(source.rstrip("/"))  # noqa: PTH119
    keeps_name = name not in ("", ".", "..") and not source.endswith("/.")
    for cwd in site.known or {"/"}:
        into = site.paths.resolve(target, cwd)
        origin = site.paths.resolve(source, cwd)
        places = [into, os.path.join(into, name)] if keeps_name else [into]  # noqa: PTH118
        for place in places:
            for entry in site.policy.protected:
                guarded = os.path.join(site.paths.project, entry)  # noqa: PTH118
                if not guarded.startswith(place + "/"):
                    continue
                inner = os.path.join(origin, guarded[len(place) + 1 :])  # noqa: PTH118
                is_fresh = any(w.startswith(origin + "/") for w in site.trail.written)
                exists = os.path.lexists(inner)
                if exists or is_fresh or (place == into and not os.path.lexists(origin)):
                    return (
                        f"'{source}' may hold {entry}, which is protected here: copy the files"
                        " that are needed by their names"
                    )
        if not (origin + "/").startswith(site.paths.project + "/"):
            site.trail.made += [os.path.join(place, "").rstrip("/") for place in places[-1:]]  # noqa: PTH118
    return ""


def _above_protected(site: Site, target: str) -> bool:
    """Return whether the target is the project or above it."""
    return any(
        (site.paths.project + "/").startswith(site.paths.resolve(target, cwd).rstrip("/") + "/")
        for cwd in site.known
    )


JUDGES: dict[str, Judge] = {"cp": cp, "gcp": cp, "mv": mv}
