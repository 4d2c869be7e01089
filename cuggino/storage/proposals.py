"""What was proposed for the items of a workspace: a file per item, written before each step."""

from __future__ import annotations

from cuggino.kept_files import Kept
from cuggino.storage.item_files import ItemFiles
from cuggino.storage.workspace import Workspace


class Proposal(Kept):
    """The branch and the pull request of an item."""

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


class Proposals(ItemFiles[Proposal]):
    """What was proposed for the items of a workspace, by the names of the items."""

    def __init__(self, workspace: Workspace) -> None:
        hint = "remove the file: the item is proposed again"
        super().__init__(workspace.proposals, Proposal, "a proposal", hint=hint)

    def read(self, item: str) -> Proposal:
        """Return what was proposed for the item, an empty proposal for nothing.

        Raises:
            StorageError: its file cannot be used.
        """
        return self.file(item).read() or Proposal()
