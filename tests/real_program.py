"""What the real agent CLIs of tests share: installed once, with nothing of this machine's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, TypeVar

import pytest
from filelock import FileLock

import cuggino
from cuggino.agents import LlmAgent, SpawnOptions
from cuggino.errors import CugginoError
from cuggino.events import (
    Event,
    LlmAgentEvent,
    MessageDelta,
    PingEvent,
    SessionEnded,
    SystemMessage,
    UsageUpdate,
)
from cuggino.security.policy import Policy
from cuggino.security.roles import role_policy
from cuggino.sources import process_lines
from cuggino.testing import no_leaks
from tests.model_script import ModelRequest, Script, spoken

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "agents"
INSTALL_TIMEOUT = 600

SPEC = "There is a file.\n"
"""The specification of the project."""

E = TypeVar("E", bound=LlmAgentEvent)


def install(
    name: str,
    package: str,
    find: Callable[[Path], Path | None],
    *,
    cache: Path = CACHE,
    unpack: Callable[[Path], None] = lambda _program: None,
) -> Path:
    """The path of the program, which `find` sees in a folder; npm's `package` on the first call.

    `name` is that of the folder, with the version. `unpack` is called with what was installed.
    Safe to call from several processes at once: one installs, into a folder that is moved to its
    place when it is complete.

    Raises:
        FileNotFoundError: npm is not there.
        RuntimeError: the installation failed; the message ends with what npm said.
    """
    place = cache / name
    if found := find(place):
        return found
    npm = shutil.which("npm")
    if npm is None:
        raise FileNotFoundError(f"npm is needed to install {package}")
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / f"{name}.lock", timeout=INSTALL_TIMEOUT):
        if found := find(place):
            return found
        with tempfile.TemporaryDirectory(dir=cache, prefix=".installing-") as folder:
            prefix = Path(folder) / "package"
            _npm_install(npm, package, prefix, find)
            shutil.rmtree(place, ignore_errors=True)
            prefix.rename(place)
        program = find(place)
        assert program is not None
        unpack(program)
    return program


def _npm_install(npm: str, package: str, prefix: Path, find: Callable[[Path], Path | None]) -> None:
    prefix.mkdir()
    done = subprocess.run(
        [npm, "install", "--no-fund", "--no-audit", "--prefix", str(prefix), package],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=INSTALL_TIMEOUT,
        check=False,
    )
    if done.returncode != 0 or find(prefix) is None:
        raise RuntimeError(f"npm could not install {package}: {done.stderr.strip()[-2000:]}")


def required(installed: Callable[[], Path]) -> Path:
    """The program; skips where it cannot be installed, but fails on CI, where it must be there."""
    try:
        return installed()
    except (ImportError, FileNotFoundError, RuntimeError, subprocess.SubprocessError) as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"the real agent must be tested on CI: {error}")
        pytest.skip(str(error))


@dataclass
class Outcome:
    """One session."""

    events: list[LlmAgentEvent]
    error: CugginoError | None
    requests: list[ModelRequest]
    unseen: tuple[type[Event], ...]

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def tags(self) -> list[str]:
        """Without signs of life, counts of tokens, and what the program says of itself."""
        return [event.tag for event in self.events if not isinstance(event, self.unseen)]

    @property
    def ended(self) -> SessionEnded:
        assert isinstance(self.events[-1], SessionEnded)
        return self.events[-1]

    @property
    def told(self) -> str:
        """All that the model was told until its last message."""
        return self.requests[-1].messages_text


class Server(Protocol):
    """A scripted model on loopback."""

    @property
    def url(self) -> str: ...

    @property
    def requests(self) -> list[ModelRequest]: ...


@dataclass
class RealProgram(ABC):
    """The program in a project and a home of its own."""

    program: Path
    project: Path
    home: Path
    usual: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Options of every session."""
    unseen: ClassVar[tuple[type[Event], ...]] = (
        *(PingEvent, MessageDelta, UsageUpdate, SystemMessage),
    )
    """Events that are no `tags` of an outcome."""

    @abstractmethod
    def agent(self, base_url: str, env: Mapping[str, str] | None = None) -> LlmAgent:
        """The agent that runs the program, with the model at that address."""

    @abstractmethod
    def serve(self, script: Script) -> AbstractContextManager[Server]:
        """The model that follows the script."""

    def script(self, turns: Sequence[Any], helper: Sequence[Any]) -> Script:
        """What the model says in these turns, and to its sub-agent; a turn may be made when due."""
        return spoken(turns, helper)

    def policy(self, role: Any = "implementing", level: Any = "roles") -> Policy:
        return role_policy(role, project=self.project, level=level)

    def path(self, name: str) -> str:
        return str(self.project / name)

    def read(self, name: str) -> str | None:
        """What is in the file, None when it is not there."""
        file = self.project / name
        return file.read_text() if file.exists() else None

    def options(self, **options: Any) -> SpawnOptions:
        given = {"prompt": "Go.", "cwd": self.project, "dangerously_skip_permissions": True}
        return SpawnOptions(**{**given, **self.usual, **options})

    def run(
        self,
        *turns: Any,
        helper: Sequence[Any] = (),
        env: Mapping[str, str] | None = None,
        script: Script | None = None,
        **options: Any,
    ) -> Outcome:
        """A session in which the model says these things, and then ends; its sub-agent `helper`."""
        events: list[LlmAgentEvent] = []
        error: CugginoError | None = None
        with self.serve(script or self.script(turns, helper)) as server:
            agent = self.agent(server.url, env)

            def keep(event: Event) -> None:
                assert isinstance(event, LlmAgentEvent)
                events.append(event)

            try:
                cuggino.run(agent.spawn(self.options(**options)), keep)
            except CugginoError as failure:
                error = failure
            return Outcome(events, error, server.requests, self.unseen)


R = TypeVar("R", bound=RealProgram)


@contextmanager
def in_a_project(kind: type[R], program: Path, folder: Path) -> Iterator[R]:
    """The program, which leaves no process, thread or open file behind."""
    project = folder / "project"
    (project / ".specs").mkdir(parents=True)
    (project / ".specs" / "task.md").write_text(SPEC)
    (project / "app.py").write_text("old = 1\n")
    cuggino.run(process_lines(["true"]))  # the guardian stays, and keeps a pipe
    with no_leaks():
        yield kind(program, project, folder / "home")
