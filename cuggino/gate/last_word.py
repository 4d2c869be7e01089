"""The rule by which an approval counts: it is the last word of a session that nothing contradicts.

It needs no knowledge of agents: a stage fills a `LastWord` with what it has seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cuggino.domain import parse_findings

_LONGEST = 200
"""Characters quoted of what an agent wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastWord:
    """An approval, and what the session and its record say besides it."""

    contents: tuple[str, ...] = ()
    """The texts of its approvals."""
    before: str = ""
    """The text directly before the last one, in the same message."""
    after: str = ""
    """What the agent wrote after it, in this message or a later one."""
    error: str = ""
    """The error with which the session ended."""
    exit_code: int | None = None
    """The exit code of the agent's program, if known."""
    is_cut: bool = False
    """True if the last message was cut at the token limit."""
    review: str = ""
    """The review file that the session wrote."""
    unanswered: tuple[str, ...] = ()
    """Findings about the work that it should have answered, each as a clause."""
    unticked: int = 0
    """The tasks of the plan that are not ticked."""
    reported: int = 0
    """The implementing sessions that reported a task since the plan was written."""


def objections(word: LastWord) -> tuple[str, ...]:
    """Return why the approval does not count as it is, each reason as a clause; () if it does."""
    return tuple(_objections(word))


def _objections(word: LastWord) -> Iterator[str]:
    for content in dict.fromkeys(filter(is_contradictory, word.contents)):
        yield f"the approval contradicts itself: {_quoted(content)}"
    if is_draft(word.before):
        yield f"it is introduced as a draft: {_quoted(word.before.splitlines()[-1])}"
    if re.search(r"\w", word.after):
        yield f"more text follows the approval: {_quoted(word.after)}"
    if word.error:
        yield f"the session then ended with an error: {_quoted(word.error)}"
    if word.exit_code:
        yield f"the agent's program ended with exit code {word.exit_code}"
    if word.is_cut:
        yield "the last message was cut at the token limit"
    if has_findings(word.review):
        yield f"the review file has findings: {_quoted(word.review)}"
    yield from word.unanswered
    if word.unticked > word.reported:
        yield (
            f"{_count(word.unticked, 'task')} of the plan not ticked, and "
            f"{_count(word.reported, 'session')} reported a task"
        )


def question(reasons: Sequence[str], *, review: str = "") -> str:
    """Return the prompt that asks a reviewer for its verdict again; `review` names its file."""
    listed = "\n".join(f"- {reason}" for reason in reasons)
    file = f" Delete the review file {review} if its findings no longer stand." if review else ""
    return (
        "Your approval does not count yet, because something contradicts it:\n\n"
        f"{listed}\n\n"
        "Look at each of these points again. Then answer with your verdict as the last line of "
        "your message, at the very beginning of that line and outside of other tags and code: "
        "<APPROVED>...</APPROVED> if the work matches the specifications all the same, else "
        f"<REQUEST_CHANGES>...</REQUEST_CHANGES>.{file}"
    )


def requested_changes(reasons: Sequence[str], *, review: str = "") -> str:
    """Return the review that replaces an approval that does not count.

    The text of the `review` file is that review, if it has findings.
    """
    if has_findings(review):
        return review.strip()
    return f"The reviewer approved, but the approval does not count: {'; '.join(reasons)}."


