"""What passes at the level `roles`, for a role that may write all the project, though unseen.

`sed -i s/a/b/ "$f"` is everyday work, and nobody can tell what `$f` is. Where the whole command
names nothing that is protected, such a target passes, unless what is known of it leads there or
out of the project. It is a filter against mistakes: the sandbox is the boundary.
"""

from __future__ import annotations

import re
from itertools import pairwise

from cuggino.guard.commands.base import GLOB, Roaming, Site, plain_word
from cuggino.guard.places import fold
from cuggino.guard.policy import Policy
from cuggino.guard.shell.tree import Word

_HOME = re.compile(r"\$\{?HOME\b|(?:^|[=:\"'\s(])~")
_VARIABLE = re.compile(r'"?\$\{?([A-Za-z_]\w*|[\d@*])', re.ASCII)
_WHOLE = re.compile(r'"?(?:\$[A-Za-z_]\w*|\$\{[A-Za-z_]\w*\})"?', re.ASCII)
_ABOVE = re.compile(r"/\.\.(?=[/\"]|$)")
_DEFAULT = re.compile(r"\$\{\w+:?[-=+]([^}$`]+)([}$`])", re.ASCII)
_HERE = re.compile(
    r'"?(?:\$PWD|\$\{PWD\}|\$\(pwd\)|\$\(git rev-parse --show-toplevel\))"?(/[^$`"]*)?"?'
)
_FILLED = re.compile(r"\b(?:read|mapfile|readarray|printf\s+-v|getopts)\b([^;|&\n]*)")
_OUTSIDE = re.compile(r"(?:^|[\s\"'=(])((?:/|~|\.\./)[^\s\"';|&)]*|\.\.(?=[\s\"';|&)]|$))")
_PASSED_OVER = re.compile(
    r"(?:-not|(?<!\S)\\?!)\s+-i?(?:path|name|wholename)\s+(?:\"[^\"]*\"|'[^']*'|\S+)"
    r"|-i?(?:path|name)\s+(?:\"[^\"]*\"|'[^']*'|\S+)\s+-prune"
    r"|--exclude(?:-dir|-path)?[= ](?:\"[^\"]*\"|'[^']*'|\S+)"
    r"|\bgrep\s+-v\s+(?:\"[^\"]*\"|'[^']*'|[^\s;|&]+)"
)
"""What names a folder to leave it out: `-not -path './.git/*'`."""
_AWAY = re.compile(
    r"\b(?:cd|pushd)(?:\s+--)?\s*(?:[;&|\n]|$|[\"']?(?:~|\$\{?HOME\b|/|\.\.|-(?!-)))"
)
_ELSEWHERE = re.compile(
    r"\b(?:cd|pushd)(?:\s+--)?\s+"
    r"(?!\s|--\s|\"?\$\((?:git rev-parse --show-toplevel|mktemp -d|pwd)\))[^;&|\n]*[$`*?]"
    r"|-execdir|-okdir|\s-C\b|--chdir"
)
_DEEPEST = 5


def is_lenient(policy: Policy, source: str) -> bool:
    """Whether what cannot be told passes in this command."""
    free = policy.level == "roles" and policy.writable is None and policy.mode != "sync"
    return free and bool(source) and not _names_guarded(policy, source)


def roaming(source: str) -> Roaming:
    """Whether a folder that is entered and not known may count as one of the project."""
    if _AWAY.search(source):
        return "no"
    return "open" if _ELSEWHERE.search(source) else "always"


def _names_guarded(policy: Policy, source: str) -> bool:
    text = _PASSED_OVER.sub(" ", source)
    folded = "\n".join((fold(text), fold(re.sub(r"[\"'\\]", "", text))))
    entries = {fold(entry.strip("/")) for entry in (*policy.protected, *policy.read_only)}
    names = entries | {entry.rpartition("/")[2] for entry in entries}
    return any(
        re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", folded)
        for name in names - {"", ".", ".."}
    )


def unknown_reason(word: Word, site: Site, removes: bool) -> str:
    """Return why an unknown target may not be written, or with `removes` not removed, or ""."""
    return _unknown_reason(word, site, removes=removes, depth=0)


