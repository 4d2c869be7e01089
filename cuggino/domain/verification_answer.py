"""Reading what a verifying agent answers (LOP-092, LOP-093).

It is asked for a JSON object, and may say more around it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from cuggino.domain.job_verification import VerificationResult

Check: TypeAlias = Literal["tests", "documentation", "build"]

NO_ANSWER = "No response from verification agent"

_PARTS = ("complete", "testsPass", "documentationExists", "buildSucceeds", "requirementValid")
_COMPLETE = re.compile(r"\bcomplete\"?: true\b", re.IGNORECASE)
_FALSE = re.compile(r"\bfalse\b", re.IGNORECASE)
_LONGEST_ISSUE = 500
_LONGEST_ANSWER = 256 * 1024
"""Characters of an answer in which objects are looked for: the last ones."""
_MOST_BRACES = 1000
"""How many opening braces are tried, from the front."""


def parse_job_answer(answer: str | None) -> VerificationResult:
    """What the agent says of a whole job.

    Keys may be written in any case; a missing one is false. Of several objects the last one with
    `complete` counts. Without a usable object the words `complete: true` do, unless the text also
    holds `false`; the issue is then the text, cut at 500 characters.
    """
    text = answer or ""
    if not text.strip():
        return VerificationResult.failed(NO_ANSWER)

    def read(found: Mapping[str, Any]) -> VerificationResult | None:
        folded = {key.lower(): value for key, value in found.items()}
        parts = [folded.get(key.lower(), False) for key in _PARTS]
        issues = folded.get("issues")
        if not all(isinstance(part, bool) for part in parts) or not isinstance(issues, list | None):
            return None
        complete, tests, documentation, build, requirement = parts
        return VerificationResult(
            complete=complete,
            tests_pass=tests,
            documentation_exists=documentation,
            build_succeeds=build,
            requirement_valid=requirement,
            issues=_issues(issues),
        )

    found = _object(text, lambda keys: "complete" in map(str.lower, keys))
    result = read(found) if found is not None else None
    if result is not None:
        return result
    says_so = _COMPLETE.search(text) is not None and _FALSE.search(text) is None
    shown = text if len(text) <= _LONGEST_ISSUE else text[:_LONGEST_ISSUE] + "..."
    return VerificationResult(complete=says_so, issues=(shown,), by_words=True)


def parse_check_answer(check: Check, answer: str | None) -> VerificationResult:
    """What the agent says of one check alone; keys are written exactly, and no words stand in."""
    text = answer or ""
    if not text.strip():
        return VerificationResult.failed(NO_ANSWER)
    key = {
        "tests": "testsPass",
        "documentation": "documentationExists",
        "build": "buildSucceeds",
    }[check]
    found = _object(text, lambda keys: key in keys)
    holds = found.get(key, False) if found is not None else None
    if found is None or not isinstance(holds, bool):
        return VerificationResult.failed(f"Could not parse {check} verification response")
    return VerificationResult(
        complete=holds,
        tests_pass=holds and check == "tests",
        documentation_exists=holds and check == "documentation",
        build_succeeds=holds and check == "build",
        issues=_issues(found.get("issues")),
    )


def _issues(value: object) -> tuple[str, ...]:
    """The entries of a list that say something; other things than texts as JSON."""
    entries = value if isinstance(value, list) else []
    texts = [e if isinstance(e, str) else json.dumps(e) for e in entries if e is not None]
    return tuple(text for text in texts if text.strip())


def _object(text: str, is_meant: Callable[[list[str]], bool]) -> Mapping[str, Any] | None:
    """From the first brace to the last one; else the last object in the text that is meant."""
    whole = _decoded(text[text.find("{") : text.rfind("}") + 1])
    if isinstance(whole, dict):
        return whole
    meant = [found for found in _objects(text[-_LONGEST_ANSWER:]) if is_meant(list(found))]
    return meant[-1] if meant else None


def _objects(text: str) -> Iterator[dict[str, Any]]:
    decoder, start = json.JSONDecoder(), text.find("{")
    for _ in range(_MOST_BRACES):
        if start < 0:
            return
        try:
            found, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield found
        start = text.find("{", end)


def _decoded(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
