"""Comparing a replayed session with the recorded one: its prompts, and its verdicts."""

from __future__ import annotations

import json
import os
import re
from typing import Any, NamedTuple

from cuggino.agents.base.agent import SpawnOptions
from cuggino.agents.base.calls import Call, Orders
from cuggino.agents.base.guard import not_live, with_variables
from cuggino.agents.cassettes.cassette import EventTold, RecordedSession
from cuggino.agents.cassettes.masking import MARK, mark
from cuggino.agents.cassettes.places import Places, map_texts
from cuggino.errors import ConfigError
from cuggino.events import ToolCall
from cuggino.files import temporary_folder
from cuggino.guard import Policy, find_shfmt

_SHOWN = 80
"""Characters shown on each side of a difference."""

_TEMPORARY = "|".join(
    dict.fromkeys(
        re.escape(place) for place in (temporary_folder(), "/private/tmp", "/var/tmp", "/tmp")
    )
)
_DIFFERING: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), word)
    for pattern, word in (
        (r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", "⟦id⟧"),
        (
            rf"(?<![\w.-])(?:{_TEMPORARY}|(?:/private)?/var/folders/[^/\s]+/[^/\s]+/T)"
            r"(?:(?:/[^/\s\"'`:,;()<>⟦⟧]+)*(?=/)(?:/(?:tmp|pytest-)[^/\s\"'`:,;()<>⟦⟧]+(?!/))?)",
            "⟦temporary⟧",
        ),
        (r" ?\(\d:\d\d:\d\d\)", ""),  # pytest prints it above a minute only
        (
            r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|\s?[+-]\d\d:?\d\d)?)?",
            "⟦time⟧",
        ),
        (r"(?<![\d:.])\d{1,2}:\d\d:\d\d(?:[.,]\d+)?(?![\d:])", "⟦time⟧"),
        (r"(?<![\d:.])\d{1,2}:\d\d(?:\.\d+| min)\b", "⟦duration⟧"),
        (r"(?<![\w.])(?:\d+\.\d+ ?(?:m?s|sec|seconds|µs|us)|\d+ ?(?:ms|µs))\b", "⟦duration⟧"),
        (r"(?i)(?:(?<=in )|(?<=time: )|(?<=\())\d+(?:m ?\d+)? ?s\b", "⟦duration⟧"),
        (r"\b\d+\.\d+ (?:runs|assertions|tests)/s", "⟦rate⟧"),
        (r"(?i)(?<=seed )\d+", "⟦seed⟧"),
        (r"={3,}", "==="),
        (r"0x[0-9a-fA-F]{6,}\b", "⟦address⟧"),
        (r"(?<=localhost:)\d{4,5}\b|(?<=127\.0\.0\.1:)\d{4,5}\b", "⟦port⟧"),
        (r"(?:(?<![\w-])|(?<=-g))(?=[a-f]*\d)[0-9a-f]{7,64}(?![\w-])", "⟦hash⟧"),
    )
)
"""Text that may differ between two runs, and its placeholder in the comparison."""


_KEY = mark("private key")
_WORDS = 3
"""A secret may be a phrase of at most this many words; everything else must be equal."""


class Difference(NamedTuple):
    """The first line in which two texts differ."""

    line: int
    """Line number, from 1."""
    expected: str
    found: str


def normalised(text: str) -> str:
    """Normalize what may differ: ids, hashes, times, temporary folders."""
    for pattern, word in _DIFFERING:
        text = pattern.sub(word, text)
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def first_difference(recorded: str, now: str, places: Places) -> Difference | None:
    """Return the first difference from the recording, or None.

    The mark of a secret matches a few words in its line; that of a private key matches anything.
    """
    expected, found = normalised(recorded), normalised(places.named(now))
    if _KEY in expected and _fits(expected, found):
        return None
    ours, theirs = expected.split("\n"), found.split("\n")
    if len(ours) == len(theirs) and all(map(_fits, ours, theirs)):
        return None
    number = 0
    while number < min(len(ours), len(theirs)):
        if ours[number] != theirs[number] and not _fits(ours[number], theirs[number]):
            break
        number += 1
    old = ours[number] if number < len(ours) else None
    new = theirs[number] if number < len(theirs) else None
    at = _departure(old or "", new or "")
    return Difference(number + 1, _shown(old, at), _shown(new, at))


def _fits(expected: str, found: str) -> bool:
    """Return whether the texts are equal, where a mark matches a few words."""
    first, *others = MARK.split(expected)
    if not others:
        return expected == found
    if not found.startswith(first) or len(found) < len(first) + len(others[-1]):
        return False
    at = len(first)
    for number, (masked, piece) in enumerate(zip(MARK.findall(expected), others, strict=True), 1):
        is_last = number == len(others)
        then = len(found) - len(piece) if is_last else found.find(piece, at)
        gap = found[at:then]
        if then < at or not found.startswith(piece, then):
            return False
        if masked != _KEY and ("\n" in gap or len(gap.split()) > _WORDS):
            return False
        at = then + len(piece)
    return True


