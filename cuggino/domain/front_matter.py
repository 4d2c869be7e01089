"""The front matter of a backlog item: the lines between two `---` before its text.

Its keys `after`, `needs`, `held` and `attempts` are read, in three notations; under `after` a date
is a time (`parse_due`), anything else an item:

    after: 001-login.md                 after:
    after: [001-login.md, 002-logout]     - 001-login.md
"""

from __future__ import annotations

import re

from cuggino.domain.attempts import MOST_ATTEMPTS
from cuggino.domain.untrusted import cleaned

_LONGEST_VALUE = 1000
_BEGIN = re.compile(r"---[ \t]*")
_END = re.compile(r"(?:---|\.\.\.)[ \t]*")
_LINE = re.compile(
    r"(?P<key>[A-Za-z_][\w.-]*):(?:[ \t]+(?P<value>.*))?"
    r"|(?P<more>[ \t]+\S.*|-(?:[ \t].*)?)|\s*(?:#.*)?"
)
"""A line of front matter: a key, what belongs to the key before it, or a comment."""
_COMMENT_OR_NAME = re.compile(
    r"""(?:^|\s)\#.*|"(?P<double>[^"]*)"|'(?P<single>[^']*)'"""
    r"""|(?P<plain>[^\s,\[\]"'#][^,\[\]]*?)(?=\s*(?:[,\]]|$)|\s+\#)"""
)
_DASH = re.compile(r"\s*-(?:\s|$)")


def split_front_matter(text: str) -> tuple[str, str]:
    """Return the lines of the front matter, "" without any, and the text after it.

    Markdown that begins with a horizontal rule has no front matter, unless what follows up to the
    next rule reads like keys.
    """
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    if not lines or not _BEGIN.fullmatch(lines[0].rstrip("\r\n")):
        return "", text
    has_key = False
    for number, line in enumerate(lines[1:], start=1):
        line = line.rstrip("\r\n")
        if _END.fullmatch(line):
            if has_key:
                return "".join(lines[1:number]), "".join(lines[number + 1 :])
            break
        found = _LINE.fullmatch(line)
        if found is None or (found["more"] and not has_key):
            break
        has_key = has_key or found["key"] is not None
    return "", text


def after_of(text: str) -> tuple[str, ...]:
    """Return the names and times under `after` in the front matter, each once, in order."""
    return _under("after", text)


def needs_of(text: str) -> tuple[str, ...]:
    """Return the words under `needs`, such as `gpu` or `memory=64`, each once, in order."""
    return _under("needs", text)


def attempts_of(text: str) -> int | None:
    """Return the number under `attempts`, None without the key.

    Raises:
        ValueError: it is no number, or not within its bounds.
    """
    found = _under("attempts", text)
    if not found:
        return None
    if len(found) > 1 or not re.fullmatch(f"[1-{MOST_ATTEMPTS}]", found[0]):
        wrong = ", ".join(found)
        raise ValueError(f"attempts must be a number from 1 to {MOST_ATTEMPTS}, not {wrong}")
    return int(found[0])


def held_of(text: str) -> str:
    """Return why the item must not begin, by `held` in its front matter; "" if it may."""
    return ", ".join(_under("held", text))


def is_marked_imported(text: str) -> bool:
    """Return whether the front matter marks the item as imported, with `source` and `id`."""
    return bool(_under("source", text) and _under("id", text))


def with_held(text: str, reason: str) -> str:
    """Return the text with `held` in its front matter, or without it if the reason is blank.

    The rest is unchanged; front matter with no other content is removed.
    """
    front, body = split_front_matter(text)
    kept, is_inside, has_key = "", False, False
    for line in front.splitlines(keepends=True):
        found = _LINE.fullmatch(line.rstrip("\r\n"))
        if found is not None and found["key"] is not None:
            is_inside = found["key"] == "held"
            has_key = has_key or not is_inside
        kept += "" if is_inside else line
    reason = quoted_value(reason)
    held = f"held: {reason}\n" if reason != '""' else ""
    if not front:
        return f"---\n{held}---\n{text}" if held else text
    if not held and not has_key:
        return body
    begin = len(text.splitlines(keepends=True)[0])
    return text[:begin] + kept + held + text[begin + len(front) :]


def quoted_value(text: str) -> str:
    """Return the text as a value of front matter: quoted, in one line, without special characters.

    It is the same value to a reader of YAML.
    """
    plain = cleaned(text[:_LONGEST_VALUE]).replace("\\", "/").replace('"', "'")
    return f'"{" ".join(plain.split())}"'


def _under(key: str, text: str) -> tuple[str, ...]:
    front, _ = split_front_matter(text)
    names: list[str] = []
    is_inside = False
    for line in front.splitlines():
        found = _LINE.fullmatch(line)
        if found is not None and found["key"] is not None:
            is_inside = found["key"] == key
            line = found["value"] or ""
        if is_inside:
            names += _names(_DASH.sub("", line, count=1))
    return tuple(dict.fromkeys(names))


def _names(value: str) -> list[str]:
    found = _COMMENT_OR_NAME.finditer(value)
    words = ((word["double"] or word["single"] or word["plain"] or "").strip() for word in found)
    return [word for word in words if word]
