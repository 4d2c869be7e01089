"""What was proposed for the items of a workspace: a file per item, written before each step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from cuggino.errors import StorageError
from cuggino.files import describe, read_regular, storing, write_atomic
from cuggino.storage.moving import inside
from cuggino.storage.workspace import Workspace

_BIGGEST = 1_000_000


class Proposal(BaseModel):
    """The branch and the pull request of an item."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, defer_build=True)

    branch: str = ""
    """Its branch in the remote; empty before it has one."""
    heads: tuple[str, ...] = ()
    """The commits pushed there, or about to be pushed when the process ended; the latest one
    last."""
    number: int | None = None
    """The number of its pull request; None until it is known."""
    ci: tuple[str, ...] = ()
    """The files of the latest head that define CI or git hooks, and differ from the target."""
    answered: tuple[str, ...] = ()
    """The remarks that earlier heads have dealt with, by id."""
    answering: tuple[str, ...] = ()
    """Those that the next head deals with."""


class Proposals:
    """What was proposed for the items of a workspace, by the names of the items."""

    def __init__(self, workspace: Workspace) -> None:
        self._folder = workspace.proposals

    def read(self, item: str) -> Proposal:
        """Return what was proposed for the item, an empty proposal for nothing.

        Raises:
            StorageError: its file cannot be used.
        """
        path = self._path(item)
        try:
            return Proposal.model_validate_json(read_regular(path, biggest=_BIGGEST))
        except FileNotFoundError:
            return Proposal()
        except (OSError, ValueError) as error:
            what = "is not valid" if isinstance(error, ValidationError) else describe(error)
            raise StorageError(
                "read proposal",
                f"{path}: {what}",
                hint="remove the file: the item is proposed anew",
            ) from error

    def change(self, item: str, **fields: Any) -> Proposal:
        """Write these fields of the item's proposal, and return it.

        Raises:
            StorageError: it cannot be read or written, and is unchanged.
        """
        path, old = self._path(item), self.read(item)
        new = Proposal.model_validate({**old.model_dump(), **fields})
        if new != old:
            with storing("write proposal", path):
                if self._folder.is_symlink():
                    raise OSError(f"{self._folder} is a link")
                write_atomic(path, new.model_dump_json(indent=2) + "\n")
        return new

    def forget(self, item: str) -> None:
        """Forget what was proposed for the item.

        Raises:
            StorageError: the file cannot be removed.
        """
        path = self._path(item)
        with storing("remove proposal", path):
            path.unlink(missing_ok=True)

    def _path(self, item: str) -> Path:
        return inside(self._folder, item).with_name(f"{item}.json")
