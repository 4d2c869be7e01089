"""Verifying jobs: the verifying agent's answer, checked against facts.

A job counts as done only if both agree (LOP-091 to LOP-099). The agent is asked for a JSON object
and may write text around it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, TypeAlias

MOST_FAILURES = 3
"""Failed verifications after which a job is blocked (LOP-097)."""

FINDINGS_HEADING = "Verification findings"

CommandCheck: TypeAlias = Literal["build", "tests"]

_CONVENTIONAL = re.compile(r"[a-z][a-z0-9-]*(\([^()\r\n]+\))?!?: \S", re.IGNORECASE)
_BY_GIT = ("Merge ", 'Revert "')
"""Prefixes of messages that git writes itself."""
_LONGEST_OUTPUT = 1000
"""Characters of a command's output that a finding keeps, from its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationResult:
    """The result of a verification; everything unknown is false."""

    complete: bool = False
    tests_pass: bool = False
    documentation_exists: bool = False
    build_succeeds: bool = False
    requirement_valid: bool = False
    issues: tuple[str, ...] = ()
    by_words: bool = False
    """True if the answer was prose and only its words were evaluated."""

    @classmethod
    def passed(cls) -> Self:
        """Return a result in which everything holds."""
        return cls(
            complete=True,
            tests_pass=True,
            documentation_exists=True,
            build_succeeds=True,
            requirement_valid=True,
        )

    @classmethod
    def failed(cls, issue: str) -> Self:
        """Return a result in which nothing holds, for this reason."""
        return cls(issues=(issue,))


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRun:
    """A build or test command that the loop ran; its exit code is proof."""

    check: CommandCheck
    command: str
    exit_code: int
    output: str = ""

    @property
    def succeeded(self) -> bool:
        """Return whether it exited with 0."""
        return self.exit_code == 0

    @property
    def result(self) -> VerificationResult:
        """Return the result, as the agent's answer to that check would be."""
        return VerificationResult(
            complete=self.succeeded,
            build_succeeds=self.succeeded and self.check == "build",
            tests_pass=self.succeeded and self.check == "tests",
            issues=() if self.succeeded else (self.text,),
        )

    @property
    def text(self) -> str:
        """Return the command and its exit code, with the end of the output if it failed."""
        text = f"`{self.command}` exited with {self.exit_code}"
        end = self.output.strip()[-_LONGEST_OUTPUT:].strip()
        return text if self.succeeded or not end else f"{text}:\n{end}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """The facts about a job that the loop found itself."""

    requirement: VerificationResult
    """The result of checking that its requirement code is in a specification."""
    runs: tuple[CommandRun, ...] = ()
    """The project's build and test commands, if configured."""
    commits: tuple[str, ...] = ()
    """The messages of the commits since the iteration began."""

    @property
    def refutation(self) -> VerificationResult | None:
        """Return the result if the facts alone disprove the job; the agent is not asked then."""
        result = with_facts(VerificationResult.passed(), self)
        return None if result.complete else result

    @property
    def as_list(self) -> str:
        """Return the facts as a list for the verifying agent."""
        lines = [run.text for run in self.runs]
        lines += commit_issues(self.commits)
        return _listed(lines) or "- nothing\n"


def with_facts(judged: VerificationResult, facts: JobFacts) -> VerificationResult:
    """Merge the agent's judgment with the facts: each part holds only if both agree.

    The job is complete only if the agent reports it, including each part, and no fact contradicts
    it. A prose answer has no parts; then its one word decides. The issues of the facts come first.
    An unconventional commit message is an issue, but not a failure.
    """
    build, tests = (_proven(facts.runs, check) for check in ("build", "tests"))
    if judged.by_words and judged.complete:
        judged = replace(VerificationResult.passed(), issues=judged.issues, by_words=True)
    result = replace(
        judged,
        tests_pass=judged.tests_pass and tests,
        build_succeeds=judged.build_succeeds and build,
        requirement_valid=judged.requirement_valid and facts.requirement.requirement_valid,
    )
    parts = {
        "tests pass": result.tests_pass,
        "documentation exists": result.documentation_exists,
        "the build succeeds": result.build_succeeds,
        "the requirement code is valid": result.requirement_valid,
    }
    proofs = [issue for run in facts.runs for issue in run.result.issues]
    if not facts.requirement.requirement_valid:
        proofs += facts.requirement.issues
    issues = [*proofs, *judged.issues]
    if not issues:
        issues += [f"Not verified that {part}" for part, holds in parts.items() if not holds]
    if not issues and not judged.complete:
        issues.append("The verifying agent does not call the job complete, and does not say why")
    return replace(
        result,
        complete=judged.complete and all(parts.values()),
        issues=tuple(dict.fromkeys([*issues, *commit_issues(facts.commits)])),
    )


