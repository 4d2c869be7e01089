"""Small JSON files that cuggino keeps, each with one pydantic model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from cuggino.edited_files import InvalidFile, read_model
from cuggino.errors import StorageError
from cuggino.files import storing, write_atomic

Model = TypeVar("Model", bound=BaseModel)


class Kept(BaseModel):
    """The content of a kept file. Fields of a later version are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, defer_build=True)


@dataclass(frozen=True, slots=True)
class KeptFile(Generic[Model]):
    """A file with one model, which is replaced as a whole."""

    path: Path
    model: type[Model]
    what: str
    """Its name in errors."""
    hint: str = ""
    in_link: bool = True
    """False if its folder must not be a link when it is written."""

    def read(self) -> Model | None:
        """Return the content; None without a file.

        Raises:
            StorageError: it cannot be used; the message names the place in it.
        """
        try:
            return read_model(self.model, self.path)
        except InvalidFile as error:
            why, hint = f"{self.path}: {error}", self.hint or None
            raise StorageError(f"read {self.what}", why, hint=hint) from error

    def readable(self) -> Model | None:
        """Return the content; None if it cannot be used."""
        try:
            return self.read()
        except StorageError:
            return None

    def write(self, value: Model) -> None:
        """Replace the content.

        Raises:
            StorageError: it cannot be written, and is unchanged.
        """
        with storing(f"write {self.what}", self.path):
            if not self.in_link and self.path.parent.is_symlink():
                raise OSError(f"{self.path.parent} is a link")
            write_atomic(self.path, value.model_dump_json(indent=2) + "\n")

    def change(self, **fields: Any) -> Model:
        """Write these fields of the content, unless they have these values; and return it all.

        Raises:
            StorageError: it cannot be read or written, and is unchanged.
        """
        if unknown := fields.keys() - self.model.model_fields.keys():
            raise TypeError(f"{self.what} has no {', '.join(sorted(unknown))}")
        old = self.read()
        known = {} if old is None else old.model_dump()
        new = self.model.model_validate({**known, **fields})
        if new != old:
            self.write(new)
        return new

    def remove(self) -> None:
        """Remove the file, which may be missing.

        Raises:
            StorageError: it cannot be removed.
        """
        with storing(f"remove {self.what}", self.path):
            self.path.unlink(missing_ok=True)
