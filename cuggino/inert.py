"""Untrusted text made safe to display."""

from __future__ import annotations

import re

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_SURROGATES = "\ud800-\udfff"
_ACTIVE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}{_SURROGATES}]")


def inert(text: str) -> str:
    """Replace every control character with a visible one, so that foreign text cannot act.

    Newline and tab stay, CRLF becomes a newline. Other C0 controls and DEL become their control
    pictures (ESC is `␛`), C1 controls and directional marks become escapes (`\\u{202e}`), and lone
    surrogates become U+FFFD. Idempotent.
    """
    if text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable():
        return text  # nearly always; many times faster than to look for each character
    return _ACTIVE.sub(_visible, text.replace("\r\n", "\n"))


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"\\u{{{code:x}}}"
