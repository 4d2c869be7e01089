"""The workspaces that a server shows, and the URLs of its pages."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from cuggino.files import from_home
from cuggino.report import stylesheet
from cuggino.storage import Workspace
from cuggino.web.fragment import slug
from cuggino.web.names import question_name, run_name

_STATIC: Mapping[str, bytes] = MappingProxyType(
    {file.name: file.read_bytes() for file in files("cuggino.web").joinpath("static").iterdir()}
    | {"report.css": stylesheet().encode()}
)
"""The files of `static/` by name, read before the package can be replaced under a server."""

OVERVIEW = "o"
"""The channel of the overview."""


@dataclass(frozen=True, slots=True)
class Place:
    """One workspace."""

    key: str
    """Its name in URLs."""
    folder: Path
    name: str
    workspace: Workspace

    @property
    def shown(self) -> str:
        """Return the folder as the user writes it."""
        return from_home(self.folder)


class Site:
    """The workspaces of a server, and the URLs of its pages, all below a secret path."""

    def __init__(self, base: str, folders: Iterable[Path]) -> None:
        self.base = base
        """The secret path, without a slash at its end."""
        self.places = tuple(_places(folders))
        self.poke: Callable[[], None] = lambda: None
        """Look for changes now rather than at the next poll; may be called on any thread."""

    def place(self, key: str) -> Place | None:
        return next((place for place in self.places if place.key == key), None)

    def url(self, *parts: str) -> str:
        """Return the URL of a page; without parts, of the overview."""
        return f"{self.base}/" + "/".join(quote(part, safe="") for part in parts)

    def run(self, place: Place, run_id: str, title: str = "", *parts: str) -> str:
        """Return the URL of a run's page, or of a part of it."""
        return self.url("p", place.key, "runs", run_name(run_id, title), *parts)

    def question(self, place: Place, filename: str, title: str) -> str:
        """Return the URL of a spec issue or finding."""
        return self.url("p", place.key, "questions", question_name(filename, title))

    def static(self, name: str) -> str:
        """Return the URL of a file in `static/`, which changes with its content."""
        return f"{self.base}/static/{digest_of(name)}/{name}"

    def channel(self, place: Place, run_id: str) -> str:
        return f"r.{place.key}.{run_id}"


def static_file(name: str) -> bytes:
    """Return a file of `static/`.

    Raises:
        OSError: there is none of this name.
    """
    if "/" in name or name.startswith("."):
        raise FileNotFoundError(name)
    if name not in _STATIC:
        raise FileNotFoundError(name)
    return _STATIC[name]


@functools.cache
def digest_of(name: str) -> str:
    """Return the digest of a file of `static/`."""
    return hashlib.sha256(static_file(name)).hexdigest()[:16]


def _places(folders: Iterable[Path]) -> Iterable[Place]:
    used: set[str] = set()
    for folder in dict.fromkeys(path.resolve() for path in folders):
        name = folder.name or str(folder)
        wanted = slug(name)
        numbered = (f"{wanted}-{number}" for number in range(2, len(used) + 3))
        key = next(key for key in (wanted, *numbered) if key not in used)
        used.add(key)
        yield Place(key=key, folder=folder, name=name, workspace=Workspace(folder))
