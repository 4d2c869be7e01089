"""Waits in words: the grammar of `<WAITING>`, and what people and agents read about a wait."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import assert_never

from cuggino.domain.approvals import approval_text
from cuggino.domain.texts import cut_at_end, duration_text
from cuggino.events import (
    At,
    CiDone,
    CommandSucceeds,
    FileExists,
    FilesCounted,
    PersonAnswers,
    ProcessEnded,
    Until,
    WaitingEnded,
    WaitingRefused,
)

SOURCES = (
    "`ci`, `process 4711`, `file build/report.xml`, `time 2026-12-01 06:00`, or `person` and the "
    "question"
)
_LONGEST = 200


def parse_waiting(content: str, *, now: datetime, longest: float) -> Until:
    """Return the condition that the first line of a `<WAITING>` marker names.

    `longest` is the limit in seconds that each such wait gets.

    Raises:
        ValueError: it cannot be awaited; the message is advice for the agent.
    """
    first, _, rest = content.strip().partition("\n")
    source, _, target = first.strip().strip("`").partition(" ")
    target = target.strip()
    match source.lower().rstrip(":"):
        case "ci" if not target:
            return CiDone(within=longest)
        case "process" if re.fullmatch(r"[1-9]\d{0,8}", target):
            return ProcessEnded(pid=int(target), within=longest)
        case "process":
            raise ValueError("`process` needs the number of a process, as in `process 4711`")
        case "file" if target:
            return FileExists(path=target, within=longest)
        case "file":
            raise ValueError("`file` needs a path, as in `file build/report.xml`")
        case "time":
            return At(time=_time(target, now=now, longest=longest), within=longest)
        case "person":
            question = f"{target}\n{rest}".strip()
            if not question:
                raise ValueError("`person` needs the question, in the same line or below it")
            return PersonAnswers(question=question, within=longest)
        case _:
            named = cut_at_end(first.strip(), _LONGEST)
            raise ValueError(f"{named!r} names no source; the first line has to be {SOURCES}")


def _time(text: str, *, now: datetime, longest: float) -> datetime:
    try:
        time = datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):  # not a time, or one before or after all others
        raise ValueError("`time` needs a date and a time, as in `time 2026-12-01 06:00`") from None
    if time > now + timedelta(seconds=longest):
        raise ValueError(
            f"{text} is later than the longest wait allows, {duration_text(longest)} from now; end "
            "with another marker of your role, and name the time in it"
        )
    return time


def until_text(until: Until) -> str:
    """Return the condition in words, to complete the sentence "waiting for ..."."""
    match until:
        case FileExists():
            return f"the file {until.path}"
        case FilesCounted():
            return f"{until.at_least} files in {until.folder}"
        case ProcessEnded():
            return f"the end of process {until.pid}"
        case At():
            return f"{until.time:%Y-%m-%d %H:%M}"
        case CommandSucceeds():
            return f"the success of `{_one_line(until.command)}`"
        case CiDone(pull_request=int(number)):
            return f"the CI of pull request {number}"
        case CiDone():
            return f"the CI of commit {until.commit[:12]}" if until.commit else "CI"
        case PersonAnswers(approves=str(kind)) if kind:
            return f"your approval of {approval_text(kind)}"
        case PersonAnswers():
            return f"an answer to: {_one_line(until.question)}"
        case _ as never:
            assert_never(never)


def waited_text(wait: WaitingEnded | WaitingRefused) -> str:
    """Return the prompt for the agent that has waited."""
    if isinstance(wait, WaitingRefused):
        return (
            f"You wanted to wait (<WAITING>), but that is not possible: {wait.reason}. Go on with "
            "your task, and end it as you were told."
        )
    what, after = until_text(wait.until), duration_text(round(wait.waited))
    match wait.outcome:
        case "happened":
            result = f"It has happened, after {after}"
        case "deadline":
            result = f"It has not happened within {after}, the longest wait"
        case "failed":
            result = f"It could not be watched any longer after {after}"
        case _ as never:
            assert_never(never)
    if isinstance(wait.until, PersonAnswers) and wait.answer:
        answer = f"; the answer:\n\n{wait.answer.strip()}\n\n"
    else:
        answer = f": {wait.answer}. " if wait.answer else ". "
    return (
        f"You waited for {what}. {result}{answer}Go on with your task from where you were, and "
        "end it as you were told."
    )


def _one_line(text: str) -> str:
    return cut_at_end(" ".join(text.split()), _LONGEST)
