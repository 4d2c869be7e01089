"""What differs from run to run is a placeholder in the texts of a cassette.

The project's folder and the id of the run become `⟦project⟧` and `⟦run⟧`, so that a cassette
replays in any folder; a literal `⟦` becomes `⟦[⟧`. In the contents of files a folder of one word
(`/app`) is kept, as it may mean something else there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cuggino.agents.base.agent import SpawnOptions
from cuggino.agents.cassettes.masking import Masker, Span, put, put_in_parts

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_NAMED = re.compile(r"⟦(project|run|\[)⟧")
_ESCAPED = "⟦[⟧"


class Places:
    """The placeholders of one session, and their values."""

    def __init__(self, cwd: Path, env: Mapping[str, str]) -> None:
        self._values = {"project": str(cwd), "[": "⟦"}
        names: dict[str, str] = {}
        # A folder may have two names: as given, and with links resolved.
        for path in (str(cwd), os.path.realpath(cwd)):
            if len(path) > 1:
                names.setdefault(path, "⟦project⟧")
        if run := re.match(_UUID, Path(env.get("CUGGINO_SESSION_FILE", "")).name):
            self._values["run"] = run[0]
            names[run[0]] = "⟦run⟧"
        self._pattern = _finder(names)
        # In a file `/app` may be the address of a page.
        self._in_files = _finder(name for name in names if name.count("/") != 1)
        self._names = {**names, "⟦": _ESCAPED}

    @classmethod
    def of(cls, options: SpawnOptions) -> Places:
        """Return the placeholders of a session with these options."""
        return cls(options.cwd, options.env)

    def spans(self, text: str, *, in_file: bool = False) -> list[Span]:
        """Return what placeholders replace in the text, or in the content of a file."""
        pattern = self._in_files if in_file else self._pattern
        return [Span(*m.span(), self._names[m[0]]) for m in pattern.finditer(text)]

    def named(self, text: str) -> str:
        return put(text, self.spans(text))

    def filled(self, text: str) -> str:
        """Replace the placeholders in the text with their values."""
        return _NAMED.sub(lambda m: self._values.get(m[1], m[1]), text)


class Writing:
    """Converts the texts of a session for a cassette."""

    def __init__(self, masker: Masker, places: Places) -> None:
        self.masker = masker
        self._places = places

    def text(self, text: str) -> str:
        """Mask secrets and insert placeholders."""
        return put(text, self._spans(text))

    def content(self, text: str) -> str:
        """Do the same for the content of a file."""
        return put(text, self._spans(text, in_file=True))

    def parts(self, parts: list[str]) -> list[str]:
        """Do the same for a text in parts, including matches that span parts."""
        return put_in_parts(parts, self._spans("".join(parts)))

    def json(self, value: Any) -> Any:
        """Do the same for all texts in a JSON value."""
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
    """Match the names, longest first, and the start of our own placeholders."""
    longest = sorted(names, key=len, reverse=True)
    words = (rf"(?<![\w.-]){re.escape(name)}(?![\w-])" for name in longest)
    return re.compile("|".join(("⟦", *words)))


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Change each text of the JSON value, including the names of members."""
    match value:
        case str():
            return change(value)
        case list() | tuple():
            return [map_texts(item, change) for item in value]
        case dict():
            return {change(str(name)): map_texts(item, change) for name, item in value.items()}
        case _:
            return value
