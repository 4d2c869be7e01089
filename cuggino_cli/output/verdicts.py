"""How a verdict of the guard is told: as JSON, or part by part."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cuggino.security.verdict import Verdict
from cuggino_cli.output.theme import Fragment


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict as an object: `decision`, `reason` of the first denied part, `parts`."""
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


def verdict_fragments(verdict: Verdict) -> list[Fragment]:
    """The verdict part by part, each with its reason when it is denied, and the sum of it."""
    lines = [part_fragments(part.text, part.reason) for part in verdict.parts]
    if verdict.is_allowed:
        lines.append([Fragment("success", "Allowed.")])
    else:
        lines.append([Fragment("failure", "Denied.")])
    return on_lines(lines)


def part_fragments(text: str, reason: str) -> list[Fragment]:
    """One part as a line with its mark; why it is denied stands below."""
    line = Fragment("plain", text.replace("\n", "\n  "))
    if not reason:
        return [Fragment("success", "✓ "), line]
    below = reason.replace("\n", "\n    ")
    return [Fragment("failure", "✗ "), line, Fragment("plain", f"\n    {below}")]


def on_lines(lines: Iterable[Iterable[Fragment]]) -> list[Fragment]:
    """Each on a line of its own."""
    joined: list[Fragment] = []
    for line in lines:
        joined += [Fragment("plain", "\n"), *line] if joined else line
    return joined
