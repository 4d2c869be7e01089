"""What a person is told, and about which events."""

from __future__ import annotations

from cuggino.events import (
    Event,
    RateLimited,
    WatchBacklogWaiting,
    WatchItemParked,
    WatchSpecIssueWaiting,
)

BODY_LIMIT = 500
"""Characters of a message; what an agent said when it failed can be long."""


def message_for(event: Event) -> tuple[str, str] | None:
    """Title and body of what a person is told about the event; None when it needs nobody."""
    match event:
        case WatchSpecIssueWaiting():
            return (
                "A spec issue waits for you",
                "The work goes on when .cuggino/spec-issues/ is empty.",
            )
        case WatchBacklogWaiting():
            return "The backlog is empty", "The work goes on with the next item in the backlog."
        case WatchItemParked(filename=filename, reason=reason):
            return f"Parked: {filename}", f"{reason}\nIt is in .cuggino/parked/ now."
        case RateLimited(status="rejected", limit=limit, resets_at=resets_at):
            resets = f"It resets at {resets_at:%Y-%m-%d %H:%M %Z}".rstrip() if resets_at else ""
            words = [f"Limit: {limit}." if limit else "", f"{resets}." if resets else ""]
            return "The agent's usage limit is reached", " ".join(filter(None, words)) or "Wait."
        case _:
            return None


def plain(text: str) -> str:
    """The text without control characters, newlines excepted, and not too long."""
    kept = "".join(c for c in text if c == "\n" or c.isprintable())
    return kept if len(kept) <= BODY_LIMIT else f"{kept[: BODY_LIMIT - 2]} …"
