"""Real agent programs under test: installed once, run in a clean environment.

They reach only a scripted model on loopback (`tests.model_server`): no account, no network, no
model, none of this machine's configuration.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias, TypeVar

import pytest
from filelock import FileLock
from typing_extensions import override

import cuggino
from cuggino import events as ev
from cuggino.agents import LlmAgent, SpawnOptions
from cuggino.agents.base.calls import Orders
from cuggino.agents.base.guard import make_guard
from cuggino.agents.base.program import ProgramAgent
from cuggino.errors import CugginoError
from cuggino.guard.policy import Policy
from cuggino.guard.roles import role_policy
from cuggino.processes import process_lines
from cuggino.testing import Call, CannotPlay, Delegate, Edit, Read, Run, Write, no_leaks
from cuggino.testing.conformance.acts import FailKind
from cuggino.testing.conformance.arena import GuardFault
from tests.limits import LIMIT
from tests.model_script import (
    ApiError,
    Block,
    ModelRequest,
    Script,
    Text,
    Tool,
    asks_helper,
    in_words,
    overloaded,
    rate_limited,
    server_error,
    spoken,
)
from tests.model_server import ModelServer

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "agents"
INSTALL_TIMEOUT = 600

SPEC = "There is a file.\n"
"""The specification of the project."""

NOBODY = "http://127.0.0.1:9"
"""An address without a server."""

LATER = 3600.0
"""The `Retry-After` of a busy service in seconds: too long to wait."""

SLOW_HOOK = 10
"""Seconds after which a hook counts as failed in a test of a slow one, which waits for three.

The hook of the session's first call has to answer within them, also on a busy machine.
"""

E = TypeVar("E", bound=ev.LlmAgentEvent)

ToolAct: TypeAlias = Run | Write | Edit | Read | Call | Delegate
"""An act that is a tool call."""


def trusting() -> dict[str, str]:
    """Return the variable by which the commands of a test's project need no `cuggino trust`."""
    name = "CUGGINO_CONFIG"
    return {name: os.environ[name]} if name in os.environ else {}


def clean(home: Path, /, **more: str | Path) -> dict[str, str]:
    """Return an environment with this home folder, and `more`; nothing else is this machine's.

    The folders among `more` are created, as is the home folder.
    """
    for folder in (home, *more.values()):
        if isinstance(folder, Path):
            folder.mkdir(parents=True, exist_ok=True)
    path = os.environ.get("PATH", os.defpath)
    usual = {**trusting(), "HOME": str(home), "PATH": path, "LANG": "C.UTF-8"}
    return {**usual, **{name: str(value) for name, value in more.items()}}


def install(
    name: str,
    package: str,
    program: str,
    cache: Path = CACHE,
    unpack: Callable[[Path], None] = lambda _program: None,
) -> Path:
    """Return the path of the program, installing npm's `package` on the first call.

    `name` is the folder's, with the version; `program` is the pattern of the program's path below
    `node_modules`. `unpack` is called with a newly installed program. Several processes may call
    this at once: one installs, into a folder that is moved into place when complete.

    Raises:
        FileNotFoundError: npm is missing.
        RuntimeError: the installation failed; the message ends with npm's.
    """

    def find(folder: Path) -> Path | None:
        return next(iter(sorted((folder / "node_modules").glob(program))), None)

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
        found = find(place)
        assert found is not None
        unpack(found)
    return found


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
    """Return the program; skip where it cannot be installed, but fail on CI."""
    try:
        return installed()
    except (ImportError, FileNotFoundError, RuntimeError, subprocess.SubprocessError) as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"the real agent must be tested on CI: {error}")
        pytest.skip(str(error))


@dataclass
class Outcome:
    """One session."""

    events: list[ev.LlmAgentEvent]
    error: CugginoError | None
    requests: list[ModelRequest]
    unseen: tuple[type[ev.Event], ...]

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def tags(self) -> list[str]:
        """Return the tags of all events except the `unseen`."""
        return [event.tag for event in self.events if not isinstance(event, self.unseen)]

    @property
    def ended(self) -> ev.SessionEnded:
        assert isinstance(self.events[-1], ev.SessionEnded)
        return self.events[-1]

    @property
    def conversation(self) -> str:
        """Return the conversation until the last message of the model."""
        return self.requests[-1].messages_text


def tools_of(*tools: tuple[Any, ...]) -> Mapping[type[ToolAct], tuple[Any, ...]]:
    """Return the `tools` of a program from those for commands, new files, changes and reading."""
    return dict(zip((Run, Write, Edit, Read), tools, strict=True))


