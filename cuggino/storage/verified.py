"""The file of what is verified, for the loop and the server of its agent (AUT-270)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cuggino.domain.deliverables import Verification
from cuggino.errors import StorageError
from cuggino.storage.atomic import storing, write_atomic
from cuggino.storage.status_json import parse_json, render_json


class VerifiedFile:
    """A small JSON file with the ids that are to be verified, and those that are.

    The loop makes it when the session has ended that compares deliverables and specification; the
    server marks what the agents of the next sessions verify.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def start(self, ids: Iterable[str]) -> Verification:
        """Begin anew: these are to be verified, and none is. The folder is made.

        Raises:
            StorageError: it cannot be written.
        """
        verification = Verification(all=tuple(ids))
        with storing("write verified deliverables", self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self.write(verification)
        return verification

    def read(self) -> Verification | None:
        """What was written last; None without a file.

        Raises:
            StorageError: it cannot be read, or holds something else.
        """
        operation = "read verified deliverables"
        try:
            with storing(operation, self.path):
                raw = parse_json(self.path.read_bytes())
            ids, verified = _ids(raw["all"]), _ids(raw["verified"])
        except (ValueError, TypeError, KeyError) as error:
            raise StorageError(operation, f"{self.path} does not hold what is verified") from error
        except StorageError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise
        return Verification(all=ids, verified=frozenset(verified))

    def write(self, verification: Verification) -> None:
        """Put it in the file's place. Only who holds the lock of the store may do so."""
        done = [item for item in verification.all if item in verification.verified]
        with storing("write verified deliverables", self.path):
            write_atomic(self.path, render_json({"all": verification.all, "verified": done}))


def _ids(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("no list of texts")
    return tuple(value)
