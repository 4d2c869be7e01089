"""What people change from the command line and the page: items, specifications, answers."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from cuggino.domain import Decision, plan_in
from cuggino.errors import ConfigError, FileChanged, StorageError
from cuggino.files import read_regular, storing, write_atomic
from cuggino.storage.backlog import Backlog, next_number
from cuggino.storage.moving import digest_of, move_into
from cuggino.storage.workspace import ANSWER, Issue, Workspace

LONGEST = 40_000
"""Characters of a file that a page shows for editing."""

DECISIONS = "decisions.md"
"""The specification with the answers to spec issues."""

_HEADING = """\
# Decisions

Answers to questions about the specifications. Where they contradict another page, the newest holds.
"""
_LONGEST_QUESTION = 2000
_MOST_FILES = 500
_NUMBERED = re.compile(r"(\d+)(?=[-.])")


class Written(NamedTuple):
    """The text of a file as it was read."""

    text: str
    digest: str
    """The SHA-256 of its bytes, by which a change is noticed."""


def read_written(path: Path) -> Written:
    """Return the text of a file that a person may edit.

    Raises:
        StorageError: it is gone, a link, not a text file in UTF-8, or longer than `LONGEST`.
    """
    if path.is_symlink():
        raise StorageError("read", f"{path} is a link; edit its target")
    try:
        digest = digest_of(path)
        text = read_regular(path, biggest=4 * LONGEST).decode("utf-8")
        if digest is None or digest != digest_of(path):
            raise StorageError("read", f"{path} is being written to", hint="try again")
    except FileNotFoundError as error:
        raise StorageError("read", f"{path} is gone") from error
    except (OSError, ValueError) as error:
        cause = "not UTF-8" if isinstance(error, UnicodeDecodeError) else error
        raise StorageError("read", f"{path} cannot be edited here: {cause}") from error
    if len(text) > LONGEST or "\0" in text:
        raise StorageError(
            "read",
            f"{path} cannot be edited here: too long or not text",
            hint="use an editor",
        )
    return Written(text, digest)


def rewrite(path: Path, text: str, *, digest: str) -> Written:
    """Write the text over a file that still has this digest; return what is there then.

    Its line endings are kept.

    Raises:
        ConfigError: the text is blank.
        FileChanged: it has changed since, and was not overwritten.
        StorageError: it is gone, or could not be written.
    """
    if not text.strip():
        raise ConfigError("the text is empty", hint="remove the file instead")
    before = read_written(path)
    if before.digest != digest:
        raise FileChanged(
            "edit",
            f"{path.name} has changed since it was shown; it was not overwritten",
            hint="compare both versions, and save again",
        )
    text = f"{unix_lines(text).rstrip()}\n"
    if "\r\n" in before.text:
        text = text.replace("\n", "\r\n")
    with storing("edit", path):
        write_atomic(path, text)
    return read_written(path)


def unix_lines(text: str) -> str:
    """Return the text with `\\n` line endings, which browsers send as `\\r\\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def move_item(backlog: Backlog, name: str, *, up: bool, keep: Collection[str] = ()) -> str:
    """Exchange the item with the one before or after it; return its new name.

    Items are ordered by their names, so that the two exchange their numbers. If the names have no
    distinct numbers, all items are renamed. Those in `keep` keep their names and are passed over.

    Raises:
        ConfigError: the item is in `keep`, or others are that would have to be renamed.
        StorageError: it is gone, or could not be renamed.
    """
    if name in keep:
        raise ConfigError(f"{name} is at work and keeps its place")
    items = backlog.items()
    if name not in items:
        raise StorageError("move", f"{backlog.path(name)} is gone")
    free = [item for item in items if item not in keep]
    at = free.index(name)
    other = at - 1 if up else at + 1
    if not 0 <= other < len(free):
        return name
    numbers = [found[1] if (found := _NUMBERED.match(item)) else "" for item in items]
    if "" in numbers or len(set(numbers)) < len(numbers):
        if len(free) < len(items):
            raise ConfigError(
                "the names of the items have no distinct numbers, and one is at work",
                hint="begin each name with a number of three digits, such as 001-login.md",
            )
        items[at], items[other] = items[other], items[at]
        return _renumbered(backlog, items, name)
    return _exchanged(backlog, name, free[other])


def _exchanged(backlog: Backlog, name: str, other: str) -> str:
    first, second = (_number(name), _number(other))
    moved = _rename(backlog, name, f"{second}{name[len(first) :]}")
    _rename(backlog, other, f"{first}{other[len(second) :]}")
    return moved


def _renumbered(backlog: Backlog, items: list[str], name: str) -> str:
    made: list[str] = []
    after = ""
    for item in items:
        rest = item[len(_number(item)) :].lstrip("-")
        number = next_number(made)
        made.append(_rename(backlog, item, f"{number}-{rest or 'item.md'}"))
        after = made[-1] if item == name else after
    return after


def _number(name: str) -> str:
    found = _NUMBERED.match(name)
    return found[1] if found else ""


def _rename(backlog: Backlog, name: str, wanted: str) -> str:
    if wanted == name:
        return name
    source = backlog.path(name)
    try:
        return move_into(source, source.parent, wanted, operation="move").name
    except FileNotFoundError as error:
        raise StorageError("move", f"{source} is gone") from error


def spec_files(folder: Path) -> list[str]:
    """Return the text files of the specifications, relative to their folder; no links."""
    names: list[str] = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(place, name)
            with suppress(OSError):
                is_text = path.suffix.lower() in (".md", ".txt", ".rst", ".adoc")
                if is_text and not name.startswith(".") and stat.S_ISREG(path.lstat().st_mode):
                    names.append(path.relative_to(folder).as_posix())
        if len(names) >= _MOST_FILES:
            break
    return names[:_MOST_FILES]


def answer_issue(
    workspace: Workspace, issue: Issue, answer: str, *, specs: Path, at: datetime
) -> str:
    """Add question and answer to `decisions.md` of the specifications, and settle the issue.

    Agents build by the specifications, so that the answer reaches all of them, the reviewer too.
    The answer to a question of an agent that waits (`Issue.is_awaited`) is only for that agent, and
    words about an approval approve or reject it (`decide`). A watch that waits for the issue then
    continues with its item. Returns the issue's name in the archive.

    Raises:
        ConfigError: the answer is blank.
        StorageError: the issue is gone, or the answer could not be written.
    """
    answer = unix_lines(answer).strip()
    if not answer:
        raise ConfigError("the answer is empty", hint="say what the specifications mean")
    if issue.is_approval:
        decision = Decision.in_words(answer)
        approves = decision.outcome == "approved"
        return decide(workspace, issue, approves=approves, text=decision.text)
    try:
        whole = asked = issue.path.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError as error:
        raise StorageError("answer", f"{issue.path} is gone") from error
    except OSError:
        whole, asked = "", issue.title
    if len(asked) > _LONGEST_QUESTION:
        asked = asked[:_LONGEST_QUESTION].rstrip() + " ..."
    question = "\n".join(f"> {line}".rstrip() for line in asked.splitlines())
    entry = f"\n## {at:%Y-%m-%d}: {issue.title}\n\n{question}\n\n{answer}\n"
    if not issue.is_awaited:
        path = specs / DECISIONS
        with storing("answer", path):
            _append(path, entry)
    elif whole:
        with storing("answer", issue.path):
            write_atomic(issue.path, f"{whole}{ANSWER}{answer}\n")
    return workspace.resolve(issue)


def decide(workspace: Workspace, issue: Issue, *, approves: bool, text: str = "") -> str:
    """Record a person's decision, and settle the approval; return its name in the archive.

    `text` is the reason for a rejection, or the plan as it is approved: by default that of the
    file, which a person may have edited.

    Raises:
        StorageError: the approval is gone, or the decision could not be written.
    """
    text = unix_lines(text or (plan_of(issue) if approves else "")).strip()
    answer = Decision("approved" if approves else "rejected", text).answer
    with storing("approve", issue.path):  # without the plan, in which an agent may have answered
        write_atomic(issue.path, f"# {issue.title}{ANSWER}{answer}\n")
    return workspace.decided(issue)


def plan_of(issue: Issue) -> str:
    """Return the plan that waits for an approval; "" if that is about something else.

    Raises:
        StorageError: the approval is gone.
    """
    with storing("approve", issue.path):
        return plan_in(issue.path.read_text(encoding="utf-8", errors="replace"))


def _append(path: Path, entry: str) -> None:
    """Add the entry at the end of the file; after a failure the file is unchanged.

    A link is not followed: a cloned project may let it lead anywhere.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    with os.fdopen(os.open(path, flags, 0o666), "ab", buffering=0) as file:
        before = file.seek(0, os.SEEK_END)
        text = entry if before else _HEADING + entry
        try:
            file.write(text.encode("utf-8", "replace"))
            os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                os.ftruncate(file.fileno(), before)
            raise
