"""A project with a trunk, and slots that make candidates for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cuggino import iterate
from cuggino.events import Event, WatchCandidate
from cuggino.stages.slots import TRUNK, Gate, Trunk, candidate_ref
from tests.git_project import GitProject, commit_at, fetch_into, make_once


class Landings:
    """A repository with one commit, its trunk, and a clone that plays all slots."""

    def __init__(self, root: Path, *, files: Mapping[str, str] | None = None) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.slot = root / "slot"
        self.files = {"base.txt": "base\n", **(files or {})}
        make_once((type(self), *self.files.items()), root, self._make)
        self.project = GitProject(root / "project", made=True)

    def _make(self) -> None:
        self.project = GitProject(self.root / "project")
        self.commit("Start", self.files)
        self.git("clone", "--quiet", str(self.project.root), str(self.slot))
        for name, value in (("user.name", "Agent"), ("user.email", "agent@example.org")):
            self.git("config", name, value, cwd=self.slot)

    def git(self, *args: str, cwd: Path | None = None) -> str:
        return self.project.git(*args, cwd=cwd).rstrip("\n")

    def commit(self, message: str, files: Mapping[str, str] | None = None) -> str:
        """Commit as the user does; return the commit."""
        for path, text in (files or {}).items():
            self.project.write(path, text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.head()

    def head(self, name: str = "HEAD") -> str:
        return commit_at(self.project.root / ".git", name) or self.git("rev-parse", name)

    def trunk(self, **options: Any) -> Trunk:
        land_on = options.pop("land_on", "follow")
        given = {"check_command": "test ! -e red", **options}
        return Trunk(Gate(self.project.root, self.root / "gate", **given), land_on=land_on)

    def opened(self, **options: Any) -> Trunk:
        trunk = self.trunk(**options)
        events(trunk.open())
        return trunk

    def candidate(
        self,
        item: str,
        files: Mapping[str, str | None],
        *,
        base: str | None = None,
        attempt: int = 1,
    ) -> WatchCandidate:
        """Commit these files in a slot on top of `base`, by default the trunk."""
        base = base or self.head(TRUNK)
        slot = self.slot
        fetch_into(slot / ".git", self.project.root / ".git")
        self.git("checkout", "--quiet", "--force", "--detach", base, cwd=slot)
        for path, text in files.items():
            place = slot / path
            if text is None:
                place.unlink()
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text, encoding="utf-8")
                if text.startswith("#!"):
                    place.chmod(0o755)
        self.git("add", "--all", cwd=slot)
        # Objects that git packs in the background could not be copied meanwhile.
        words = ("-c", "maintenance.auto=false", "commit", "--quiet", "--allow-empty", "--message")
        self.git(*words, f"Work on {item}", cwd=slot)
        commit = commit_at(slot / ".git", "HEAD")
        assert commit is not None
        fetch_into(self.project.root / ".git", slot / ".git", candidate_ref(item))
        return WatchCandidate(filename=item, slot=1, commit=commit, base=base, attempt=attempt)

    def first_parents(self, name: str = "HEAD") -> list[str]:
        """Return the subjects of the branch, the latest first."""
        return self.git("log", "--first-parent", "--format=%s", name).split("\n")

    def status(self) -> str:
        return self.git("status", "--porcelain", "--untracked-files=all")

    def refs(self, below: str) -> list[str]:
        return self.git("for-each-ref", "--format=%(refname)", below).split()


def events(stream: Any) -> list[Event]:
    """Run the stream and return its events."""
    return list(iterate(stream))


def tags(happened: list[Event]) -> list[str]:
    return [event.tag for event in happened]
