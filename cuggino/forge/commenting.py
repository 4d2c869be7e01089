"""The one comment of an import on its issue, recognized by a hidden marker at its beginning."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable

from reactivex import Observable, operators as ops

from cuggino.forge.model import Comment, Forge
from cuggino.operators import Flow, ask, emit, flow

_MARKER = re.compile(r"<!-- cuggino:([0-9a-f]{16}) -->")


def new_key() -> str:
    """Return a key for an import; no other machine has the same."""
    return secrets.token_hex(8)


def with_marker(key: str, text: str) -> str:
    """Return the body of the comment of an import."""
    return f"<!-- cuggino:{key} -->\n{text}"


def key_of(comment: Comment) -> str:
    """Return the key at the start of a cuggino comment; "" for any other comment.

    A marker quoted further down does not count.
    """
    found = _MARKER.match(comment.body)
    return found[1] if found else ""


def own(comments: Iterable[Comment], key: str) -> Comment | None:
    """Return the first comment with this key by this login."""
    mine = [one for one in comments if one.is_mine and key_of(one) == key]
    return min(mine, key=_age, default=None)


def first_claim(comments: Iterable[Comment]) -> Comment | None:
    """Return the oldest cuggino comment by a trusted author or this login, if any."""
    claims = [one for one in comments if key_of(one) and (one.is_mine or one.is_trusted)]
    return min(claims, key=_age, default=None)


def same_text(one: str, other: str) -> bool:
    """Return whether two bodies are equal, apart from changes that a forge makes."""
    return one.replace("\r\n", "\n").strip() == other.replace("\r\n", "\n").strip()


def all_comments(forge: Forge, number: int) -> Observable[list[Comment]]:
    """Emit all comments on an issue as one list, oldest first."""
    return forge.comments(number).pipe(ops.to_list())


def found_or_added(forge: Forge, number: int, key: str, body: str) -> Observable[Comment]:
    """Emit the import's comment, adding it if it is missing.

    It reads before it writes, so a repeated call, even by another process, adds no duplicate.
    """

    def story() -> Flow[None]:
        comments = (yield from ask(all_comments(forge, number))) or []
        comment = own(comments, key)
        if comment is None:
            comment = yield from ask(forge.add_comment(number, body))
        assert comment is not None
        yield from emit(comment)

    return flow(story)


def _age(comment: Comment) -> tuple[int, str]:
    """Return the sort key of a comment by age; ids only grow."""
    return len(comment.id), comment.id