_CLAUSES = re.compile(r"[.,;:!?\n()]+|\s-+\s|\b(?:but|however|although|though|except|yet|while)\b")
_NEGLIGIBLE = re.compile(
    r"\b(?:no|none|not an?|nothing|zero|0|without|neither|nor|never|any|longer|fixed|resolved|"
    r"used to|previously|earlier|before|formerly|would|could|should|may|might|if|when|whether|once|"
    r"expected|catch(?:es)?|cover(?:s|ed)?|handle[sd]?|report(?:s|ed)?)\b"
)
"""Words with which a clause about a failure is none about this work."""
_PARTS = (
    r"(?:tests?|checks?|cases?|specs?|suites?|builds?|assertions?|requirements?|criteria|tasks?)"
)
_FLAWS = r"(?:issues?|bugs?|problems?|defects?|errors?|findings?|todos?)"
_GOOD = r"(?:pass\w*|done|complete\w*|met|green|succe\w+|implemented|finished)"
_FAILS = re.compile(
    r"\b(?:\d+|some|several|many|few|most|all|one|two|three|more|the|unit|of)?\s*"
    rf"{_PARTS}\s+"
    r"(?:(?:is|are|was|were|still|now|do|does)\s+)*"
    r"(?:fail(?:s|ed|ing)?|broken|red|missing|unmet|unfinished|not\s+\w+|n't\s+\w+|remain)\b"
    r"|\b\d+\s+(?:fail(?:ures?|ed|ing)|errors?)\b"
    r"|\b(?:is|are|still|remains?)\s+(?:missing|incomplete|broken|unfinished|unimplemented|failing)\b"
    rf"|\b{_FLAWS}\s+(?:(?:is|are|still)\s+)*(?:remain\w*|left|open|unresolved|unfixed)\b"
    rf"|\b(?:there\s+(?:is|are)|still|with)\s+(?:\w+\s+)?(?:open|unresolved|remaining)\s+{_FLAWS}\b"
    rf"|\b(?:half|some|most|part|few)\s+of\s+(?:the|all)\s+(?:\w+\s+)?{_PARTS}\s+(?:\w+\s+)?{_GOOD}\b"
    r"|^\s*(?:(?:it|this|still|(?:the|this)\s+\w+)\s+){0,2}(?:crash(?:es|ed)|hangs?|throws)\b"
    r"|^\s*(?:exit(?:ed|s)?|status|rc)(?:\s+(?:with|code|status))*\s+[1-9]\d*\s*$"
    r"|^\s*failed\s+\S+/"
    r"|\b(?:blocking|blockers?)\b"
)
_SHARE = re.compile(
    rf"\b(\d+)\s*(?:/|of|out\s+of)\s*(?:the\s+)?(\d+)\s+(?:\w+\s+)?{_PARTS}\s+(?:\w+\s+)?{_GOOD}\b"
)
"""How many of how many are good."""
_REFUSES = re.compile(
    r"\b(?:not|never|hardly|barely|far\s+from|cannot|(?:ca|wo|do|does|did|is|are|was|were|ai)n't|"
    r"unable\s+to)\s+(?!only\b)(?:\w+\s+){0,2}?"
    r"(?:approv\w*|accept\w*(?!\s+(?!this|it|the\s+work)\w)|done|complete\w*|ready|finished|"
    r"implemented|met|match\w*|pass\w*|satisf\w*|ok(?:ay)?|good|fine|right|correct|work\w*|"
    r"compile\w*|build\w*|there\s*$)\b"
    r"|\b(?:(?:can|could|did|was)\s*n[o']t|cannot|unable\s+to)\s+(?:\w+\s+)?"
    r"(?:run|verif\w+|confirm\w*|test(?:ed)?|check(?:ed)?)\b"
    r"|\b(?:do\s+not|don't|never)\s+(?:merge|ship|land|release|deploy)\b|\bhold\s+off\b"
    r"|\b(?:almost|nearly|not\s+quite)\s+(?:done|ready|there|finished|complete)\b"
    r"|\b(?:disapprov\w*|unapproved|(?:i|we)\s+(?:\w+\s+)?(?:reject|decline))\b"
    r"|\bchanges?\s+(?:are\s+|is\s+)?(?:requested|required|needed|necessary)\b"
    r"|\b(?:needs?|requests?|requesting|requires?)\s+(?:\w+\s+)?changes\b"
    r"|^\s*(?:i\s+)?(?:(?:would|will)\s+(?:only\s+)?approve|conditional(?:ly)?\s+approv\w*)\b"
    r"|^\s*(?:approv\w*|merge|ship|lgtm|ok(?:ay)?|looks\s+good|good\s+to\s+go)\s+(?:it\s+)?"
    r"(?:only\s+)?(?:if|once|unless|until|pending|after|when|as\s+soon\s+as|provided|assuming)\b"
    r"|\bneeds?\s+(?:more\s+|some\s+)?(?:fixing|rework|work)\b"
    r"|\b(?:partially|partly|half|only half)\s+(?:complete\w*|done|finished|implemented)\b"
    r"|^\s*(?:not|no|never|nope|pending|todo|wip|draft|rejected|declined|denied|refused|withdrawn"
    r"|false|nack|missing|conditional(?:ly)?|-1|fail(?:s|ed|ing|ure)?)\s*$"
    r"|[\u274c\U0001f44e\U0001f6ab\u26d4\u2717\u2718]"  # crosses, a thumb down, no entry
)
_PLAINLY = re.compile(
    r"^\s*no[\s-]?go\s*$"
    # nicht genehmigt, non approuvé, não aprovado, no apruebo, не одобрено, 未批准; abgelehnt
    r"|\b(?:nicht|no|non|n[ãa]o|не)\s+(?:\w+\s+)?(?:genehmigt|freigegeben|akzeptiert|bestanden|fertig"
    r"|erf[üu]llt|approuv\w+|approvat\w+|apr[uo][vb]\w+|apruebo|одобр\w+|принят\w*|готов\w*)"
    r"|\b(?:abgelehnt|fehlgeschlagen|rechazad[oa]|refusée?|rejet[ée]e?|rejeitad[oa]|rifiutat[oa]"
    r"|отклонен\w*)\b|[未不没](?:有)?(?:批准|通过|完成|合格)|拒绝|驳回|却下|承認(?:できま|しま)せん"
)
"""No words turn these into their opposite."""
_DOUBLE = re.compile(r"\b(?:nothing|none|no\s+\w+)\b")
"""Words that turn a refusal into its opposite: "nothing that does not match"."""


