"""Texts in a cassette: secrets are masked, and what differs from run to run is a placeholder.

Secrets are found by the values of environment variables, by formats that are unmistakable, and by
names such as `password` beside a literal value (`secret_formats`). Random-looking text alone is
kept, as ids and hashes look the same; so are words, variables and calls after `password =` in a
program, which must still work when replayed. A secret in another format is found by its variable
alone.

The project's folder and the id of the run become `⟦project⟧` and `⟦run⟧`, so that a cassette
replays in any folder; a literal `⟦` becomes `⟦[⟧`. In the contents of files a folder of one word
(`/app`) is kept, as it may mean something else there.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from cuggino.agents.base.agent import SpawnOptions
from cuggino.agents.cassettes.secret_formats import found_formats

SHORTEST = 6
"""Minimum length of a masked value; a shorter one looks like a word."""

_SECRET_NAME = re.compile(
    r"token(?!s)|secret|passw|passphrase|credential|api_?key|private_?key|access_?key|authtoken"
    r"|cookie|authorization|(?:^|_)(?:key|pass|auth|pat|dsn|jwt)(?:$|_)"
    r"|_(?:pwd|creds)$|api_?tokens|[a-z]pass$|signing_?key",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(r"true|false|\d{1,7}", re.IGNORECASE)
_LONG_LINE = 20
"""Minimum length of a line that alone identifies a secret."""


class Span(NamedTuple):
    """A part of a text, and its replacement."""

    start: int
    end: int
    by: str


class Masker:
    """Finds secrets in texts: values of variables with telling names, and known formats.

    A value is found in plain form, and as encoded in JSON, URLs, shells and base64. A variable
    whose value is the path of an existing file is not a secret.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._values: dict[str, str] = {}
        for name, value in env.items():
            if is_secret_name(name) and _is_secret_value(value):
                for form in _forms(value):
                    self._values.setdefault(form, name)

    def with_env(self, env: Mapping[str, str]) -> Masker:
        """Return a masker that also knows the secrets of another environment."""
        more = Masker(env)
        more._values = {**more._values, **self._values}
        return more

    def with_servers(self, servers: Mapping[str, object]) -> Masker:
        """Return a masker that also knows the variables and headers of MCP servers."""
        masker = self
        for server in servers.values():
            for given in _given(server):
                masker = masker.with_env(given)
        return masker

    def spans(self, text: str) -> list[Span]:
        """Return the secrets in the text, ordered and without overlaps, with their marks."""
        found = sorted(self._found(text), key=lambda span: (span.start, -span.end))
        spans: list[Span] = []
        for span in found:
            if spans and span.start < spans[-1].end:
                spans[-1] = spans[-1]._replace(end=max(span.end, spans[-1].end))
            else:
                spans.append(span)
        return spans

    def is_in(self, data: bytes) -> bool:
        """Return whether the bytes contain a secret, as nothing can be masked in them."""
        if any(
            form.encode(encoding, "replace") in data
            for form in self._values
            for encoding in ("utf-8", "utf-16-le", "utf-16-be")
        ):
            return True
        texts = [data.decode(name, "ignore") for name in ("latin-1", "utf-16-le", "utf-16-be")]
        return any(True for text in texts for _ in found_formats(text))

    def _found(self, text: str) -> Iterator[Span]:
        for value, name in self._values.items():
            at = text.find(value)
            while at >= 0:
                yield Span(at, at + len(value), mark(name))
                at = text.find(value, at + 1)
        for start, end, label in found_formats(text):
            yield Span(start, end, mark(label))


def without_secrets(env: Mapping[str, str]) -> Callable[[str], str]:
    """Return the function that masks the secrets in a text, by this environment and by format."""
    masker = Masker(env)
    return lambda text: put(text, masker.spans(text))


def mark(what: str) -> str:
    """Return the mark that replaces a secret."""
    return f"⟦masked {what.replace('⟦', '').replace('⟧', '')}⟧"


MARK = re.compile(r"⟦masked [^⟦⟧]*⟧")
"""Matches the results of `mark`."""


def is_secret_name(name: str) -> bool:
    """Return whether a variable of this name holds a secret."""
    return _SECRET_NAME.search(name) is not None


def put(text: str, spans: Iterable[Span]) -> str:
    """Replace the spans in the text."""
    return put_in_parts([text], spans)[0]


def put_in_parts(parts: list[str], spans: Iterable[Span]) -> list[str]:
    """Replace the spans of the whole text in its parts, each in the part where it begins.

    Nothing of a span remains, wherever the parts are cut.
    """
    text = "".join(parts)
    done: list[str] = []
    pending = iter(spans)
    span = next(pending, None)
    begin = 0
    covered = 0
    for part in parts:
        end = begin + len(part)
        pieces: list[str] = []
        at = max(begin, covered)
        while span is not None and span.start < end:
            pieces += (text[at : span.start], span.by)
            covered = span.end
            at = span.end
            span = next(pending, None)
        pieces.append(text[at:end])
        done.append("".join(pieces))
        begin = end
    return done


def _given(server: object) -> Iterator[Mapping[str, str]]:
    """Yield the variables and headers of a server, and the headers without an auth scheme."""
    told = server if isinstance(server, Mapping) else {}
    for key in ("env", "environment", "headers"):
        values = told.get(key)
        if isinstance(values, Mapping):
            texts = {str(name).replace("-", "_"): str(value) for name, value in values.items()}
            yield texts
            if key == "headers":
                yield {name: value.rpartition(" ")[2] for name, value in texts.items()}


def _is_secret_value(value: str) -> bool:
    if len(value) < SHORTEST or _NO_SECRET.fullmatch(value):
        return False
    try:
        return not os.path.exists(value)  # noqa: PTH110 - it may not be a path
    except ValueError:
        return True


def _forms(value: str) -> Iterator[str]:
    """Yield the encoded forms of the value."""
    encoded = value.encode("utf-8", "surrogateescape")
    whole = [
        value,
        value.strip(),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(encoded),
        quote(encoded, safe=""),
        shlex.quote(value).strip("'"),
        base64.b64encode(encoded).decode().rstrip("="),
        *(line for line in value.splitlines() if len(line) >= _LONG_LINE),
    ]
    yield from dict.fromkeys(form for form in whole if len(form) >= SHORTEST)


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
        """Insert placeholders into the text."""
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
