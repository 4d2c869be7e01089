"""Redaction of texts sent to a forge: no secrets, no home paths, limited length.

Anyone who can read an issue can read them, and a forge acts on some of them: `@name` notifies,
`#7` links, `Closes #7` closes, and a line that begins with `/close` is a GitLab command. Text that
cuggino did not write itself is therefore quoted with `foreign`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from cuggino.agents.cassettes import without_secrets
from cuggino.domain import cleaned, cut_at_end, defused

LONGEST = 60_000
"""Characters of a text; GitHub accepts 65,536."""

Redaction = Callable[[str], str]
"""Masks what must not leave this machine."""

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
"""The start of a tag such as `<details>`, which would hide the text after it."""
_HOMES = re.compile(
    r"(?<![\w./~-])(?:/home/[^/\s:\"'`,;()<>]+|/Users/[^/\s:\"'`,;()<>]+|/root(?![\w.-])"
    r"|[A-Za-z]:\\Users\\[^\\\s:\"'`,;()<>]+)"
)


def redacting(
    *envs: Mapping[str, str], home: Path | None = None, project: Path | None = None
) -> Redaction:
    """Return a function that masks secrets and home folders, and shortens paths in the project.

    Secrets are found as in recordings: the values of variables with telling names, and known
    formats.
    """
    masks = [without_secrets(env) for env in envs or ({},)]
    named = [(str(folder), name) for folder, name in ((project, "."), (home, "~")) if folder]
    folders = [
        (re.compile(rf"(?<![\w.~-]){re.escape(folder.rstrip('/'))}(?![\w-]|\.\w)"), name)
        for folder, name in named
        if len(folder) > 1
    ]

    def redact(text: str) -> str:
        for mask in masks:
            text = mask(text)
        for folder, name in folders:
            text = folder.sub(name, text)
        return _HOMES.sub("~", text)

    return redact


def foreign(text: str, *, limit: int = 10_000) -> str:
    """Return the text as a quotation, defused and shortened; empty if it is blank."""
    text = cleaned(_unix(text)).strip()
    if not text:
        return ""
    lines = _safe(shortened(text, limit)).split("\n")
    return "\n".join(f"> {line}".rstrip() for line in lines)


def inline(text: str, *, limit: int = 500) -> str:
    """Return the text on one line, defused and shortened, for a sentence of cuggino's."""
    return _safe(cut_at_end(" ".join(cleaned(text).split()), limit))


def shortened(text: str, limit: int) -> str:
    """Return the beginning of the text, with the number of characters left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit].rstrip()}\n\n[… {len(text) - limit:,} characters left out]"


def outgoing(text: str, redact: Redaction) -> str:
    """Return the text redacted and cut to the length that a forge accepts."""
    return shortened(redact(_unix(text)), LONGEST)


def _safe(text: str) -> str:
    return defused(_TAG.sub("&lt;", text))


def _unix(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for other in "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029":
        text = text.replace(other, "\n")
    return text.encode("utf-8", "replace").decode("utf-8")