def _departure(old: str, new: str) -> int:
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    return same


def _shown(line: str | None, at: int) -> str:
    if line is None:
        return "nothing more"
    begin, end = max(0, at - _SHOWN), at + _SHOWN
    before, after = "…" if begin else "", "…" if end < len(line) else ""
    return f"“{before}{line[begin:end]}{after}”"


_LONGEST_CALL = 120


class _Answer(NamedTuple):
    is_allowed: bool
    reason: str = ""


class PolicyCheck:
    """Compares the verdict on each recorded call with that of the current policy.

    A call ran if it has a result and was not denied. Not everything that the guard depends on is
    recorded: the shell's current folder, links on the disk. So a difference is reported only if the
    recorded policy, applied in the same place, still gives the recorded verdict; or if it cannot be
    applied, or another version of cuggino recorded it (`same_version`). A session with `guard` None
    was not guarded.

    Raises:
        GuardNotLive: the parser for commands is not installed.
    """

    def __init__(
        self,
        session: RecordedSession,
        options: SpawnOptions,
        places: Places,
        *,
        same_version: bool,
    ) -> None:
        self._then = _recorded_policy(session, places)
        # A replay writes nothing in a view; the recorded session may have been confined to one.
        confined = self._then is not None and self._then.confined
        self._now = options.guard and options.guard._replace(confined=confined)
        self._was_guarded = session.began.guard is not None
        self._same_version = same_version
        self._cwd = options.cwd
        self._env = {**os.environ, **options.env}
        self._fates = _fates(session)
        self._shfmt = ""
        if self._now is not None or self._was_guarded:
            self._shfmt = _shfmt()

    def complaint(self, call: ToolCall) -> str | None:
        """Describe the difference in a sentence; None if there is none."""
        then = self._fates.get(call.id)
        if then is None:
            return None  # its fate is unknown
        now = self._asked(self._now, call)
        if now.is_allowed == then.is_allowed:
            return None
        if self._then is not None and self._same_version:
            again = self._asked(self._then, call)
            if again.is_allowed != then.is_allowed:
                return None
        what = f"{call.name} {_gist(call)}".rstrip()
        if now.is_allowed:
            return f"{what} was denied in the recording, and is allowed now: {then.reason}"
        return f"{what} ran in the recording, and is denied now: {now.reason}"

    def _asked(self, policy: Policy | None, call: ToolCall) -> _Answer:
        if policy is None:
            return _Answer(is_allowed=True)
        # The mark of a secret has spaces: a command with one would be another command.
        texts = call.input if isinstance(call.input, dict) else {}
        given = map_texts(texts, lambda text: MARK.sub("masked", text))
        orders = Orders(with_variables(policy, self._env), self._shfmt, token="")
        cwd = os.path.realpath(self._cwd)
        own = orders.verdict(Call(call.name, given), call_id=call.id, cwd=cwd)
        return _Answer(own["decision"] == "allow", " ".join(str(own.get("reason", "")).split()))


def _recorded_policy(session: RecordedSession, places: Places) -> Policy | None:
    """Return the recorded policy for this project; None if there was none, or it is unknown."""
    if session.began.guard is None:
        return None
    try:
        return Policy.from_json(json.dumps(map_texts(session.began.guard, places.filled)))
    except ValueError:
        return None


def _fates(session: RecordedSession) -> dict[str, _Answer]:
    """Return the fate of each call by its id."""
    fates: dict[str, _Answer] = {}
    told = [line.event for line in session.lines if isinstance(line, EventTold)]
    for event in told:
        if event.get("_tag") == "ToolResult":
            fates[str(event.get("name"))] = _Answer(is_allowed=True)
    for event in told:
        if event.get("_tag") == "GuardDenied":
            reason = " ".join(str(event.get("reason", "")).split())
            fates[str(event.get("tool_use_id"))] = _Answer(is_allowed=False, reason=reason)
    return fates


def _gist(call: ToolCall) -> str:
    given: Any = call.input
    if not isinstance(given, dict):
        return ""
    first = next((given[k] for k in ("command", "file_path", "notebook_path") if k in given), "")
    text = " ".join(str(first).split())
    return f"`{text[:_LONGEST_CALL]}{'…' if len(text) > _LONGEST_CALL else ''}`" if text else ""


def _shfmt() -> str:
    try:
        return find_shfmt()
    except ConfigError as error:
        raise not_live(error.message) from error
