"""The real Codex CLI for tests: installed once, run with nothing of this machine's own.

It speaks to a `tests.model_responses.ResponsesServer` only: no account, no network, no model.
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
from cuggino.agents.codex import CodexAgent
from cuggino.errors import CugginoError
from cuggino.events import (
    Event,
    LlmAgentEvent,
    PingEvent,
    SessionEnded,
    SystemMessage,
    UsageUpdate,
)
from cuggino.security.policy import Policy
from cuggino.security.roles import role_policy
from cuggino.sources import process_lines
from cuggino.testing import no_leaks
from tests.model_responses import ResponsesServer
from tests.model_script import (
    ApiError,
    Block,
    Drop,
    Hang,
    Message,
    ModelRequest,
    Reply,
    Script,
    Text,
    Tool,
)

VERSION = "0.169.0"
PACKAGE = f"@openai/codex@{VERSION}"
CACHE = Path(__file__).resolve().parent.parent / ".cache" / "agents"
_INSTALL_TIMEOUT = 600

MODEL = "gpt-5.5"
"""A model that Codex knows: for others it has no `apply_patch`."""

CODE_MODEL = "gpt-6-sol"
"""A model that writes JavaScript, from which it calls the tools."""

E = TypeVar("E", bound=LlmAgentEvent)
Turn: TypeAlias = Block | Sequence[Block] | Reply | Callable[[ModelRequest], Block]
"""What the model does in one turn, or what makes that of what it was told."""

SPEC = "There is a file.\n"
"""The specification of the project."""


def install_codex(cache: Path = CACHE) -> Path:
    """The path of npm's `codex` launcher; installs it on the first call (about 400 MB).

    Safe to call from several processes at once: one installs, into a folder that is moved to its
    place when it is complete.

    Raises:
        FileNotFoundError: npm is not there.
        RuntimeError: the installation failed; the message ends with what npm said.
    """
    place = cache / f"codex-{VERSION}"
    if found := _program(place):
        return found
    npm = shutil.which("npm")
    if npm is None:
        raise FileNotFoundError("npm is needed to install the Codex CLI")
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / f"codex-{VERSION}.lock", timeout=_INSTALL_TIMEOUT):
        if found := _program(place):
            return found
        with tempfile.TemporaryDirectory(dir=cache, prefix=".installing-") as folder:
            prefix = Path(folder) / "package"
            _npm_install(npm, prefix)
            shutil.rmtree(place, ignore_errors=True)
            prefix.rename(place)
        program = _program(place)
        assert program is not None
    return program


def _program(place: Path) -> Path | None:
    launcher = place / "node_modules" / "@openai" / "codex" / "bin" / "codex.js"
    return launcher if launcher.exists() else None


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


@pytest.fixture(scope="session")
def codex_cli() -> Path:
    """The program; skips where it cannot be installed, but fails on CI, where it must be there."""
    try:
        return install_codex()
    except (FileNotFoundError, RuntimeError, subprocess.SubprocessError) as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"the real agent must be tested on CI: {error}")
        pytest.skip(str(error))


def clean_env(home: Path, base_url: str, *, retries: int = 0) -> dict[str, str]:
    """The whole environment of a run: `home` is its own, `base_url` is the only place it calls.

    The folder for temporary files is not above that of Codex, which would not sandbox then.
    """
    folders = {"HOME": home, "CODEX_HOME": home / ".codex", "TMPDIR": home / "tmp"}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    config = home / ".codex" / "config.toml"
    given = config.read_text() if config.exists() else ""
    # What a test has written stays, and counts.
    if "[model_providers.mock]" not in given:
        own = f'model_provider = "mock"\n{given}\n[model_providers.mock]\nname = "mock"\n'
        own += f'env_key = "MOCK_KEY"\nwire_api = "responses"\nbase_url = "{base_url}"\n'
        config.write_text(f"{own}request_max_retries = {retries}\nstream_max_retries = {retries}\n")
    else:
        kept = [line for line in given.splitlines() if not line.startswith("base_url")]
        at = kept.index("[model_providers.mock]") + 1
        config.write_text("\n".join([*kept[:at], f'base_url = "{base_url}"', *kept[at:]]) + "\n")
    return {
        **{name: str(folder) for name, folder in folders.items()},
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "MOCK_KEY": "dummy-not-a-key",
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
        unseen = PingEvent | UsageUpdate | SystemMessage
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
class Codex:
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

    def configure(self, text: str) -> None:
        """What the user has configured, to be called before the first session."""
        config = self.home / ".codex" / "config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(text)

    def agent(self, base_url: str, env: Mapping[str, str] | None = None) -> CodexAgent:
        return CodexAgent(path=self.program, env={**clean_env(self.home, base_url), **(env or {})})

    def options(self, **options: Any) -> SpawnOptions:
        given = {
            "prompt": "Go.",
            "cwd": self.project,
            "dangerously_skip_permissions": True,
            "model": MODEL,
        }
        return SpawnOptions(**{**given, **options})

    def run(
        self,
        *turns: Turn,
        env: Mapping[str, str] | None = None,
        script: Script | None = None,
        **options: Any,
    ) -> Outcome:
        """A session in which the model does these things, and then ends."""
        events: list[LlmAgentEvent] = []
        error: CugginoError | None = None
        with ResponsesServer(script or _turns(turns)) as server:
            agent = self.agent(server.url, env)

            def keep(event: Event) -> None:
                assert isinstance(event, LlmAgentEvent)
                events.append(event)

            try:
                cuggino.run(agent.spawn(self.options(**options)), keep)
            except CugginoError as failure:
                error = failure
            return Outcome(events, error, server.requests)


def _turns(turns: Sequence[Turn]) -> Script:
    def reply(request: ModelRequest) -> Reply:
        if request.turns >= len(turns):
            return Message([Text("<DONE>done</DONE>")])
        turn = turns[request.turns]
        if isinstance(turn, Message | ApiError | Drop | Hang):
            return turn
        made = turn(request) if callable(turn) else turn
        return Message(list(made) if isinstance(made, Sequence) else [made])

    return reply


def bash(command: str, **more: Any) -> Tool:
    """A call of the shell."""
    return Tool("exec_command", {"cmd": command, **more})


def patch(*lines: str) -> Tool:
    """A call that changes files."""
    text = "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
    return Tool("apply_patch", {"input": text + "\n"})


def create(path: str, *lines: str) -> Tool:
    """A call that makes a file of these lines."""
    return patch(f"*** Add File: {path}", *(f"+{line}" for line in lines))


@pytest.fixture
def codex(codex_cli: Path, tmp_path: Path) -> Iterator[Codex]:
    """The program, which leaves no process, thread or open file behind."""
    project = tmp_path / "project"
    (project / ".specs").mkdir(parents=True)
    (project / ".specs" / "task.md").write_text(SPEC)
    (project / "app.py").write_text("old = 1\n")
    cuggino.run(process_lines(["true"]))  # the guardian stays, and keeps a pipe
    with no_leaks():
        yield Codex(codex_cli, project, tmp_path / "home")
