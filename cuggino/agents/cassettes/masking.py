"""Secrets in texts, and the marks that replace them.

A secret is the value of a variable that is known: one of the environment with a telling name, and
those that an agent or an MCP server is configured with. Tokens with a known prefix are masked
without a variable, and so are private keys and credentials in URLs. Other words are kept, also
beside `password =`: a recording must still work when replayed.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import quote

SHORTEST = 6
"""Minimum length of a masked value; a shorter one looks like a word."""

_SECRET_NAME = re.compile(
    r"token(?!s)|secret|passw|passphrase|credential|(?:api|private|access|signing)_?key|cookie"
    r"|authorization|(?:^|_)(?:key|pass|auth|pat|dsn|jwt)(?:$|_)|_(?:pwd|creds)$|api_?tokens"
    r"|[a-z]pass$",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(r"true|false|\d{1,7}", re.IGNORECASE)
_LONG_LINE = 20
"""Minimum length of a line that alone identifies a secret."""

_BEFORE = (
    r"(?:(?<![A-Za-z0-9_])"
    # Letters of an escape: in a string, a URL, or terminal colors.
    r"|(?<=\\[nrtfvb])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})"
    r"|(?<=\x1b\[[mK])|(?<=\x1b\[\dm)|(?<=\x1b\[\d\dm)|(?<=;\dm)|(?<=;\d\dm))"
)


class _Token(NamedTuple):
    """Tokens of one kind; the group of the pattern, if it has one, is the secret."""

    label: str
    words: tuple[str, ...]
    """Every match contains one of them, so that the pattern rarely has to run."""
    pattern: re.Pattern[str]


def _token(label: str, words: str, pattern: str) -> _Token:
    return _Token(label, tuple(words.split()), re.compile(_BEFORE + pattern, re.ASCII))


_KNOWN = (
    _token("api key", "sk-", r"sk-(?:(?:ant|proj|svcacct|admin|or)-[\w-]{16,}|[A-Za-z0-9]{20,})"),
    _token("github token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{20,}"),
    _token("github token", "github_pat_", r"github_pat_\w{20,}"),
    _token("gitlab token", "glpat- gldt- glrt- glptt-", r"gl(?:pat|dt|rt|ptt)-[\w-]{16,}"),
    _token("atlassian token", "ATBB ATCTT3 ATATT3", r"AT(?:BB|CTT3|ATT3)[\w=-]{24,}"),
    _token("aws key", "AKIA ASIA", r"A[KS]IA[A-Z0-9]{16}(?![A-Z0-9])"),
    _token("google key", "AIza", r"AIza[\w-]{35}"),
    _token("google token", "ya29. 1//0", r"(?:ya29\.|1//0)[\w-]{20,}"),
    _token("google secret", "GOCSPX-", r"GOCSPX-[\w-]{20,}"),
    _token("slack token", "xox xapp-", r"(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}"),
    _token("stripe key", "_live_ _test_", r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _token("npm token", "npm_", r"npm_[A-Za-z0-9]{30,}"),
    _token("pypi token", "pypi-", r"pypi-[\w-]{40,}"),
    _token("rubygems token", "rubygems_", r"rubygems_[a-f0-9]{40,}"),
    _token("hugging face token", "hf_", r"hf_[A-Za-z0-9]{30,}"),
    _token("sendgrid key", "SG.", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    _token("digitalocean token", "_v1_", r"do[opr]_v1_[a-f0-9]{40,}"),
    _token("shopify token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    _token("linear key", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    _token("notion key", "ntn_", r"ntn_[A-Za-z0-9]{40,}"),
    _token("databricks token", "dapi", r"dapi[a-f0-9]{32}(?:-\d)?(?![a-f0-9])"),
    _token("vault token", "hvs. hvb. hvr.", r"hv[sbr]\.[\w-]{20,}"),
    _token("supabase token", "sbp_ sb_secret_", r"sb(?:p|_secret)_[\w-]{30,}"),
    _token("replicate token", "r8_", r"r8_[A-Za-z0-9]{37}"),
    _token("grafana token", "glsa_ glc_", r"gl(?:sa|c)_[\w+/=]{30,}"),
    _token("sentry token", "sntrys_ sntryu_", r"sntry[su]_[\w+/=-]{40,}"),
    _token("docker token", "dckr_pat_ dckr_oat_", r"dckr_[po]at_[\w-]{20,}"),
    _token("api key", "gsk_ pplx- xai- whsec_", r"(?:gsk_|pplx-|xai-|whsec_)[A-Za-z0-9]{32,}"),
    _token("age key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{20,}"),
    _token(
        "api key",
        "figd_ NRAK- PMAK- sq0atp- sq0csp- pscale_ dp.pt. dp.st.",
        r"(?:figd_|NRAK-|PMAK-|sq0(?:atp|csp)-|pscale_(?:tkn|pw|oauth)_|dp\.[ps]t\.)[\w.-]{20,}",
    ),
    # Signed, or encrypted.
    _token("jwt", "eyJ", r"eyJ[\w-]{8,4000}+\.eyJ[\w-]{8,8000}+\.[\w-]*"),
    _token("jwt", "eyJ", r"eyJ[\w-]{8,4000}+\.[\w-]{0,2000}+(?:\.[\w-]{8,4000}+){3}"),
    _token("webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows)/([\w/-]{20,})"),
    _token("webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/(\d{10,}/[\w-]{30,})"),
    _Token(
        "private key",
        ("PRIVATE KEY",),
        # Without a key after it, it is only text about keys.
        re.compile(
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?=.{0,300}?[A-Za-z0-9+/]{40}).*?"
            r"(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
            re.DOTALL,
        ),
    ),
    _Token(
        "url password",
        ("://",),
        # Neither a template placeholder nor the port of an address.
        re.compile(
            r"://[^\s:/@\"'<>]*+:(?!\$?\{[^{}\n]*\}@|\$\w+@|%[sdr]@|%\(\w+\)s@|\d{1,5}[?#])"
            r"([^\s@/\"'<>]++)@"
        ),
    ),
    _Token("url token", ("://",), re.compile(r"://(?=[A-Za-z_-]*\d)([\w-]{16,}+)@")),
)
"""What is a secret by itself; where two match the same text, both are masked as one."""


class Span(NamedTuple):
    """A part of a text, and its replacement."""

    start: int
    end: int
    by: str


class Masker:
    """Finds secrets in texts: values of variables with telling names, and known tokens.

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
        return any(True for text in texts for _ in _tokens(text))

    def _found(self, text: str) -> Iterator[Span]:
        for value, name in self._values.items():
            at = text.find(value)
            while at >= 0:
                yield Span(at, at + len(value), mark(name))
                at = text.find(value, at + 1)
        for start, end, label in _tokens(text):
            yield Span(start, end, mark(label))


def _tokens(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, the end and the label of each known token in the text."""
    for label, words, pattern in _KNOWN:
        if any(word in text for word in words):
            for match in pattern.finditer(text):
                yield *match.span(pattern.groups), label


def without_secrets(env: Mapping[str, str]) -> Callable[[str], str]:
    """Return the function that masks the secrets in a text, with those of this environment."""
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
