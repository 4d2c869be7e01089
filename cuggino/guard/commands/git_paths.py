"""The protected paths that a git command would take away, or change, in the work tree.

Everything that may be meant is named: pathspecs match more than they seem to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from cuggino.guard.commands.base import Call, Site, plain_word
from cuggino.guard.commands.options import Parsed
from cuggino.guard.commands.wordlist import words
from cuggino.guard.places import is_below, real_path
from cuggino.guard.shell.tree import Word

_MOVES = frozenset(words("switch merge pull rebase cherry-pick revert read-tree am"))
_FORCES = words("-f --force --discard-changes --hard --merge -C -B")
_MAGIC = re.compile(r":(?:\(([^)]*)\)|([/!^]*):?)")
_HERE = (plain_word("."),)
_CERTAIN = frozenset(("top", "exclude", "literal", "icase", ""))
"""Magic that does not limit what is excluded."""
_SIZES = (62, 64)
"""Bytes of an entry of git's index before its path, without and with extended flags."""


WHOLE = frozenset({".", "./", ":/", ":", "*", ":/*", ":(top)", ":(top)*", "**"})
"""Pathspecs of the whole tree."""


class _Scope(NamedTuple):
    """What a subcommand acts on."""

    specs: tuple[Word, ...] = ()
    """Pathspecs and paths."""
    is_whole: bool = False
    """True if it acts on the whole tree when no pathspec names a part."""
    moves: bool = False
    """True if it may bring the whole tree to another state; uncommitted changes stay."""
    tracked: bool = True
    untracked: bool = False
    ignored: bool = False
    brings: bool = False
    """True if it may write files that are not there yet."""
    is_literal: bool = False
    """True if it takes paths, which are no pathspecs."""


class Taken(NamedTuple):
    """The protected paths that a subcommand affects."""

    named: tuple[str, ...] = ()
    """All that it may remove or change."""
    lost: tuple[str, ...] = ()
    """Those for which it is denied.

    Commands without a pathspec are git's everyday way to another state of the whole tree. They are
    denied only for what is not committed.
    """


def taken_away(sub: Call, given: Parsed, before: Parsed) -> Taken:
    """Return which protected paths the subcommand would take away.

    `given` are its parsed arguments, `before` the options of git itself; `sub.site` has the folder
    that results from these.
    """
    scope = _scope_of(sub, given, before)
    if scope is None:
        return Taken()
    tree = _Tree(sub.site, before)
    named = lost = tree.named(scope)
    if (scope.is_whole and not scope.specs) or any(spec.value in WHOLE for spec in scope.specs):
        lost = tuple(
            name
            for name in named
            if tree.is_changed(name) or (scope.untracked and not tree.is_tracked(name))
        )
    if scope.moves:
        named = tuple(tree.places)
        if not lost and given.has(*_FORCES):
            lost = tuple(filter(tree.is_changed, named))
    return Taken(named, lost)


def protected_reason(sub: Call, given: Parsed, before: Parsed) -> str:
    """Return why the subcommand is denied: it would take protected paths away, or "" (AUT-215)."""
    lost = taken_away(sub, given, before).lost if sub.site.policy.judges_paths else ()
    if not lost:
        return ""
    excluded = f", or add ':(top,exclude){lost[0]}' if it takes pathspecs"
    return (
        f"git {sub.name} would remove {', '.join(lost[:3])}, which must stay: name the other"
        f" files{'' if sub.name == 'clean' else excluded}"
    )


