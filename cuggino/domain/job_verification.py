"""Whether a job is really done: what the verifying agent says, and what the loop knows itself.

A job counts as done only when both agree (LOP-091, LOP-096 to LOP-099). Reading the agent's answers
is in `cuggino.domain.verification_answer`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Self, TypeAlias

MOST_FAILURES = 3
"""After how many failed verifications a job is blocked (LOP-097)."""

FINDINGS_HEADING = "Verification findings"

CommandCheck: TypeAlias = Literal["build", "tests"]

_CONVENTIONAL = re.compile(r"[a-z][a-z0-9-]*(\([^()\r\n]+\))?!?: \S", re.IGNORECASE)
_BY_GIT = ("Merge ", 'Revert "')
"""How messages begin that git writes itself."""
_LONGEST_OUTPUT = 1000
"""Characters of a command's output that a finding holds: its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationResult:
    """What a verification has come to; as long as nothing is known, nothing is so."""

    complete: bool = False
    tests_pass: bool = False
    documentation_exists: bool = False
    build_succeeds: bool = False
    requirement_valid: bool = False
    issues: tuple[str, ...] = ()
    by_words: bool = False
    """Whether the answer was prose and only its words were judged, which is worth a line."""

    @classmethod
    def passed(cls) -> Self:
        """All is as it should be."""
        return cls(
            complete=True,
            tests_pass=True,
            documentation_exists=True,
            build_succeeds=True,
            requirement_valid=True,
        )

    @classmethod
    def failed(cls, issue: str) -> Self:
        """Nothing is, for this reason."""
        return cls(issues=(issue,))


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRun:
    """A command of the project's own that the loop ran: its exit code is proof (LOP-099)."""

    check: CommandCheck
    command: str
    exit_code: int
    output: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether it exited with 0."""
        return self.exit_code == 0

    @property
    def result(self) -> VerificationResult:
        """What it proves, as the agent's answer to that one check would say it."""
        return VerificationResult(
            complete=self.succeeded,
            build_succeeds=self.succeeded and self.check == "build",
            tests_pass=self.succeeded and self.check == "tests",
            issues=() if self.succeeded else (self.told,),
        )

    @property
    def told(self) -> str:
        """How it ended, with the end of its output when it failed."""
        told = f"`{self.command}` exited with {self.exit_code}"
        end = self.output.strip()[-_LONGEST_OUTPUT:].strip()
        return told if self.succeeded or not end else f"{told}:\n{end}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the loop knows of a job by itself."""

    requirement: VerificationResult
    """Whether its code is in a specification."""
    runs: tuple[CommandRun, ...] = ()
    """The project's own commands for build and tests, as far as there are such."""
    commits: tuple[str, ...] = ()
    """The messages of the commits since the iteration began."""

    @property
    def refutation(self) -> VerificationResult | None:
        """The result when the facts alone show that the job is not done; the agent is not asked."""
        result = merged(VerificationResult.passed(), self)
        return None if result.complete else result

    @property
    def told(self) -> str:
        """The facts as a list for the verifying agent."""
        lines = [run.told for run in self.runs]
        lines += commit_issues(self.commits)
        return _listed(lines) or "- nothing\n"


def merged(judged: VerificationResult, facts: Facts) -> VerificationResult:
    """The agent's judgement and the facts: each part holds only where both say so.

    The job is complete only when the agent says so and nothing speaks against it, a part that the
    agent itself denies among that. An answer by words alone has no parts: then its one word counts.
    Issues are the facts' first. A commit message that is not conventional is an issue, and no
    failure (LOP-098).
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
    """How often each job has failed its verification since it last passed (LOP-097)."""

    counts: Mapping[str, int] = field(default_factory=dict)

    def failed(self, job_id: str) -> FailureCounts:
        """With one more failure of that one."""
        return FailureCounts({**self.counts, job_id: self.counts.get(job_id, 0) + 1})

    def passed(self, job_id: str) -> FailureCounts:
        """With none of that one."""
        return FailureCounts({key: n for key, n in self.counts.items() if key != job_id})

    def is_exhausted(self, job_id: str) -> bool:
        """Whether that one has failed too often."""
        return self.counts.get(job_id, 0) >= MOST_FAILURES


def failure_note(result: VerificationResult) -> str:
    """What a job that failed says of it, in what there is of the job."""
    return f"{FINDINGS_HEADING}: {'; '.join(result.issues)}"


def with_findings(prompt: str, issues: Iterable[str]) -> str:
    """The build prompt with what was found in front of it; as it is when that is nothing."""
    findings = _listed(issues)
    if not findings:
        return prompt
    return (
        f"# {FINDINGS_HEADING}\n\n"
        "The verification of the last iteration has found this. Mend it before anything else.\n\n"
        f"{findings}\n{prompt}"
    )


def is_conventional(message: str) -> bool:
    """Whether a commit message is `type(scope)!: text`, or one that git has written itself."""
    subject = _subject(message)
    return subject.startswith(_BY_GIT) or _CONVENTIONAL.match(subject) is not None


def commit_issues(messages: Iterable[str]) -> tuple[str, ...]:
    """A sentence for each message that is not conventional (LOP-098)."""
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