def _unknown_reason(word: Word, site: Site, *, removes: bool, depth: int) -> str:
    if _HOME.search(word.text) or word.has_tilde:
        return f"'{word.text}' is in a home folder: nothing outside the project may be written"
    if removes and _ABOVE.search(word.text):
        return f"'{word.text}' may hold the project: name what is in it"
    if word.prefix:
        return _probe(word.prefix, site) or _climbs(word, site)
    if reason := _probe("", site):
        return reason
    for default, end in _DEFAULT.findall(word.text):
        start = re.sub(r"[\"']", "", default)
        given = plain_word(start)
        if end != "}":
            reason = _probe(start, site)
        else:
            reason = site.remove(given) if removes else site.write(given)
        if reason:
            return reason
    if here := _HERE.fullmatch(word.text):
        rest = here[1] or ""
        given = Word(word.text, f".{rest}", has_glob=any(char in rest for char in GLOB))
        return site.remove(given) if removes else site.change(given)
    if word.text in ("xargs{}", "{}"):
        return _named_outside(site.feed, word, site)
    found = _VARIABLE.match(word.text)
    if found is None:
        return _named_outside(word.text, word, site)
    values = site.trail.values.get(found[1])
    if values is None:
        is_filled = found[1] in "@*" or found[1].isdigit() or _is_filled(found[1], site)
        return _named_outside(site.trail.source, word, site) if is_filled else ""
    is_whole = _WHOLE.fullmatch(word.text) is not None
    for value in values:
        if _HOME.search(value.text):
            return f"'{word.text}' may be in a home folder: nothing outside the project is written"
        if value.value is None:
            if depth < _DEEPEST and value.text != word.text:
                inner = _unknown_reason(value, site, removes=removes, depth=depth + 1)
                if inner:
                    return inner
            continue
        for part in value.value.split():
            # Quotes around the value keep nothing from being a pattern where it is used.
            is_pattern = any(char in part for char in GLOB) and not word.text.startswith('"')
            has_glob = value.has_glob or is_pattern
            known = value._replace(text=part, value=part, scripts=(), has_glob=has_glob)
            if not is_whole:
                is_part = has_glob or _goes_on(word.text, found.end())
                reason = _probe(re.split(r"[*?\[]", part)[0], site, is_part=is_part)
            elif removes:
                reason = site.remove(known)
            else:
                reason = site.change(known)
            if reason:
                return reason
    return ""


def _is_filled(name: str, site: Site) -> bool:
    """Whether the same input gives the variable a text, in a way that is not followed."""
    return any(re.search(rf"\b{name}\b", words) for words in _FILLED.findall(site.trail.source))


def _goes_on(text: str, at: int) -> bool:
    """Whether the name that the variable begins goes on behind it."""
    return not text[at:].lstrip('}"').startswith("/")


def _climbs(word: Word, site: Site) -> str:
    """Why a path may lead out of the folder that it begins with."""
    for name in re.findall(r"\$\{?([A-Za-z_]\w*)", word.text):
        for value in site.trail.values.get(name, ()):
            if ".." in (value.value or value.prefix).split("/"):
                return f"'{word.text}' may lead out of its folder: write the path out"
    return ""


def _probe(start: str, site: Site, *, is_part: bool = True) -> str:
    """Why nothing may be written that begins so."""
    last = fold(start.rpartition("/")[2])
    names = (fold(entry.partition("/")[0]) for entry in site.policy.protected)
    if is_part and last and any(name.startswith(last) for name in names):
        return f"'{start}' may begin the name of something protected: write the path out"
    path = f"{start}x" if is_part else start
    if reason := site.paths.write(path, site.assumed):
        return reason
    return site.trailed(path)


def _named_outside(text: str, word: Word, site: Site) -> str:
    """Why what another command prints must not be written: it looks outside the project."""
    for place in _OUTSIDE.findall(text):
        if place.startswith("~") or site.paths.write(place, site.assumed):
            shown = word.text.replace("xargs{}", "what xargs adds")
            return (
                f"'{shown}' may come from '{place}', where nothing may be written: write the paths"
                " out"
            )
    return ""


def dynamic_program(words: tuple[Word, ...], site: Site, reason: str) -> str:
    """Why a program whose name is not known must not run; `reason` where that is why."""
    head = words[0]
    if head.text in ("xargs{}", "{}") or (
        any(w.value == "-c" and n.value is None for w, n in pairwise(words))
    ):
        return reason
    found = _VARIABLE.match(head.text)
    if found is None or not _WHOLE.fullmatch(head.text):
        return ""
    if found[1] in ("SHELL", "BASH"):
        return site.judge((plain_word("bash"), *words[1:]), site)
    for value in site.trail.values.get(found[1], ()):
        parts = (value.value or "").split()
        if not parts:
            continue
        if "=" in parts[0]:
            return reason
        if why := site.judge((*map(plain_word, parts), *words[1:]), site):
            return why
    return ""