def _scope_of(sub: Call, given: Parsed, before: Parsed) -> _Scope | None:
    """Return what the subcommand acts on, or None if it leaves the work tree as it is."""
    operands = given.operands
    rest = operands[1:]
    verb = operands[0].value if operands else ""
    is_whole = given.has("--pathspec-from-file", "-p", "--patch")
    is_rehearsed = given.has("-n", "--dry-run")
    match sub.name:
        case "stash" if verb in ("pop", "apply", "branch"):
            return _Scope(moves=True)
        case "stash":
            first = (sub.args[0].value or "") if sub.args else ""
            has_verb = verb in ("push", "save") and first != "--"
            if not has_verb and not first.startswith("-") and sub.args:
                return None
            specs = rest if has_verb else operands
            is_all = given.has("-a", "--all")
            return _Scope(
                () if is_whole or verb == "save" else specs,
                is_whole=True,
                untracked=is_all or given.has("-u", "--include-untracked"),
                ignored=is_all,
            )
        case "clean":
            ignored = given.has("-x", "-X")
            specs, is_whole = operands or _HERE, False
            if given.has("-d"):
                specs = tuple(map(_widened, specs))
                # With an exclusion, git takes ignored folders anywhere.
                is_whole = any(map(_is_exclusion, specs))
            scope = _Scope(
                () if is_whole else specs, is_whole, tracked=False, untracked=True, ignored=ignored
            )
            acts = given.has("-f", "--force", "-i", "--interactive") or before.has("-c")
            return scope if acts and not is_rehearsed else None
        case "restore":
            only_staged = given.has("--staged", "-S") and not given.has("--worktree", "-W")
            scope = _Scope(operands, is_whole, brings=given.has("--source", "-s"))
            return None if only_staged else scope
        case "checkout":
            has_mark = any(word.value == "--" for word in sub.args)
            trees = len(list(_until_mark(sub))) if has_mark else 0
            moves = given.has("-b", "-B", "--orphan", "--detach") or len(operands) < 2
            brings = trees > 0 or (not has_mark and len(operands) > 1)
            # The first one may be a tree, so that there are only exclusions.
            specs = rest if rest and all(map(_is_exclusion, rest)) else operands[trees:]
            return _Scope(specs, is_whole, moves, brings=brings)
        case "reset":
            moves = given.has("--hard", "--merge", "--keep")
            return _Scope(moves=True) if moves else None
        case "rm":
            scope = _Scope(() if is_whole else operands or _HERE, is_whole)
            return None if given.has("--cached") or is_rehearsed else scope
        case "mv":
            scope = _Scope(
                (*operands, *_inside(operands)), untracked=True, brings=True, is_literal=True
            )
            return None if is_rehearsed else scope
        case "worktree" if verb in ("add", "move", "remove"):
            return _Scope(rest, untracked=True, brings=True, is_literal=True)
        case "checkout-index":
            return _Scope(operands, given.has("-a", "--all"), brings=True)
        case "sparse-checkout" if verb not in ("list", "disable", "check-rules"):
            return _Scope(is_whole=True)
        case "submodule" if verb == "add":
            return _Scope(rest, untracked=True, brings=True, is_literal=True)
        case name if name in _MOVES:
            return _Scope(moves=True)
        case _:
            return None


def _until_mark(sub: Call) -> Iterator[Word]:
    """Yield the operands of `git checkout` before `--`."""
    for word in sub.args:
        if word.value == "--":
            return
        if not (word.value or "").startswith("-"):
            yield word


def _widened(word: Word) -> Word:
    """Return a pathspec for all below the first wildcard: `git clean -d` takes such folders too."""
    found = re.search(r"[*?\[\\]", word.value or "")
    return word if found is None else word._replace(value=f"{(word.value or '')[: found.start()]}*")


def _is_exclusion(word: Word) -> bool:
    spec = _Pathspec.of(word)
    return spec is not None and spec.excludes


def _inside(operands: tuple[Word, ...]) -> Iterator[Word]:
    """Yield the paths of files that are moved into a folder."""
    for word in operands[:-1]:
        folder, name = operands[-1].value, os.path.basename((word.value or "").rstrip("/"))  # noqa: PTH119
        if folder and name:
            yield word._replace(value=f"{folder.rstrip('/')}/{name}")


