"""Text for a terminal: made inert; durations and amounts formatted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `--version` and `--help` load no events
    from cuggino.events import Usage

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


def format_duration(seconds: float) -> str:
    """Return `12s`, `1m 30s` or `2h 5m`: rounded down, the sign ignored."""
    whole = int(abs(seconds))
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m {rest}s"
    return f"{minutes // 60}h {minutes % 60}m"


def format_pause(seconds: float) -> str:
    """Return `1.5s` or `2s` below ten seconds, else as `format_duration`."""
    tenths = round(abs(seconds), 1)
    return f"{tenths:g}s" if tenths <= 10 else format_duration(seconds)


def full_duration(seconds: float) -> str:
    """Return `45s`, `2h 44m` or `1h 30s`: rounded down, without zero parts (AUT-250)."""
    minutes, second = divmod(max(int(seconds), 0), 60)
    hour, minute = divmod(minutes, 60)
    parts = [f"{n}{unit}" for n, unit in ((hour, "h"), (minute, "m"), (second, "s")) if n]
    return " ".join(parts) or "0s"


def first_line(text: str) -> str:
    """Return the first line that is not blank."""
    return text.strip().partition("\n")[0]


def flat(text: str) -> str:
    """Return the text on one line, inert."""
    return inert(" ".join(text.split()))


def clip(text: str, limit: int) -> str:
    """Return the text, inert, cut after `limit` characters."""
    shown = inert(text)
    return f"{shown[:limit]}..." if len(shown) > limit else shown


def countdown(seconds: float) -> str:
    """Return `2h 5m left`."""
    return f"{format_duration(seconds)} left"


def format_tokens(usage: Usage) -> str:
    """Return `12.3k tokens`: input, output and cache writes."""
    total = usage.input_tokens + usage.output_tokens + usage.cache_creation_tokens
    if total < 1000:
        return f"{total} tokens"
    if total < 1_000_000:
        return f"{total / 1000:.1f}k tokens"
    return f"{total / 1_000_000:.2f}M tokens"
