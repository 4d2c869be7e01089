"""A folder with a small file for each item of a backlog."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from cuggino.kept_files import KeptFile
from cuggino.storage.moving import inside

Model = TypeVar("Model", bound=BaseModel)


class ItemFiles(Generic[Model]):
    """The files of a folder, which must be no link, by the names of their items.

    Each method raises a `StorageError` for a name that is no plain file name.
    """

    def __init__(self, folder: Path, model: type[Model], what: str, *, hint: str) -> None:
        self._folder = folder
        self._model = model
        self._what = what
        self._hint = hint

    def file(self, item: str) -> KeptFile[Model]:
        path = inside(self._folder, item).with_name(f"{item}.json")
        return KeptFile(path, self._model, self._what, self._hint, in_link=False)

    def change(self, item: str, **fields: Any) -> Model:
        """Write these fields of the item's file, which is made from them if there is none.

        Raises:
            StorageError: it cannot be read or written, and is unchanged.
        """
        return self.file(item).change(**fields)

    def forget(self, item: str) -> None:
        """Remove the item's file.

        Raises:
            StorageError: it cannot be removed.
        """
        self.file(item).remove()
