"""The assignment of a worker: everything that an attempt needs, as one text."""

from __future__ import annotations

import base64
import os
import stat
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator

from cuggino.config import Config
from cuggino.errors import ConfigError
from cuggino.events import WatchCandidate, WatchSentBack
from cuggino.files import storing
from cuggino.loops import LoopRunOptions
from cuggino.placement.limits import Limit, Window
from cuggino.stages.slots import REFS

MOST_BYTES = 64 << 20
"""Maximum total bytes of the files of an assignment."""


def packed(content: bytes) -> str:
    """Return the content as text."""
    return base64.b85encode(zlib.compress(content)).decode("ascii")


def unpacked(text: str) -> bytes:
    """Return the content of a text.

    Raises:
        ValueError: the text holds none.
    """
    try:
        return zlib.decompress(base64.b85decode(text))
    except zlib.error as error:
        raise ValueError(str(error)) from None


Content: TypeAlias = Annotated[
    bytes,
    PlainSerializer(packed, return_type=str),
    PlainValidator(lambda given: given if isinstance(given, bytes) else unpacked(given)),
]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Carried(_Model):
    """A file that travels."""

    path: str
    """Relative, with `/`."""
    content: Content
    """The content; for a link, its target."""
    mode: int = 0o644
    link: bool = False


class Assignment(_Model):
    """An attempt for another machine."""

    key: str
    """The unique key of this attempt."""
    item: str
    """The name of the item and the digest of its text."""
    slot: int
    number: int
    base: str
    """The commit of the trunk."""
    remote: str
    """The URL of the shared repository."""
    refs: str = REFS
    """The folder of its refs there."""
    within: str = "."
    """The folder of the project in its repository."""
    project: str = "project"
    """The name of its folder."""
    config: dict[str, Any]
    agent: str
    """The agent, as `--agent` names it."""
    options: dict[str, Any]
    env: Mapping[str, str] = Field(default_factory=dict)
    settings: tuple[tuple[str, str], ...] = ()
    """Settings of git that commits depend on."""
    exclude: str = ""
    """The private ignore patterns of the repository."""
    candidate: WatchCandidate | None = None
    sent_back: WatchSentBack | None = None
    files: tuple[Carried, ...] = ()
    """Files of the project: specifications, and files that `.worktreeinclude` names."""
    state: tuple[Carried, ...] = ()
    """Files of the workspace: prompts, and the journal and the session of an unfinished run."""
    limits: tuple[Limit, ...] = ()
    """The usage limits in force."""
    windows: tuple[Window, ...] = ()
    """The known usage windows."""

    @classmethod
    def of(cls, *, config: Config, options: LoopRunOptions, **more: Any) -> Assignment:
        told = options.model_dump(mode="json")
        said = config.model_dump(mode="json")
        return cls(config=said, options=told, env=dict(options.env), **more)

    def configuration(self) -> Config:
        return Config.model_validate(self.config)

    def loop_options(self, cwd: Path) -> LoopRunOptions:
        """Return the options of the loop in a folder of this machine."""
        options = LoopRunOptions.model_validate({**self.options, "cwd": cwd})
        return options.model_copy(update={"env": dict(self.env)})


class Named(NamedTuple):
    """A file to carry, and its place there."""

    source: Path
    path: str


def carry(files: Iterable[Named]) -> tuple[Carried, ...]:
    """Read the files that travel.

    Raises:
        ConfigError: the files are too large.
        StorageError: a file cannot be read.
    """
    found, size = [], 0
    for path, source in {path: source for source, path in files}.items():
        with storing("read", source):
            status = source.lstat()
            if stat.S_ISLNK(status.st_mode):
                leads_to = os.fsencode(source.readlink())
                found.append(Carried(path=path, content=leads_to, link=True))
                continue
            if not stat.S_ISREG(status.st_mode):
                continue
            size += status.st_size
            if size > MOST_BYTES:
                raise ConfigError(
                    f"the files that travel with an attempt take more than {MOST_BYTES >> 20} MiB",
                    hint="commit large ones, or take them out of .worktreeinclude",
                )
            content = source.read_bytes()
        found.append(Carried(path=path, content=content, mode=stat.S_IMODE(status.st_mode)))
    return tuple(found)


def below(folder: Path, place: str) -> Iterable[Named]:
    """Yield all files below a folder, or nothing if it does not exist."""
    for where, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted([*names, *(one for one in folders if Path(where, one).is_symlink())]):
            path = Path(where, name)
            yield Named(path, (PurePosixPath(place) / path.relative_to(folder)).as_posix())


def unpack(files: Iterable[Carried], folder: Path) -> None:
    """Write received files into a folder, replacing existing ones.

    Raises:
        ValueError: a path leads out of the folder, directly or through a link.
        StorageError: a file cannot be written.
    """
    top = folder.resolve()
    for file in files:
        path = PurePosixPath(file.path)
        target = folder / path
        is_within = target.parent.resolve().is_relative_to(top)
        if not is_within or not path.name or path.is_absolute() or ".." in path.parts:
            raise ValueError(f"{file.path} leads out of the folder")
        with storing("write", target):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            if file.link:
                target.symlink_to(os.fsdecode(file.content))
                continue
            target.write_bytes(file.content)
            target.chmod(file.mode)