class _Pathspec(NamedTuple):
    """A pathspec that names a part of the tree."""

    pattern: str
    is_top: bool = False
    """True if it is relative to the top of the work tree."""
    excludes: bool = False
    is_certain: bool = False
    """True if it matches nothing but the path and what is in it."""

    @classmethod
    def of(cls, word: Word) -> _Pathspec | None:
        """Parse a word; None if nothing is known about it."""
        text = word.value if word.value is not None else f"{word.prefix}*" * bool(word.prefix)
        if not text:
            return None
        found = _MAGIC.match(text)
        if found is None:
            return cls(text)
        long = frozenset((found[1] or "").replace(" ", "").split(","))
        pattern, short = text[found.end() :], found[2] or ""
        is_plain = "literal" in long or not re.search(r"[*?\[\\]", pattern)
        return cls(
            pattern,
            is_top="top" in long or "/" in short,
            excludes="exclude" in long or not {"!", "^"}.isdisjoint(short),
            is_certain=is_plain and long <= _CERTAIN,
        )

    def reaches(self, place: str, cwd: str, top: str) -> bool:
        """Return whether it may match the place, something in it or a folder above it."""
        base = top if self.is_top else cwd
        pattern = os.path.normpath(os.path.join(_escaped(base), self.pattern))  # noqa: PTH118
        return _may_match(pattern, place) or is_below(base, place)

    def covers(self, place: str, cwd: str, top: str) -> bool:
        """Return whether it certainly matches the place with all that is in it."""
        base = top if self.is_top else cwd
        wanted = os.path.normpath(os.path.join(base, self.pattern))  # noqa: PTH118
        return self.is_certain and is_below(place, wanted)


