"""A project for attacks, and commands run in the view of a role, as this user or another."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import psutil
import pytest

import cuggino
from cuggino.sandbox import Boundary, Enclosure, RoleView, ViewRole, make_granted, probe, role_view
from tests.git_project import GitProject, make_once
from tests.limits import LIMIT

PACKAGES = [str(Path(module.__file__ or "").parents[1]) for module in (cuggino, psutil)]
"""The folders that hold cuggino and what its sandbox imports."""
OTHER = 1000
"""An ordinary user, as whom root runs some commands."""

_FILES = {
    ".specs/b.md": "spec b, foo\n",
    "src/app.py": 'print("foo 1")\n',
    "src/util.py": "foo = 1\n",
    "README.md": "readme\n",
    "Makefile": "all:\n\ttrue\n",
    "package.json": '{"name": "x", "version": "1.0.0", "scripts": {"test": "true"}}\n',
    "tests/test_a.py": "def test_a():\n    assert True\n",
    "data.json": '{"a": 1}\n',
    "x.sed": "w .specs/a.md\nw src/app.py\n",
    "x.vim": "w! .specs/a.md\nw! src/app.py\nq!\n",
}
_UNTRACKED = {
    ".cuggino/plan.md": "plan\n",
    ".cuggino/review.md": "review\n",
    ".mcp.json": "{}\n",
    ".claude/settings.json": "{}\n",
    ".autonoe/status.json": "{}\n",
    ".cuggino.json": "{}\n",
}
PROTECTED = (
    *(".specs", ".cuggino", ".mcp.json", ".claude", ".autonoe", ".cuggino.json"),
    *(".git/hooks", ".git/config", ".git/info"),
)


@cache
def boundary_here(project: Path, home: Path) -> Boundary:
    return probe(project, home=home)


def needs_bubblewrap(folder: Path) -> Boundary:
    """Return the boundary of this machine; skip the test with the reason where it is another."""
    found = boundary_here(folder, folder)
    if found.engine != "bubblewrap":
        pytest.skip(f"the sandbox cannot be tested here: {found.reason}")
    return found


def needs_visible(path: Path) -> None:
    """Skip the test where the views of roles hide the path, as they do everything in `/tmp`."""
    if any(path.resolve().is_relative_to(folder) for folder in ("/tmp", tempfile.gettempdir())):
        pytest.skip(f"the sandbox hides {path}, a folder for temporary files")


class Arena:
    """A project with a repository, a home folder and the session's own folder."""

    def __init__(self, root: Path) -> None:
        self.project = root / "project"
        self.home = root / "home"
        self.folder = self.project / ".cuggino/wip/session"
        self.state = self.home / ".claude"
        for folder in (self.project, self.state):
            folder.mkdir(parents=True)
        make_once("arena", self.project, self._make)
        self.write(_UNTRACKED)
        self.folder.mkdir(parents=True)

    def _make(self) -> None:
        GitProject(self.project)
        self.write({".specs/a.md": "spec a v1\n", **_FILES})
        self._commit("one")
        self._git("branch", "other")
        self.write({".specs/a.md": "spec a v2\n", "src/app.py": 'print("foo 2")\n'})
        self._commit("two")

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def view(self, role: ViewRole, **given: object) -> RoleView:
        view = role_view(
            role,
            project=self.project,
            home=self.home,
            folder=self.folder,
            **given,  # type: ignore[arg-type]
        )
        make_granted(view)
        return view.with_program(state=[self.state])

    def run(
        self,
        boundary: Boundary,
        role: ViewRole,
        command: str,
        *,
        env: dict[str, str] | None = None,
        **given: object,
    ) -> subprocess.CompletedProcess[str]:
        """Run the command for bash in the view of the role."""
        enclosure = boundary.enclose(self.view(role, **given), scratch=self._scratch(boundary))
        assert enclosure is not None
        return self.run_in(enclosure, command, env=env)

    def run_in(
        self, enclosure: Enclosure, command: str, *, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            enclosure.command(["bash", "-c", command]),
            cwd=self.project,
            env={**os.environ, "HOME": str(self.home), **enclosure.env, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=LIMIT,
            check=False,
        )

    def _scratch(self, boundary: Boundary) -> Path | None:
        if boundary.engine != "landlock":
            return None
        scratch = self.folder / "tmp"
        scratch.mkdir(exist_ok=True)
        return scratch

    def state_of(self, names: Iterable[str]) -> dict[str, str]:
        """Return a digest of every file below these names, with its mode."""
        found: dict[str, str] = {}
        for name in names:
            place = self.project / name
            for path in [place, *sorted(place.rglob("*"))] if place.exists() else []:
                if path == self.folder or path.is_relative_to(self.folder):
                    continue
                shown = path.lstat()
                data = b""
                if path.is_symlink():
                    data = os.fsencode(path.readlink())
                elif stat.S_ISREG(shown.st_mode):
                    data = path.read_bytes()
                key = str(path.relative_to(self.project))
                found[key] = f"{shown.st_mode:o} {hashlib.sha256(data).hexdigest()}"
        return found

    def _git(self, *words: str) -> None:
        env = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
        subprocess.run(["git", *words], cwd=self.project, env=env, check=True, timeout=LIMIT)

    def _commit(self, message: str) -> None:
        self._git("add", "--all")
        self._git("commit", "--quiet", "-m", message)


@cache
def other_user() -> tuple[str, ...]:
    """Return the words that run the system's Python as an ordinary user.

    Skips the test where this process is not root, or the user cannot read this checkout.
    """
    if os.getuid() != 0:
        pytest.skip("only root can run a command as another user")
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    switch = shutil.which("setpriv")
    if python is None or switch is None:
        pytest.skip("setpriv or the system's python3 is missing")
    words = (switch, f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", python)
    code = f"import sys; sys.path[1:1] = {PACKAGES!r}; import cuggino.sandbox.view"
    tried = subprocess.run([*words, "-B", "-c", code], capture_output=True, timeout=LIMIT)
    if tried.returncode != 0:
        pytest.skip(f"user {OTHER} cannot import cuggino: {tried.stderr.decode()[-200:]}")
    return words


_ENCLOSE = """
import json, sys
sys.path[1:1] = json.loads(sys.argv[1])
from pathlib import Path
from cuggino.sandbox import probe, role_view
role, project, home, folder, state = sys.argv[2:]
project, home = Path(project), Path(home)
boundary = probe(project, home=home)
view = role_view(role, project=project, home=home, folder=Path(folder))
enclosure = boundary.enclose(view.with_program(state=[Path(state)]))
print(json.dumps([boundary.engine, boundary.reason, enclosure.words, dict(enclosure.env)]))
"""


def enclosed_as_other(arena: Arena, role: ViewRole) -> Enclosure:
    """Return the enclosure that an ordinary user gets; give the project to that user."""
    user = other_user()
    make_granted(arena.view(role))
    own = arena.project.parent / "state"
    own.mkdir(exist_ok=True)
    for folder in (arena.project.parent, arena.project, arena.home):
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, OTHER, OTHER, follow_symlinks=False)
    for folder in arena.project.parents:
        if folder != Path("/") and not folder.stat().st_mode & stat.S_IXOTH:
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH)  # pytest's own folders
    places = (arena.project, arena.home, arena.folder, arena.state)
    said = subprocess.run(
        [*user, "-B", "-c", _ENCLOSE, json.dumps(PACKAGES), role, *map(str, places)],
        env={**os.environ, "XDG_STATE_HOME": str(own)},
        capture_output=True,
        timeout=LIMIT,
    )
    assert said.returncode == 0, said.stderr.decode()
    engine, reason, words, env = json.loads(said.stdout)
    if engine != "bubblewrap":
        pytest.skip(f"the sandbox cannot be tested as an ordinary user: {reason}")
    return Enclosure(words=(*user[:-1], *words), env=env, reports=True, namespace=True)
