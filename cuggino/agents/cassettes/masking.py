"""Secrets in what is recorded: found by the values of the environment and by known formats.

Small patterns of its own, each for a format that cannot be mistaken: what looks random alone is
left as it is, for ids and hashes look so too, and so is `password = ...` in a program, which must
still be one when it is played back. A secret in another format is found by its environment
variable alone.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import quote

SHORTEST = 6
"""Characters of a value that is masked; a shorter one cannot be told from a word."""

_SECRET_NAME = re.compile(
    r"token(?!s)|secret|passw|passphrase|credential|api_?key|private_?key|access_?key|authtoken"
    r"|cookie|authorization|(?:^|_)(?:key|pass|auth|pat|dsn|jwt)(?:$|_)"
    r"|_(?:pwd|creds)$|api_?tokens|[a-z]pass$|signing_?key",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(r"true|false|\d{1,7}", re.IGNORECASE)
_LONG_LINE = 20
"""Characters of one line of a secret that is known again by itself."""

_BEFORE = (
    r"(?:(?<![A-Za-z0-9_])"
    # Letters of an escape: of a string, of a URL, of a terminal's colours.
    r"|(?<=\\[nrtfvb])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})"
    r"|(?<=\x1b\[[mK])|(?<=\x1b\[\dm)|(?<=\x1b\[\d\dm)|(?<=;\dm)|(?<=;\d\dm))"
)
_FORMATS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (label, re.compile(pattern, re.DOTALL))
    for label, pattern in (
        (
            "private key",
            # With no key behind it, it is a program's words about keys.
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?=.{0,300}?[A-Za-z0-9+/]{40}).*?"
            r"(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
        ),
        ("api key", _BEFORE + r"sk-[A-Za-z0-9_-]{16,}"),
        ("github token", _BEFORE + r"(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
        ("gitlab token", _BEFORE + r"gl(?:pat|dt|rt|cbt|ptt)-[A-Za-z0-9_-]{16,}"),
        ("aws key", _BEFORE + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Z0-9])"),
        (
            "aws secret",
            r"(?i:(?:aws_?)?secret_?access_?key)\\?[\"']?\s*[:=]\s*\\?[\"']?"
            r"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
        ),
        ("google key", _BEFORE + r"(?:AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,})"),
        ("slack token", _BEFORE + r"(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}"),
        ("slack webhook", r"hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9/_-]{20,})"),
        ("stripe key", _BEFORE + r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
        ("npm token", _BEFORE + r"npm_[A-Za-z0-9]{30,}"),
        ("pypi token", _BEFORE + r"pypi-[A-Za-z0-9_-]{40,}"),
        ("hugging face token", _BEFORE + r"hf_[A-Za-z0-9]{30,}"),
        (
            "jwt",
            _BEFORE + r"eyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]*",
        ),
        (
            "provider key",
            _BEFORE + r"(?:gsk_|xai-|hvs\.|dckr_pat_|whsec_|AGE-SECRET-KEY-1)[A-Za-z0-9_-]{20,}",
        ),
        ("bearer token", r"(?i:\bbearer)(?:[ \t]+|%20)([A-Za-z0-9._~+/|:-]{16,}=*)"),
        (
            "basic auth",
            r"(?i:\bauthorization\\?[\"']?\]?\s*[:=,]\s*\\?[\"']?basic)[ \t]+"
            r"([A-Za-z0-9+/]{8,}=*)",
        ),
        (
            "header",
            r"(?i:\bauthorization\\?[\"']?\s*:\s*\\?[\"']?token|\bx-api-key\\?[\"']?\s*:)"
            r"[ \t]*\\?[\"']?([A-Za-z0-9._~+/=-]{16,})",
        ),
        (
            "url password",
            r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,30}://"
            # Not where a template is to fill it in, nor the port of an address.
            r"[^\s:/@\"'<>]*:(?!\$?\{[^{}\n]*\}@|\$\w+@|%[sdr]@|%\(\w+\)s@|\d{1,5}[?#])"
            r"([^\s@/\"'<>]+)@",
        ),
    )
)
"""Each format; where a pattern has a group, that is the secret. None takes long over any text."""


class Span(NamedTuple):
    """A part of a text and what stands in its place."""

    start: int
    end: int
    by: str


class Masker:
    """Finds secrets in texts: the values of variables with telling names, and known formats.

    A value is found as it is, and as JSON, URLs, shells and base64 write it. A variable whose value
    is the path of a file or folder that is there is no secret.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._values: dict[str, str] = {}
        for name, value in env.items():
            if is_secret_name(name) and _is_secret_value(value):
                for form in _forms(value):
                    self._values.setdefault(form, name)

    def with_env(self, env: Mapping[str, str]) -> Masker:
        """This one, which also knows the secrets of another environment."""
        more = Masker(env)
        more._values = {**more._values, **self._values}
        return more

    def with_servers(self, servers: Mapping[str, object]) -> Masker:
        """This one, which also knows what MCP servers are given: their variables and headers."""
        masker = self
        for server in servers.values():
            for given in _given(server):
                masker = masker.with_env(given)
        return masker

    def spans(self, text: str) -> list[Span]:
        """The secrets in the text, in order and apart from each other, with their marks."""
        found = sorted(self._found(text), key=lambda span: (span.start, -span.end))
        spans: list[Span] = []
        for span in found:
            if spans and span.start < spans[-1].end:
                spans[-1] = spans[-1]._replace(end=max(span.end, spans[-1].end))
            else:
                spans.append(span)
        return spans

    def is_in(self, data: bytes) -> bool:
        """Whether a secret stands in the bytes, of which nothing can be masked."""
        if any(
            form.encode(encoding, "replace") in data
            for form in self._values
            for encoding in ("utf-8", "utf-16-le", "utf-16-be")
        ):
            return True
        texts = [data.decode(name, "ignore") for name in ("latin-1", "utf-16-le", "utf-16-be")]
        return any(pattern.search(text) for _, pattern in _FORMATS for text in texts)

    def _found(self, text: str) -> Iterator[Span]:
        for value, name in self._values.items():
            at = text.find(value)
            while at >= 0:
                yield Span(at, at + len(value), mark(name))
                at = text.find(value, at + 1)
        for label, pattern in _FORMATS:
            for match in pattern.finditer(text):
                yield Span(*match.span(pattern.groups and 1), mark(label))


def mark(what: str) -> str:
    """What stands in the place of a secret."""
    return f"⟦masked {what.replace('⟦', '').replace('⟧', '')}⟧"


MARK = re.compile(r"⟦masked [^⟦⟧]*⟧")
"""Finds what `mark` gives."""


def is_secret_name(name: str) -> bool:
    """Whether the value of a variable with this name is taken for a secret."""
    return _SECRET_NAME.search(name) is not None


def put(text: str, spans: Iterable[Span]) -> str:
    """The text with the spans replaced."""
    return put_in_parts([text], spans)[0]


def put_in_parts(parts: list[str], spans: Iterable[Span]) -> list[str]:
    """The parts of a text with the spans of the whole replaced, each in the part it begins in.

    Whatever the parts are cut at, nothing of a span is left.
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
    """The variables of a server, its headers, and these without the word in front of a key."""
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
        return not os.path.exists(value)  # noqa: PTH110 - it may be no path at all
    except ValueError:
        return True


def _forms(value: str) -> Iterator[str]:
    """The value as it may be written."""
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