@dataclass
class RealProgram(ABC):
    """The program with its own project and home folder."""

    program: Path
    project: Path
    home: Path
    cli: ClassVar[str]
    """The fixture that returns the program."""
    makes: ClassVar[type[Any]]
    """The class of its agent."""
    tools: ClassVar[Mapping[type[ToolAct], tuple[Any, ...]]]
    """The name of the tool for each act, its other arguments, and the names of the act's."""
    calls: ClassVar[str] = "mcp__{}__{}"
    """The name of a server's tool; empty if the program has none."""
    delegate: ClassVar[Tool | None] = None
    """The call that starts a subagent; None if the program starts none."""
    server: ClassVar[type[ModelServer]] = ModelServer
    prints_events: ClassVar[bool] = True
    """Whether the program prints its events."""
    usual: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Options of every session."""
    unseen: ClassVar[tuple[type[ev.Event], ...]] = (
        *(ev.PingEvent, ev.MessageDelta, ev.UsageUpdate, ev.SystemMessage),
    )
    """Events left out of the `tags` of an outcome."""
    helped: ClassVar[Block] = Text("helped")
    """The last message of a subagent."""
    no_login: ClassVar[Mapping[str, str] | None] = None
    """Variables that remove the program's credentials; None if none do."""
    limit_lasts: ClassVar[float | None] = None
    """Seconds until `failure("usage_limit")` resets; None if that is not reported."""
    cut_after: ClassVar[int] = 6
    """Events of a message that are sent before it is cut."""
    other_model: ClassVar[str | None] = None
    unknown_session: ClassVar[str] = "0199aaaa-0000-4000-8000-00000000ffff"
    harmless_tools: ClassVar[frozenset[str]] = frozenset()

    @property
    def agent_name(self) -> str:
        """Return the agent's name in settings."""
        return self.cli.removesuffix("_cli")

    @abstractmethod
    def env(self, base_url: str, retries: int) -> dict[str, str]:
        """Return the whole environment of a run with the model at this address."""

    def agent(
        self, base_url: str, env: Mapping[str, str] | None = None, *, retries: int = 0
    ) -> LlmAgent:
        """Return the agent that runs the program, with the model at that address."""
        whole = {**self.env(base_url, retries), **(env or {})}
        agent: LlmAgent = self.makes(path=self.program, env=whole)
        return agent

    @classmethod
    def tool(cls, act: ToolAct, **more: Any) -> Tool:
        """Return the model's tool call for the act, with `more` arguments.

        Raises:
            CannotPlay: the program has no such tool.
        """
        match act:
            case Call(server, tool, given) if cls.calls:
                return Tool(cls.calls.format(server, tool), given)
            case Delegate() if cls.delegate is not None:
                return cls.delegate
            case Call() | Delegate():
                raise CannotPlay("the program has no such tool")
            case _:
                name, usual, *names = cls.tools[type(act)]
                given = dict(zip(names, astuple(act), strict=True))
                return Tool(name, {**given, **usual, **more})

    @classmethod
    def bash(cls, command: str, **more: Any) -> Tool:
        """Return a call of the shell."""
        return cls.tool(Run(command), **more)

    @classmethod
    def create(cls, path: str, text: str) -> Tool:
        """Return a call that creates a file."""
        return cls.tool(Write(path, text))

    def is_helper(self, request: ModelRequest) -> bool:
        """Return whether the conversation is a subagent's."""
        return asks_helper(request)

    def failure(self, kind: FailKind) -> ApiError:
        """Return the service's response for this failure; `usage_limit` and `too_long` differ."""
        later = {"retry-after": f"{LATER:g}"}
        match kind:
            case "bad_request":
                return ApiError(400, "invalid_request_error", "The request is bad.")
            case "bad_key":
                return ApiError(401, "authentication_error", "The key is not valid.")
            case "rate_limit":
                return rate_limited(LATER)
            case "overload":
                return replace(overloaded(), headers=later)
            case "server_error":
                return replace(server_error(), headers=later)
            case _:
                raise CannotPlay(f"the model server has no {kind} for this program")

    def hostile_settings(self) -> Sequence[Mapping[str, str]]:
        """See `PlayArena`."""
        return ()

    def rewriting_hook(self, command: str) -> None:
        """See `PlayArena`."""
        raise CannotPlay("users cannot add hooks to the program")

    def guard_faults(self, when: GuardFault) -> Sequence[str]:
        """See `PlayArena`."""
        return ()

    def break_guard(
        self, when: GuardFault, fault: str
    ) -> AbstractContextManager[Callable[[], None]]:
        """See `PlayArena`."""
        raise CannotPlay("the guard cannot be broken")

    def serve(self, script: Script) -> ModelServer:
        """Return a server for the model that follows the script."""
        return self.server(script)

    def script(self, turns: Sequence[Any], helper: Sequence[Any]) -> Script:
        """Return a model that plays these turns, and `helper` for its subagent."""
        return spoken(turns, helper, is_helper=self.is_helper, helped=self.helped)

    def translated(self, script: Script) -> Script:
        """Return a script for Claude Code with the tool calls of this program."""

        def translated(block: Block) -> Block:
            match block:
                case Tool("Bash", given):
                    return self.tool(Run(given["command"]))
                case Tool("Write", given):
                    return self.tool(Write(given["file_path"], str(given["content"])))
                case _:
                    return block

        return in_words(script, translated)

    def policy(self, role: Any = "implementing", level: Any = "roles", **more: Any) -> Policy:
        return role_policy(role, project=self.project, level=level, **more)

    def path(self, name: str) -> str:
        return str(self.project / name)

    def read(self, name: str) -> str | None:
        """Return the text of the file, None when it does not exist."""
        file = self.project / name
        return file.read_text() if file.exists() else None

    def write(self, name: str, text: str) -> None:
        """Write a file of the project."""
        write_file(self.project / name, text)

    def options(self, **options: Any) -> SpawnOptions:
        given = {"prompt": "Go.", "cwd": self.project, "dangerously_skip_permissions": True}
        return SpawnOptions(**{**given, **self.usual, **options})

    def run(
        self,
        *turns: Any,
        helper: Sequence[Any] = (),
        env: Mapping[str, str] | None = None,
        script: Script | None = None,
        retries: int = 0,
        on_event: Callable[[ev.LlmAgentEvent], object] = lambda _event: None,
        **options: Any,
    ) -> Outcome:
        """Run a session in which the model plays these turns; `helper` is for its subagent."""
        events: list[ev.LlmAgentEvent] = []
        error: CugginoError | None = None
        with self.serve(script or self.script(turns, helper)) as server:
            agent = with_known_version(self.agent(server.url, env, retries=retries))

            def keep(event: ev.Event) -> None:
                assert isinstance(event, ev.LlmAgentEvent)
                events.append(event)
                on_event(event)

            try:
                cuggino.run(agent.spawn(self.options(**options)), keep)
            except CugginoError as failure:
                error = failure
            return Outcome(events, error, server.requests, self.unseen)


