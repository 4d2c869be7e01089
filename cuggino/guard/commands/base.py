"""What the judges of commands share: what a command is judged with, and what a path may be."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, TypeAlias

from cuggino.guard.paths import Paths
from cuggino.guard.policy import Policy
from cuggino.guard.shell.tree import Word

UNKNOWN = ""
"""Among the folders one may be in: nobody knows which."""

GLOB = "*?["


Roaming: TypeAlias = Literal["no", "open", "always"]
"""`open`: only for targets that cannot be told; `always`: for known ones, too."""


class Trail:
    """What the same input did before: no link that it made can be seen yet on the disk."""

    def __init__(self) -> None:
        self.made: list[str] = []
        """Links made, and folders copied from elsewhere, by their real path."""
        self.written: list[str] = []
        """What was written, by its real path."""
        self.loose: set[str] = set()
        """Variables that got a text that may look like an option."""
        self.values: dict[str, list[Word]] = {}
        """What variables were given, by their names."""
        self.source = ""
        """All that was written, as far as it is needed."""
        self.inputs: set[str] = set()
        """Descriptors that were opened for reading."""
        self.calculates = False
        """Whether there is a calculation, which looks into what variables hold."""
        self.is_shaken = False
        """Whether folders may have been removed."""
        self.is_swapped = False
        """Whether another state of the tree was checked out."""


class Site(NamedTuple):
    """Where a command stands."""

    policy: Policy
    paths: Paths
    cwds: frozenset[str]
    """The folders it may run in, `UNKNOWN` among them when that is not known."""
    listed: frozenset[str]
    pkill_targets: frozenset[str]
    trail: Trail
    judge: Callable[[tuple[Word, ...], Site], str]
    """Why a command that another one starts may not run."""
    judge_text: Callable[[str, Site], str]
    """Why a script that a shell is given may not run."""
    judge_unknown: Callable[[Word, Site, bool], str]
    """Why a target that cannot be told may not be written; with True, not removed."""
    feed: str = ""
    """What is known of its standard input: a here-document, what stands before the pipe."""
    is_fed: bool = False
    """Whether its standard input comes from a pipe, a file or a here-document."""
    document: str | None = None
    """Its standard input, when it is wholly known."""
    is_lenient: bool = False
    """Whether a target that cannot be told may be written."""
    roams: Roaming = "no"
    """Whether a folder that is not known counts as one of the project."""

    @property
    def is_full(self) -> bool:
        """Whether only listed programs may run."""
        return self.policy.level == "full"

    @property
    def is_destructive(self) -> bool:
        """Whether things may be removed."""
        return not self.is_full or (self.policy.allow_destructive and self.policy.mode == "run")

    @property
    def is_limited(self) -> bool:
        """Whether the role may not change the project's tree at will."""
        return self.policy.writable is not None or self.policy.mode == "sync"

    @property
    def known(self) -> frozenset[str]:
        """The folders, or none when any of them is not known."""
        if UNKNOWN not in self.cwds:
            return self.cwds
        return self.assumed if self.roams == "always" else frozenset()

    @property
    def assumed(self) -> frozenset[str]:
        """As `known`, for what cannot be told anyway."""
        if UNKNOWN not in self.cwds:
            return self.cwds
        if not self.is_lenient or self.roams == "no":
            return frozenset()
        return (self.cwds - {UNKNOWN}) | {self.paths.project}

    def write(self, word: Word) -> str:
        """Why the program must not write the file that the word names."""
        if word.value is None and self.is_lenient:
            return self.judge_unknown(word, self, False)
        if reason := unclear(word, "written"):
            return reason
        if word.has_glob:
            return (
                f"It cannot be told which files '{word.text}' names: write the target without"
                " wildcards"
            )
        return self.write_path(word.value or "")

    def write_path(self, path: str) -> str:
        """As `write`, of a path that is known."""
        if reason := self.paths.write(path, self.known):
            return reason
        for place in self._places(path):
            if reason := self._trailed(path, place):
                return reason
            self.trail.written.append(place)
        return ""

    def remove(self, word: Word) -> str:
        """Why the program must not remove, or move away, what the word names."""
        if word.value is None and self.is_lenient:
            reason = self.judge_unknown(word, self, True)
            self.trail.is_shaken = self.trail.is_shaken or not reason
            return reason
        if reason := unclear(word, "removed or changed"):
            return reason
        path = word.value or ""
        if not word.has_glob:
            reasons = self._remove_path(path)
        else:
            reasons = (
                pattern_reason(path)
                or self._everything(path)
                or first(map(self._remove_path, self.matches(path)))
            )
        if not reasons:
            self.trail.is_shaken = True
        return reasons

    def trailed(self, path: str) -> str:
        """Why the path leads through what the same input made."""
        return first(self._trailed(path, place) for place in self._places(path))

    def _everything(self, pattern: str) -> str:
        folder, name = os.path.split(pattern.rstrip("/"))
        if name.strip("*") or self.paths.project not in self._places(folder or "."):
            return ""
        return f"'{pattern}' names all of the project: name what should go"

    def change(self, word: Word) -> str:
        """Why the program must not change a file that is there; wildcards may name several."""
        if not word.has_glob or (word.value is None and self.is_lenient):
            return self.write(word)
        if reason := unclear(word, "changed"):
            return reason
        path = word.value or ""
        return pattern_reason(path) or first(map(self.write_path, self.matches(path)))

    def matches(self, pattern: str) -> list[str]:
        """What the pattern names now, and one name that it might have."""
        import glob

        found = [pattern.translate({ord(char): "x" for char in "*?[]"})]
        for cwd in self.known or ([""] if os.path.isabs(pattern) else []):  # noqa: PTH117
            found += glob.glob(pattern, root_dir=cwd or None)[:1000]  # noqa: PTH207
        return list(dict.fromkeys(found))

    def _remove_path(self, path: str) -> str:
        if reason := self.paths.remove(path, self.known):
            return reason
        return self.trailed(path)

    def _places(self, path: str) -> list[str]:
        if os.path.isabs(path):  # noqa: PTH117
            return [self.paths.resolve(path, "/")]
        return [self.paths.resolve(path, cwd) for cwd in self.known]

    def _trailed(self, path: str, place: str) -> str:
        for made in self.trail.made:
            if place == made or place.startswith(made + "/"):
                return (
                    f"'{path}' lies in what the same input puts there, perhaps a link that leads"
                    " elsewhere: do it in a call of its own"
                )
        is_deep = place.startswith(self.paths.project + "/") and (
            os.path.dirname(place) != self.paths.project  # noqa: PTH120
        )
        if self.trail.is_swapped and is_deep:
            return (
                f"Before '{path}' is written the same input may swap its folder for a link: do it"
                " in a call of its own"
            )
        return ""


class Call(NamedTuple):
    """A program and its arguments, judged where it stands."""

    name: str
    args: tuple[Word, ...]
    site: Site


Judge: TypeAlias = Callable[[Call], str]
"""Why the call is denied; empty when it may pass."""


def plain_word(text: str) -> Word:
    """A word that is known."""
    return Word(text, text)


def unclear(word: Word, done: str) -> str:
    """Why nobody can tell which path the word names."""
    if word.value is None:
        return (
            f"It cannot be told which path '{word.text}' names, and so nothing may be {done} there:"
            " write the path out"
        )
    if word.has_tilde:
        return f"'{word.text}' is in a home folder: nothing outside the project may be {done}"
    return ""


def pattern_reason(pattern: str) -> str:
    """Why a pattern may name more than can be told: names that begin with a dot, and `..`."""
    seen = False
    for part in pattern.split("/"):
        if any(char in part for char in GLOB):
            seen = True
            if part.startswith("."):
                return f"'{pattern}' may name protected files: write the names out"
        elif seen and part == "..":
            return f"'{pattern}' goes back behind its wildcard: write the path out"
    return ""


def first(reasons: Iterable[str]) -> str:
    """The first that is not empty."""
    return next(filter(None, reasons), "")
