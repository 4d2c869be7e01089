"""The memory of a conversation: the codes of questions, and the replies dealt with."""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from cuggino.files import read_regular, write_atomic

_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
_LENGTH = 8
_KEPT = 200


class ChatState(BaseModel):
    """The state of one conversation."""

    model_config = ConfigDict(frozen=True)

    asked: dict[str, str] = {}
    """The keys of the open questions, by their codes."""
    used: tuple[str, ...] = ()
    """The codes of settled questions."""
    seen: tuple[str, ...] = ()
    """The ids of replies that were dealt with, the latest last."""

    def ask(self, code: str, key: str) -> ChatState:
        """Return the state with the question."""
        return self.model_copy(update={"asked": {**self.asked, code: key}})

    def settle(self, *keys: str) -> ChatState:
        """Return the state without the questions; their codes count as used."""
        gone = tuple(code for code, key in self.asked.items() if key in keys)
        left = {code: key for code, key in self.asked.items() if code not in gone}
        return self.model_copy(update={"asked": left, "used": (*self.used, *gone)[-_KEPT:]})

    def see(self, reply: str) -> ChatState:
        """Return the state after the reply."""
        return self.model_copy(update={"seen": (*self.seen, reply)[-_KEPT:]})


class ChatStore:
    """The state in a file in the state folder of the user, which no view of an agent shows.

    Without a folder nothing is kept beyond the process. An unreadable file counts as none: all open
    questions are asked again, with new codes.
    """

    def __init__(self, folder: Path | None, *, project: Path, channel: str) -> None:
        place = hashlib.sha256(f"{channel} {project.resolve()}".encode()).hexdigest()[:16]
        self._path = folder / "chat" / f"{place}.json" if folder is not None else None

    def load(self) -> ChatState:
        """Return the kept state."""
        if self._path is not None:
            with suppress(OSError, ValueError):
                return ChatState.model_validate_json(read_regular(self._path))
        return ChatState()

    def save(self, state: ChatState) -> None:
        """Keep the state; the file stays as it was if that fails, as on a full disk."""
        if self._path is not None:
            with suppress(OSError):
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_atomic(self._path, state.model_dump_json() + "\n", private=True)


def new_code() -> str:
    """Return a code that nobody guesses, without characters that look like others."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