class _Tree:
    """A work tree, as far as its protected paths matter."""

    def __init__(self, site: Site, before: Parsed) -> None:
        self.site = site
        self.places = site.paths.places()
        """The protected paths by name, without git's own folder."""
        self._is_literal = before.has("--literal-pathspecs")
        self._folder = next((word.value for word in before.values("--git-dir")), None)
        self._work_tree = next((word.value for word in before.values("--work-tree")), None)
        self._cwds = site.known or (site.paths.project,)

    def named(self, scope: _Scope) -> tuple[str, ...]:
        """Return the names of the protected paths in the scope."""
        specs = [spec for spec in map(_Pathspec.of, scope.specs) if spec is not None]
        if self._is_literal or scope.is_literal:
            specs = [_Pathspec(word.value or "\0") for word in scope.specs]
        return tuple(
            name
            for name, place in self.places.items()
            if (self._is_there(name, scope) or self._is_named(specs, place))
            and any(self._reach(specs, scope, place, real_path(cwd)) for cwd in self._cwds)
        )

    def _reach(self, specs: list[_Pathspec], scope: _Scope, place: str, cwd: str) -> bool:
        top = self._top(cwd)
        positive = [spec for spec in specs if not spec.excludes]
        if any(spec.excludes and spec.covers(place, cwd, top) for spec in specs):
            return False
        if not positive:
            return bool(specs) or (scope.is_whole and not scope.specs)
        return any(spec.reaches(place, cwd, top) for spec in positive)

    def _is_named(self, specs: list[_Pathspec], place: str) -> bool:
        """Return whether a pathspec is the path itself, or one in it."""
        return any(
            is_below(os.path.normpath(os.path.join(base, spec.pattern)), place)  # noqa: PTH118
            for spec in specs
            for base in map(
                real_path, self._cwds if not spec.is_top else map(self._top, self._cwds)
            )
            if spec.pattern and not spec.excludes
        )

    def _is_there(self, name: str, scope: _Scope) -> bool:
        if scope.brings or (scope.tracked and self.is_tracked(name)):
            return True
        if not os.path.lexists(self.places[name]):
            return False
        if self.site.is_full or not scope.untracked:  # level `full` does not rely on the index
            return self.site.is_full
        return scope.ignored or not self._is_ignored(name)

    def is_tracked(self, name: str) -> bool:
        """Return whether git's index may have the path, or something in it."""
        return any(True for _ in self._entries(name))

    def is_changed(self, name: str) -> bool:
        """Return whether a tracked file of the path differs from the index, by size or time."""
        for path, entry in self._entries(name):
            try:
                found = os.lstat(path)
            except OSError:
                return True
            time, size = int.from_bytes(entry[8:12]), int.from_bytes(entry[36:40])
            if (int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF) != (time, size):
                return True
        return False

    def _entries(self, name: str) -> Iterator[tuple[str, bytes]]:
        """Yield the files of the path in the index, each with its entry."""
        for cwd in self._cwds:
            top = self._top(real_path(cwd))
            prefix = os.path.relpath(self.places[name], top).encode()
            data = self._index(top)
            if data[4:8] not in (b"\0\0\0\2", b"\0\0\0\3"):
                if data:  # a version with shortened paths
                    yield "", b""
                continue
            for found in re.finditer(re.escape(prefix) + rb"(?:/[^\0]+)?\0", data):
                path = found[0][:-1]
                for size in _SIZES:
                    entry = data[max(0, found.start() - size) : found.start()]
                    flags = int.from_bytes(entry[60:62])
                    if flags & 0xFFF == min(len(path), 0xFFF) and len(entry) == size:
                        yield os.path.join(top, os.fsdecode(path)), entry  # noqa: PTH118

    def _index(self, top: str) -> bytes:
        """Return git's index; empty if there is none."""
        folder = os.path.join(top, ".git" if self._folder is None else self._folder)  # noqa: PTH118
        try:
            if os.path.isfile(folder):  # noqa: PTH113
                with open(folder, encoding="utf-8") as file:  # noqa: PTH123
                    folder = os.path.join(top, file.read().partition("gitdir:")[2].strip())  # noqa: PTH118
            with open(os.path.join(folder, "index"), "rb") as index:  # noqa: PTH118, PTH123
                return index.read()
        except OSError:
            return b""

    def _is_ignored(self, name: str) -> bool:
        """Return whether a file of patterns certainly makes git ignore the path."""
        top = self.site.paths.project
        wanted = {f"{start}{name}{end}" for start in ("", "/") for end in ("", "/", "/*")}
        files = (
            (".gitignore", wanted),
            (".git/info/exclude", wanted),
            (f"{name}/.gitignore", {"*"}),
        )
        for file, patterns in files:
            try:
                with open(os.path.join(top, file), encoding="utf-8") as text:  # noqa: PTH118, PTH123
                    lines = {line.strip() for line in text}
            except (OSError, ValueError):
                continue
            if lines & patterns and not any(line.startswith("!") for line in lines):
                return True
        return False

    def _top(self, cwd: str) -> str:
        """Return the top of the work tree around a folder."""
        if self._work_tree is not None:
            return real_path(os.path.join(cwd, self._work_tree))  # noqa: PTH118
        top = cwd
        while top != "/" and not os.path.lexists(os.path.join(top, ".git")):  # noqa: PTH118
            top = os.path.dirname(top)  # noqa: PTH120
        return self.site.paths.project if top == "/" else top


def _escaped(path: str) -> str:
    return re.sub(r"([*?\[\\])", r"\\\1", path)


def _may_match(pattern: str, place: str) -> bool:
    """Return whether a pattern may match the place, something in it or a folder above it.

    `*` matches slashes too, a set of characters every one, and case does not count.
    """
    pattern = pattern.lower().replace("**/", "*")
    tokens = re.findall(r"\\.|\[!?\]?[^\]]*\]|.", pattern, re.DOTALL)
    states = _opened({0}, tokens)
    for char in place.lower() + "/":
        if char == "/" and len(tokens) in states:
            return True
        states = _opened({after for at in states for after in _step(at, tokens, char)}, tokens)
    return bool(states)


def _step(at: int, tokens: list[str], char: str) -> Iterator[int]:
    """Yield the state after a character."""
    token = tokens[at] if at < len(tokens) else ""
    if token == "*":
        yield at
    elif token in ("?", char, f"\\{char}") or (token[:1] == "[" and len(token) > 1):
        yield at + 1


def _opened(states: set[int], tokens: list[str]) -> set[int]:
    """Add the states behind each `*`, which may match nothing."""
    found = set(states)
    for at in states:
        while at < len(tokens) and tokens[at] == "*":
            at += 1
            found.add(at)
    return found
