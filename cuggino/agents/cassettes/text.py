"""Texts as a cassette holds them: without secrets, and without what differs from run to run.

The project's folder and the id of the run stand as `⟦project⟧` and `⟦run⟧`, so that a cassette
plays in any folder; a `⟦` of the text itself stands as `⟦[⟧`. In the contents of files a folder of
one word (`/app`) is left as it stands: it may mean something else there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cuggino.agents.cassettes.masking import Masker, Span, put, put_in_parts
from cuggino.agents.protocol import SpawnOptions

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_NAMED = re.compile(r"⟦(project|run|\[)⟧")
_ESCAPED = "⟦[⟧"


class Places:
    """What a cassette names by a word, as it is in one session."""

    def __init__(self, cwd: Path, env: Mapping[str, str]) -> None:
        self._values = {"project": str(cwd), "[": "⟦"}
        names: dict[str, str] = {}
        # A folder may be called by two names: as it was given, and without its links.
        for path in (str(cwd), os.path.realpath(cwd)):
            if len(path) > 1:
                names.setdefault(path, "⟦project⟧")
        if run := re.match(_UUID, Path(env.get("CUGGINO_SESSION_FILE", "")).name):
            self._values["run"] = run[0]
            names[run[0]] = "⟦run⟧"
        self._pattern = _finder(names)
        # In a file `/app` may as well be the address of a page.
        self._in_files = _finder(name for name in names if name.count("/") != 1)
        self._names = {**names, "⟦": _ESCAPED}

    @classmethod
    def of(cls, options: SpawnOptions) -> Places:
        """Those of a session with these options."""
        return cls(options.cwd, options.env)

    def spans(self, text: str, *, in_file: bool = False) -> list[Span]:
        """What is to be named by a word in the text, which may be the content of a file."""
        pattern = self._in_files if in_file else self._pattern
        return [Span(*m.span(), self._names[m[0]]) for m in pattern.finditer(text)]

    def named(self, text: str) -> str:
        """The text with the words in the places of what they name."""
        return put(text, self.spans(text))

    def filled(self, text: str) -> str:
        """The text with what the words name in their places."""
        return _NAMED.sub(lambda m: self._values.get(m[1], m[1]), text)


class Writing:
    """Makes of the texts of a session what a cassette may hold."""

    def __init__(self, masker: Masker, places: Places) -> None:
        self.masker = masker
        self._places = places

    def text(self, text: str) -> str:
        """The text without secrets, with words for places."""
        return put(text, self._spans(text))

    def content(self, text: str) -> str:
        """The same for the content of a file."""
        return put(text, self._spans(text, in_file=True))

    def parts(self, parts: list[str]) -> list[str]:
        """The same for a text that comes in parts; what is cut by a border is found too."""
        return put_in_parts(parts, self._spans("".join(parts)))

    def json(self, value: Any) -> Any:
        """The same for all texts in a JSON value."""
        return map_texts(value, self.text)

    def _spans(self, text: str, *, in_file: bool = False) -> list[Span]:
        secrets = self.masker.spans(text)
        if not secrets:
            return self._places.spans(text, in_file=in_file)
        spans: list[Span] = list(secrets)
        begin = 0
        for end, after in [*((s.start, s.end) for s in secrets), (len(text), len(text))]:
            between = self._places.spans(text[begin:end], in_file=in_file)
            spans += (Span(s.start + begin, s.end + begin, s.by) for s in between)
            begin = after
        return sorted(spans)


def _finder(names: Iterable[str]) -> re.Pattern[str]:
    """Finds the names, the longest first, and what begins a word of ours."""
    longest = sorted(names, key=len, reverse=True)
    words = (rf"(?<![\w.-]){re.escape(name)}(?![\w-])" for name in longest)
    return re.compile("|".join(("⟦", *words)))


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """The JSON value with each of its texts changed, the names of members too."""
    match value:
        case str():
            return change(value)
        case list() | tuple():
            return [map_texts(item, change) for item in value]
        case dict():
            return {change(str(name)): map_texts(item, change) for name, item in value.items()}
        case _:
            return value
