"""A verdict of the guard as JSON, or as text part by part."""

from __future__ import annotations

from typing import Any

from cuggino.guard import Level, Verdict
from cuggino_cli.screen.fragments import Fragment, joined


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """Return the verdict as an object: `decision`, `reason` of the first denied part, `parts`."""
    return {
        "decision": verdict.decision,
        "reason": verdict.reason,
        "parts": [
            {
                "text": part.text,
                "decision": "allow" if part.is_allowed else "deny",
                "reason": part.reason,
            }
            for part in verdict.parts
        ],
    }


def verdict_fragments(verdict: Verdict, level: Level | None) -> list[Fragment]:
    """Return the parts, denied ones with their reason, and the decision with its level."""
    lines = [part_fragments(part.text, part.reason) for part in verdict.parts]
    at = f'at level "{level}".' if level else 'without a judgment: "guard" is "off".'
    if verdict.is_allowed:
        lines.append([Fragment("success", f"Allowed {at}")])
    else:
        lines.append([Fragment("failure", f"Denied {at}")])
    return joined(lines)


def part_fragments(text: str, reason: str) -> list[Fragment]:
    """Return one part as a line with its mark, and the reason for a denial below."""
    line = Fragment("plain", text.replace("\n", "\n  "))
    if not reason:
        return [Fragment("success", "✓ "), line]
    below = reason.replace("\n", "\n    ")
    return [Fragment("failure", "✗ "), line, Fragment("plain", f"\n    {below}")]