def is_contradictory(content: str) -> bool:
    """Return whether the text of an approval states that the work is not approved or fails.

    A small rule on words of negation and failure, clause by clause: the agent is asked, so it errs
    towards doubt only where the words are plain.
    """
    clauses = _CLAUSES.split(content.lower().replace("\u2019", "'"))
    for index, clause in enumerate(clauses):
        if _REFUSES.search(clause) and not _DOUBLE.search(clause):
            return True
        if _FAILS.search(clause) and not _NEGLIGIBLE.search(clause):
            return True
        if _PLAINLY.search(clause) or any(
            int(share[1]) < int(share[2]) for share in _SHARE.finditer(clause)
        ):
            return True
        is_bare = clause.strip() in ("not", "no")
        if is_bare and index + 1 < len(clauses):
            return True
    return False


_HYPOTHETICAL = re.compile(
    r"\b(?:would|could|might|if|unless|pretend|suppose|imagine|hypothetical\w*|example|e\.g|draft|"
    r"template|placeholder|format|syntax|sample|instead of|rather than|not|once|as soon as|until|"
    r"expected|expects|expecting|schema)\b|\b\w+n't\b|\bi'd\b",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"\b(?:says?|said|writes?|wrote|tells?|told|asks?|asked|contains?|prints?|printed|reads|"
    r"claims?|claimed|quot\w+|prompt)\b",
    re.IGNORECASE,
)
_OWN = re.compile(r"\b(?:my|final|thus|therefore|hence|so)\b", re.IGNORECASE)
"""Words with which an answer is introduced, not the words of somebody else."""
_SPEAKER = re.compile(
    r"[\s#*_>\[-]*(?:(?:Human|User|System|Developer|Prompt)[\s*_\]]*:|\$ \w)", re.IGNORECASE
)
"""Somebody else speaks next: a person, or a command that is shown with its output."""


def is_draft(before: str) -> bool:
    """Return whether the line before a marker introduces it as something that is not meant."""
    lines = before.strip().splitlines()
    if not lines:
        return False
    line = lines[-1].strip().replace("\u2019", "'")
    is_meant = not _HYPOTHETICAL.search(line) and (
        _OWN.search(line) is not None or not _REPORTED.search(line)
    )
    return bool(
        (line.rstrip("*_").endswith((":", "...", "\u2026")) and not is_meant)
        or _SPEAKER.match(line)
    )


_NO_FINDINGS = re.compile(
    r"(?:(?:(?:there (?:are|is|were) |i (?:have|found) )?(?:no|none|nothing|zero|0|without)"
    r"(?: (?:\w+ )?(?:issues?|bugs|problems?|defects|errors|findings?|todos|failures|blockers?"
    r"|comments?|remarks?|changes?|objections?|concerns?|found|to \w+|missing|left|wrong"
    r"|more|needed)\b.{0,100})?|n/?a"
    r"|(?:all|everything)(?: (?:is|are|looks?))? (?:good|fine|well|ok(?:ay)?|met|done)\b.{0,100}"
    r"|(?:lgtm|looks (?:good|fine)|approved?|ok(?:ay)?)\b.{0,100}"
    r"|(?:the |all )?(?:work|project|code|implementation|specifications?"
    rf"|{_PARTS})\b.{{0,60}}(?:match(?:es)?|meets?|satisf\w+|conforms?|compl\w+|met|pass)\b"
    r".{0,100}))[.!]?",
    re.IGNORECASE,
)
_APART = re.compile(
    r"\b(?:except|apart|aside|but|however|besides|other than|missing:)", re.IGNORECASE
)
_CHECKED = re.compile(r"\s*[-*+] \[[xX]\]")


def has_findings(review: str) -> bool:
    """Return whether a review file has findings: any text, but a heading and "No findings.".

    Improvements, which no specification demands, are none, nor are checked items.
    """
    improvements = {
        _words(line)
        for finding in parse_findings(review)
        if finding.is_improvement
        for line in finding.what.splitlines()
    }
    return any(
        _is_finding(line) for line in review.splitlines() if _words(line) not in improvements
    )


def _is_finding(line: str) -> bool:
    words = _words(line)
    if not re.search(r"\w", words) or _CHECKED.match(line):
        return False
    if line.lstrip().startswith("#"):
        return len(words.split()) > 2 and is_contradictory(words)
    is_nothing = _NO_FINDINGS.fullmatch(words) and not _APART.search(words)
    return not is_nothing or is_contradictory(words)


def _words(line: str) -> str:
    return line.strip("\ufeff \t*_+>-#|`()[]{}")


def _quoted(text: str) -> str:
    words = " ".join(text.split())
    return f'"{words if len(words) <= _LONGEST else words[: _LONGEST - 3] + "..."}"'


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