R = TypeVar("R", bound=RealProgram)


@contextmanager
def in_a_project(kind: type[R], program: Path, folder: Path) -> Iterator[R]:
    """Provide the program in a project with a specification; nothing may be left behind."""
    project = folder / "project"
    write_file(project / ".specs" / "task.md", SPEC)
    write_file(project / "app.py", "old = 1\n")
    with nothing_leaks():
        yield kind(program, project, folder / "home")


@contextmanager
def nothing_leaks() -> Iterator[None]:
    """Assert that the block leaves no process, thread or open file."""
    cuggino.run(process_lines(["true"]))  # the guardian process stays and keeps a pipe open
    with no_leaks(within=LIMIT):
        yield


_VERSIONS: dict[tuple[type[ProgramAgent], str], str] = {}


def with_known_version(agent: LlmAgent) -> LlmAgent:
    """Return the agent, whose program is asked for its version once in this process."""
    if isinstance(agent, ProgramAgent) and Path(agent.program).exists():
        key = type(agent), agent.program
        if key not in _VERSIONS:
            _VERSIONS[key] = agent.check()
        agent._version = _VERSIONS[key]
    return agent


class JudgedHere(RealProgram):
    """A program whose calls are judged in this process; `judging` is the module of its agent."""

    judging: ClassVar[str]

    @override
    def guard_faults(self, when: GuardFault) -> Sequence[str]:
        return {"at the start": ("no parser",), "later": ("raises",), "unasked": ()}[when]

    @override
    @contextmanager
    def break_guard(self, when: GuardFault, fault: str) -> Iterator[Callable[[], None]]:
        verdict = Orders.verdict
        broken: list[bool] = []

        def failing(*given: Any, **named: Any) -> Any:
            if broken:
                raise OSError("no more files")
            return verdict(*given, **named)

        with pytest.MonkeyPatch.context() as patch:
            if fault == "no parser":
                made = lambda *given: replace(make_guard(*given), shfmt="/bin/false")  # noqa: E731
                patch.setattr(f"{self.judging}.make_guard", made)
            else:
                patch.setattr(Orders, "verdict", failing)
            yield lambda: broken.append(True)


def write_file(file: Path, text: str) -> None:
    """Write a file and create its folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
