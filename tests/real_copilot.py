"""The real GitHub Copilot CLI for tests: installed once, run with nothing of this machine's own.

It speaks to a `tests.model_openai.OpenAiServer` only: no account, no network, no model.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pytest
from filelock import FileLock

import cuggino
from cuggino.agents import SpawnOptions
from cuggino.agents.copilot import CopilotAgent
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
from tests.model_openai import OpenAiServer
from tests.model_script import Block, Message, ModelRequest, Reply, Script, Text, Tool

VERSION = "1.0.102"
PACKAGE = f"@github/copilot@{VERSION}"
CACHE = Path(__file__).resolve().parent.parent / ".cache" / "agents"
_INSTALL_TIMEOUT = 600

E = TypeVar("E", bound=LlmAgentEvent)
Turn: TypeAlias = Block | Sequence[Block] | Callable[[], Block | Sequence[Block]]
"""What the model says in one message, or what makes it when it is asked for."""

SPEC = "There is a file.\n"
"""The specification of the project."""

HELPER = "You are the helper of the test."
"""A prompt with these words is that of a sub-agent."""


def install_copilot(cache: Path = CACHE) -> Path:
    """The path of the `copilot` program; installs it on the first call (about 430 MB).

    Safe to call from several processes at once: one installs, into a folder that is moved to its
    place when it is complete. The program unpacks itself beside it, once for all tests.

    Raises:
        FileNotFoundError: npm is not there.
        RuntimeError: the installation failed; the message ends with what npm said.
    """
    place = cache / f"copilot-{VERSION}"
    if found := _program(place):
        return found
    npm = shutil.which("npm")
    if npm is None:
        raise FileNotFoundError("npm is needed to install the GitHub Copilot CLI")
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / f"copilot-{VERSION}.lock", timeout=_INSTALL_TIMEOUT):
        if found := _program(place):
            return found
        with tempfile.TemporaryDirectory(dir=cache, prefix=".installing-") as folder:
            prefix = Path(folder) / "package"
            _npm_install(npm, prefix)
            shutil.rmtree(place, ignore_errors=True)
            prefix.rename(place)
        program = _program(place)
        assert program is not None
        _unpack(program)
    return program


def _program(place: Path) -> Path | None:
    """The native program: the one for node beside it hides the signals that it is sent."""
    found = sorted((place / "node_modules" / "@github").glob("copilot-*/copilot"))
    return found[0] if found else None


def _npm_install(npm: str, prefix: Path) -> None:
    prefix.mkdir()
    done = subprocess.run(
        [npm, "install", "--no-fund", "--no-audit", "--prefix", str(prefix), PACKAGE],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=_INSTALL_TIMEOUT,
        check=False,
    )
    if done.returncode != 0 or _program(prefix) is None:
        raise RuntimeError(f"npm could not install {PACKAGE}: {done.stderr.strip()[-2000:]}")


def _unpack(program: Path) -> None:
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": home, **_shared()}
        subprocess.run([program, "--version"], env=env, capture_output=True, check=True)


def _shared() -> dict[str, str]:
    return {"COPILOT_PKG_CACHE_HOME": str(CACHE / f"copilot-{VERSION}" / "unpacked")}


@pytest.fixture(scope="session")
def copilot_cli() -> Path:
    """The program; skips where it cannot be installed, but fails on CI, where it must be there."""
    try:
        import copilot  # noqa: F401 - the SDK, which is an extra

        return install_copilot()
    except (ImportError, FileNotFoundError, RuntimeError, subprocess.SubprocessError) as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"the real agent must be tested on CI: {error}")
        pytest.skip(str(error))


def clean_env(home: Path, base_url: str) -> dict[str, str]:
    """The whole environment of a run: `home` is its own, `base_url` is the only place it calls."""
    folders = {"HOME": home, "COPILOT_HOME": home / ".copilot", "TMPDIR": home / "tmp"}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    return {
        **{name: str(folder) for name, folder in folders.items()},
        **_shared(),
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_MODEL": "mock-model",
        "COPILOT_PROVIDER_BASE_URL": base_url,
        "COPILOT_PROVIDER_API_KEY": "dummy-not-a-key",
    }


@dataclass
class Outcome:
    """One session."""

    events: list[LlmAgentEvent]
    error: CugginoError | None
    requests: list[ModelRequest]

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def tags(self) -> list[str]:
        """Without signs of life, counts of tokens, and what the program says of itself."""
        unseen = PingEvent | MessageDelta | UsageUpdate | SystemMessage
        return [event.tag for event in self.events if not isinstance(event, unseen)]

    @property
    def ended(self) -> SessionEnded:
        assert isinstance(self.events[-1], SessionEnded)
        return self.events[-1]

    @property
    def told(self) -> str:
        """All that the model was told until its last message."""
        return self.requests[-1].messages_text


@dataclass
class Copilot:
    """The program in a project and a home of its own."""

    program: Path
    project: Path
    home: Path

    def policy(self, role: Any = "implementing", level: Any = "roles") -> Policy:
        return role_policy(role, project=self.project, level=level)

    def path(self, name: str) -> str:
        return str(self.project / name)

    def read(self, name: str) -> str | None:
        """What is in the file, None when it is not there."""
        file = self.project / name
        return file.read_text() if file.exists() else None

    def agent(self, base_url: str, env: Mapping[str, str] | None = None) -> CopilotAgent:
        return CopilotAgent(
            path=self.program, env={**clean_env(self.home, base_url), **(env or {})}
        )

    def options(self, **options: Any) -> SpawnOptions:
        given = {"prompt": "Go.", "cwd": self.project, "dangerously_skip_permissions": True}
        return SpawnOptions(**{**given, **options})

    def run(
        self,
        *turns: Turn,
        helper: Sequence[Turn] = (),
        env: Mapping[str, str] | None = None,
        script: Script | None = None,
        **options: Any,
    ) -> Outcome:
        """A session in which the model says these things, and then ends; its sub-agent `helper`."""
        events: list[LlmAgentEvent] = []
        error: CugginoError | None = None
        with OpenAiServer(script or _turns(turns, helper)) as server:
            agent = self.agent(server.url, env)

            def keep(event: Event) -> None:
                assert isinstance(event, LlmAgentEvent)
                events.append(event)

            try:
                cuggino.run(agent.spawn(self.options(**options)), keep)
            except CugginoError as failure:
                error = failure
            return Outcome(events, error, server.requests)


def _turns(main: Sequence[Turn], helper: Sequence[Turn]) -> Script:
    def reply(request: ModelRequest) -> Reply:
        is_helper = HELPER in str(request.body["messages"][0]["content"])
        turns = helper if is_helper else main
        if request.turns >= len(turns):
            return Message([Text("helped" if is_helper else "<DONE>done</DONE>")])
        turn = turns[request.turns]
        made = turn() if callable(turn) else turn
        return Message(list(made) if isinstance(made, Sequence) else [made])

    return reply


def bash(command: str) -> Tool:
    """A call of the shell."""
    return Tool("bash", {"command": command, "description": "a command"})


def create(path: str, text: str) -> Tool:
    """A call that makes a file."""
    return Tool("create", {"path": path, "file_text": text})


@pytest.fixture
def copilot(copilot_cli: Path, tmp_path: Path) -> Iterator[Copilot]:
    """The program, which leaves no process, thread or open file behind."""
    project = tmp_path / "project"
    (project / ".specs").mkdir(parents=True)
    (project / ".specs" / "task.md").write_text(SPEC)
    (project / "app.py").write_text("old = 1\n")
    cuggino.run(process_lines(["true"]))  # the guardian stays, and keeps a pipe
    with no_leaks():
        yield Copilot(copilot_cli, project, tmp_path / "home")
