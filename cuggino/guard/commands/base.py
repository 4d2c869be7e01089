"""Types and checks shared by the rules for commands."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from cuggino.guard.paths import Paths
from cuggino.guard.policy import Policy
from cuggino.guard.shell.tree import Command, Loop, Redirect, Statement, Word

UNKNOWN = ""
"""Stands for an unknown folder."""

GLOB = "*?["
WRITING = frozenset((">", ">>", ">|", "<>", "&>", "&>>", ">&"))
"""Redirections that write."""


class Trail:
    """Effects of earlier commands of the same input, which the disk does not show yet."""

    def __init__(self) -> None:
        self.made: list[str] = []
        """Links made, and folders copied from elsewhere, by their real path."""
        self.written: list[str] = []
        """Written files, by their real path."""
        self.loose: set[str] = set()
        """Variables with a text that may look like an option."""
        self.values: dict[str, list[str]] = {}
        """Known values that level `roles` saw variables get."""
        self.inputs: set[str] = set()
        """Descriptors that were opened for reading."""
        self.calculates = False
        """True if there is arithmetic, which also evaluates the values of variables."""
        self.is_shaken = False
        """True if folders may have been removed."""
        self.is_swapped = False
        """True if another state of the tree was checked out."""


class Rules(NamedTuple):
    """The rules of a level. Each returns why something is denied, or ""."""

    judge: Callable[[tuple[Word, ...], Site], str]
    """The words of a command."""
    prefix: Callable[[Command, Site], str]
    """Its assignments, and arithmetic."""
    redirect: Callable[[Redirect, Site], str]
    text: Callable[[Statement, Site], str]
    """The arithmetic in a whole statement."""
    loop: Callable[[Loop, Site], str]
    """The variable of a loop."""
    function: Callable[[str, Site], str]
    """The name of a function."""


class Site(NamedTuple):
    """A command's context."""

    policy: Policy
    paths: Paths
    cwds: frozenset[str]
    """The folders it may run in; `UNKNOWN` among them if they are not all known."""
    listed: frozenset[str]
    pkill_targets: frozenset[str]
    trail: Trail
    judge: Callable[[tuple[Word, ...], Site], str]
    """Return why a command that another one starts is denied."""
    judge_text: Callable[[str, Site], str]
    """Return why a script passed to a shell is denied."""
    feed: str = ""
    """The known part of its standard input: a here-document, or the source of the pipe."""
    is_fed: bool = False
    """True if its standard input is a pipe, a file or a here-document."""
    document: str | None = None
    """Its whole standard input, if known."""
    is_open: bool = False
    """True if targets known only at run time may be written: the profile `extended`."""

    @property
    def is_full(self) -> bool:
        """True if only listed programs may run."""
        return self.policy.level == "full"

    @property
    def is_destructive(self) -> bool:
        """True if the user permits removing files and discarding work."""
        return self.policy.allow_destructive and self.policy.mode == "run"

    @property
    def is_limited(self) -> bool:
        """True if the role may write only some files of the project."""
        return self.policy.writable is not None or self.policy.mode == "sync"

    @property
    def known(self) -> frozenset[str]:
        """The folders, or none if any is unknown."""
        return self.cwds if UNKNOWN not in self.cwds else frozenset()

    @property
    def is_lenient(self) -> bool:
        """True if targets known only at run time may be written."""
        return self.is_open or not self.is_full

    def write(self, word: Word) -> str:
        """Return why the program must not write the file that the word names."""
        if word.value is None:
            return self._unclear(word, "written")
        if word.has_glob:
            return (
                f"Cannot tell which files '{word.text}' refers to: write the target without"
                " wildcards"
            )
        return self._unclear(word, "written") or self.write_path(word.value or "")

    def write_path(self, path: str) -> str:
        """Return why the program must not write the path."""
        return self._checked(self.paths.write, path) or self._follow(path)

    def output(self, word: Word) -> str:
        """Return why the value of an option is no place to write; of any role at level `roles`."""
        if self.is_full or word.value is None:
            return self.write(word)
        reason = self._unclear(word, "written")
        return reason or self._checked(self.paths.output, word.value or "")

    def put(self, word: Word) -> str:
        """Return why the program must not replace what the word names, such as a link itself."""
        path = word.value or ""
        if word.value is None or word.has_glob or path.endswith("/"):
            return self.write(word)
        if reason := self._unclear(word, "written"):
            return reason
        return self._checked(self.paths.replace, path) or self._follow(path)

    def remove(self, word: Word) -> str:
        """Return why the program must not remove, or move away, the path that the word names."""
        if reason := self._unclear(word, "removed or changed"):
            return reason
        path = word.value or ""
        if word.value is None:
            reasons = ""
        elif not word.has_glob:
            reasons = self._remove_path(path)
        else:
            reasons = (
                self._pattern(path)
                or self._everything(path)
                or first(map(self._remove_path, self.matches(path)))
            )
        if not reasons and self.is_full:
            self.trail.is_shaken = True
        return reasons

    def change(self, word: Word) -> str:
        """Return why the program must not change existing files; wildcards may name several."""
        if word.value is None or not word.has_glob:
            return self.write(word)
        path = word.value
        return (
            self._unclear(word, "changed")
            or self._pattern(path)
            or first(map(self.write_path, self.matches(path)))
        )

    def trailed(self, path: str) -> str:
        """Return why the path may lead through a link that the same input made."""
        return first(self._trailed(path, place) for place in self._places(path))

    def is_folder(self, path: str) -> bool:
        """Return whether the path is certainly an existing folder."""
        if not path or (not os.path.isabs(path) and UNKNOWN in self.cwds):  # noqa: PTH117
            return False
        return all(os.path.isdir(os.path.join(cwd, path)) for cwd in self.known or ("/",))  # noqa: PTH112, PTH118

    def matches(self, pattern: str) -> list[str]:
        """Return the files that the pattern matches now, and one that it could match."""
        import glob

        found = [pattern.translate({ord(char): "x" for char in "*?[]"})]
        for cwd in self.known or ([""] if os.path.isabs(pattern) else []):  # noqa: PTH117
            found += glob.glob(pattern, root_dir=cwd or None)[:1000]  # noqa: PTH207
        return list(dict.fromkeys(found))

    def _unclear(self, word: Word, done: str) -> str:
        """Return why the path that the word names is unknown, or bad as far as it is known."""
        if not self.policy.judges_paths:
            return ""
        if word.value is not None or not self.is_lenient:
            return unclear(word, done)
        if word.has_tilde or "$HOME" in word.text or "${HOME" in word.text:
            return unclear(word._replace(has_tilde=True, value=""), done)
        return self._checked(self.paths.write, f"{word.prefix}x") if word.prefix else ""

    def _checked(self, check: Callable[[str, frozenset[str]], str], path: str) -> str:
        """Return the reason of a check of the paths; level `roles` checks what is known."""
        is_known = path and "{}" not in path and (self.known or os.path.isabs(path))  # noqa: PTH117
        return check(path, self.known) if self.is_full or is_known else ""

    def _follow(self, path: str) -> str:
        for place in self._places(path):
            if reason := self._trailed(path, place):
                return reason
            self.trail.written.append(place)
        return ""

    def _pattern(self, pattern: str) -> str:
        return pattern_reason(pattern) if self.is_full else ""

    def _everything(self, pattern: str) -> str:
        folder, name = os.path.split(pattern.rstrip("/"))
        if name.strip("*") or self.paths.project not in self._places(folder or "."):
            return ""
        return f"'{pattern}' matches the whole project; list the files to delete"

    def _remove_path(self, path: str) -> str:
        if reason := self._checked(self.paths.remove, path):
            return reason
        # The link itself may go; what it leads to is not known yet.
        places = (place for place in self._places(path) if place not in self.trail.made)
        return first(self._trailed(path, place) for place in places)

    def _places(self, path: str) -> list[str]:
        if os.path.isabs(path):  # noqa: PTH117
            return [self.paths.resolve(path, "/")]
        return [self.paths.resolve(path, cwd) for cwd in self.known]

    def _trailed(self, path: str, place: str) -> str:
        for made in self.trail.made:
            if place == made or place.startswith(made + "/"):
                return (
                    f"'{path}' lies in what the same input puts there, perhaps a link that leads"
                    " elsewhere: do it in a separate call"
                )
        is_deep = place.startswith(self.paths.project + "/") and (
            os.path.dirname(place) != self.paths.project  # noqa: PTH120
        )
        if self.trail.is_swapped and is_deep:
            return (
                f"Before '{path}' is written the same input may swap its folder for a link: do it"
                " in a separate call"
            )
        return ""


class Call(NamedTuple):
    """A program with its arguments and context."""

    name: str
    args: tuple[Word, ...]
    site: Site


Judge: TypeAlias = Callable[[Call], str]
"""Returns why the call is denied, or ""."""


def plain_word(text: str) -> Word:
    """Return a known word."""
    return Word(text, text)


def unclear(word: Word, done: str) -> str:
    """Return why the path that the word names is unknown, or ""."""
    if word.value is None:
        return (
            f"Cannot tell which path '{word.text}' refers to, so nothing may be {done} there;"
            " write it literally"
        )
    if word.has_tilde:
        return f"'{word.text}' is in a home folder: nothing outside the project may be {done}"
    return ""


def pattern_reason(pattern: str) -> str:
    """Return why a pattern may match hidden files or lead upward, or ""."""
    seen = False
    for part in pattern.split("/"):
        if any(char in part for char in GLOB):
            seen = True
            if part.startswith("."):
                return f"'{pattern}' may match protected files: write the names literally"
        elif seen and part == "..":
            return f"'{pattern}' has '..' after its wildcard: write the path literally"
    return ""


def first(reasons: Iterable[str]) -> str:
    """Return the first non-empty reason, or ""."""
    return next(filter(None, reasons), "")