@dataclass(frozen=True, slots=True)
class FailureCounts:
    """Failed verifications of each job since it last passed."""

    counts: Mapping[str, int] = field(default_factory=dict)

    def failed(self, job_id: str) -> FailureCounts:
        """Return the counts with one more failure of that job."""
        return FailureCounts({**self.counts, job_id: self.counts.get(job_id, 0) + 1})

    def passed(self, job_id: str) -> FailureCounts:
        """Return the counts without failures of that job."""
        return FailureCounts({key: n for key, n in self.counts.items() if key != job_id})

    def is_exhausted(self, job_id: str) -> bool:
        """Return whether that job has failed too often."""
        return self.counts.get(job_id, 0) >= MOST_FAILURES


def failure_note(result: VerificationResult) -> str:
    """Return the note that is added to a job which failed its verification."""
    return f"{FINDINGS_HEADING}: {'; '.join(result.issues)}"


def with_findings(prompt: str, issues: Iterable[str]) -> str:
    """Return the build prompt with the findings in front; unchanged without any."""
    findings = _listed(issues)
    if not findings:
        return prompt
    return (
        f"# {FINDINGS_HEADING}\n\n"
        "The verification of the last iteration has found this. Mend it before anything else.\n\n"
        f"{findings}\n{prompt}"
    )


def is_conventional(message: str) -> bool:
    """Return whether a commit message is `type(scope)!: text`, or was written by git itself."""
    subject = _subject(message)
    return subject.startswith(_BY_GIT) or _CONVENTIONAL.match(subject) is not None


def commit_issues(messages: Iterable[str]) -> tuple[str, ...]:
    """Return a sentence per unconventional message (LOP-098)."""
    return tuple(
        f'Commit message is not conventional, "type(scope): text": "{_subject(message)}"'
        for message in messages
        if not is_conventional(message)
    )


def _subject(message: str) -> str:
    return message.strip().partition("\n")[0].strip()


def _proven(runs: Iterable[CommandRun], check: CommandCheck) -> bool:
    return all(run.succeeded for run in runs if run.check == check)


def _listed(lines: Iterable[str]) -> str:
    return "".join(f"- {line.strip().replace(chr(10), chr(10) + '  ')}\n" for line in lines)


Check: TypeAlias = Literal["tests", "documentation", "build"]

NO_ANSWER = "No response from verification agent"

_PARTS = ("complete", "testsPass", "documentationExists", "buildSucceeds", "requirementValid")
_COMPLETE = re.compile(r"\bcomplete\"?: true\b", re.IGNORECASE)
_FALSE = re.compile(r"\bfalse\b", re.IGNORECASE)
_LONGEST_ISSUE = 500
_LONGEST_ANSWER = 256 * 1024
"""Characters of an answer, from its end, that are searched for objects."""
_MOST_BRACES = 1000
"""Opening braces that are tried, from the front."""


def parse_job_answer(answer: str | None) -> VerificationResult:
    """Parse the agent's answer about a whole job.

    Keys are matched in any case; a missing one is false. Of several objects, the last one with
    `complete` counts. Without a usable object, `complete: true` in the text counts, unless the text
    also contains `false`; the issue is then the text, cut to 500 characters.
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
    """Parse the agent's answer about one check, whose keys must match exactly."""
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
    """Return the non-empty entries of a list; values other than strings as JSON."""
    entries = value if isinstance(value, list) else []
    texts = [e if isinstance(e, str) else json.dumps(e) for e in entries if e is not None]
    return tuple(text for text in texts if text.strip())


def _object(text: str, is_meant: Callable[[list[str]], bool]) -> Mapping[str, Any] | None:
    """Return the object from the first brace to the last, else the last matching one."""
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
