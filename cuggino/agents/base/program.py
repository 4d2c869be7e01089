"""Agents that are programs installed on this machine: found, checked, started, given a terminal."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from reactivex import Observable, defer

from cuggino.agents.base.agent import InteractiveOptions, LlmAgent, SpawnOptions
from cuggino.agents.base.enclosing import enclosure_of
from cuggino.agents.base.login import Login, LoginCheck
from cuggino.agents.base.private_files import Session
from cuggino.agents.base.reader import LineReader
from cuggino.agents.base.stream import stream_json
from cuggino.errors import AgentFailed, AgentNotFound, AgentTooOld, GuardNotLive, ProcessError
from cuggino.events import LlmAgentEvent
from cuggino.operators import acquire_release
from cuggino.processes import run_bounded, run_in_terminal
from cuggino.sandbox import Enclosure, home_of, without_logins

_VERSION_TIMEOUT = 60.0
"""Seconds for `--version`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How the program of one session is started, and how its lines are read."""

    argv: Sequence[str]
    env: Mapping[str, str]
    """Its whole environment."""
    stdin: str
    """Its input."""
    reader: Callable[..., LineReader]
    """Creates the reader of its lines; see `session` of `stream_json`."""
    cwd: Path | None = None
    """The folder in which it starts, by default that of the session."""
    messages: Observable[str] | None = None
    """A person's messages, if it takes them; then the reader is a `Listener`."""


class ProgramAgent(LlmAgent):
    """An agent that is an installed program.

    A subclass is data about the program, and `launch`, which turns the options of a session into
    its command line, environment and reader. Finding, checking, confining, starting and stopping it
    are common to all. A program that does not print lines has its own `_start`.

    Args:
        path: The program. A bare name is looked up on PATH; any other path is relative to the
            current working directory.
        env: The whole environment of the program, by default that of this process.
    """

    command: str
    """Name of the program on PATH."""
    package: ClassVar[str] = ""
    """npm package that installs it."""
    minimum_version: tuple[int, ...]
    """Oldest version that was tested."""
    update_hint: str = "update it"
    version_pattern: ClassVar[str] = r"^(\d+\.\d+\.\d+)"
    """Pattern of the output of `--version`, with the version as its first group."""
    mismatch: ClassVar[str] = "--version names no version"
    """The error for a program whose output does not match."""
    variables: Mapping[str, str] = MappingProxyType({})
    """Variables that every run of the program gets."""
    state: tuple[str, ...] = ()
    """Folders that it writes, relative to the home folder."""
    rewritten: ClassVar[tuple[str, ...]] = ()
    """Files in the home folder that it replaces, and does without."""
    settings: tuple[str, ...] = ()
    """Files and folders in its first state folder that decide what later sessions run."""
    unguarded_terminal: ClassVar[str] = ""
    """The reason why interactive sessions cannot be guarded, or ""."""
    login: ClassVar[Login | None] = None
    """How it reports its login, if it does."""

    def __init__(
        self, *, path: str | os.PathLike[str] | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        self._env = env
        self._path = _absolute(path or self.command)
        self._version: str | None = None

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment of the program, without `SpawnOptions.env`."""
        return dict(os.environ) if self._env is None else self._env

    @property
    def environments(self) -> tuple[Mapping[str, str], ...]:
        return (self.environment,)

    @property
    def program(self) -> str:
        """The program to start."""
        return self._path

    def check(self) -> str:
        """Return the version of the installed program, which is asked once."""
        if self._version is None:
            self._version = self._ask_version()
        return self._version

    def login_check(self, cwd: Path) -> LoginCheck | None:
        if self.login is None:
            return None
        try:
            program = self._find_program()
            return self.login.check(program, cwd, {**self.environment, **self.variables})
        except (AgentNotFound, OSError):
            return None

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Run one session; see `LlmAgent.spawn` and the class."""

        def start(stack: ExitStack) -> Observable[LlmAgentEvent]:
            self.check()
            return self._start(options, stack)

        return acquire_release(
            Session,
            lambda stack: defer(lambda _: start(stack)),
            lambda stack: stack.close(),
        )

    def interactive(self, options: InteractiveOptions) -> int:
        """Run a session in the terminal and return the program's exit code.

        Raises:
            GuardNotLive: the guard does not work, or the program has none for the terminal.
        """
        self.check()
        if options.guard is not None and self.unguarded_terminal:
            raise GuardNotLive(self.unguarded_terminal, hint='use claude, or set "guard": "off"')
        with Session() as stack:
            argv, env = self._terminal(options, stack)
            env = without_logins({**env, "CUGGINO_ROLE": "pm"}, options.shows)
            enclosure = self.enclosure(options, env, stack)
            return run_in_terminal(argv, cwd=options.cwd, env=env, enclosure=enclosure)

    def launch(self, options: SpawnOptions, stack: ExitStack) -> Launch:
        """Return how a session is started; private files of the session belong to the stack."""
        raise NotImplementedError

    def _start(self, options: SpawnOptions, stack: ExitStack) -> Observable[LlmAgentEvent]:
        """Return a session's stream; the stack is closed when the session is over."""
        launch = self.launch(options, stack)
        return stream_json(
            launch.argv,
            program=self.name,
            cwd=launch.cwd or options.cwd,
            env=launch.env,
            stdin=launch.stdin,
            session=launch.reader,
            messages=launch.messages,
            drafts=options.drafts,
            enclosure=self.enclosure(options, launch.env, stack),
        )

    def _terminal(
        self, options: InteractiveOptions, stack: ExitStack
    ) -> tuple[list[str], Mapping[str, str]]:
        """Return the command line and environment of an interactive session."""
        raise AgentFailed(
            f"{self.name} has no interactive session",
            reason="bad_request",
            hint="name another agent, for example `--agent claude`",
        )

    def state_folders(self, env: Mapping[str, str]) -> list[Path]:
        """Return the folders that the program writes in this environment."""
        home = home_of(env)
        return [home / name for name in self.state] if home is not None else []

    def enclosure(
        self, options: SpawnOptions | InteractiveOptions, env: Mapping[str, str], stack: ExitStack
    ) -> Enclosure | None:
        """Return the enclosure of a session; call it when all private files are written."""
        if options.view is None:
            return None
        home, state = home_of(env), self.state_folders(env)
        return enclosure_of(
            options.view,
            env=env,
            stack=stack,
            programs=[self._find_program()],
            state=state,
            rewritten=[home / name for name in self.rewritten] if home is not None else [],
            settings=[state[0] / name for name in self.settings] if state else [],
        )

    @property
    def _install_hint(self) -> str:
        how = f"install it with `npm install -g {self.package}`, or " if self.package else ""
        return f'{how}give its path as "agentPath" in .cuggino.json'

    def _find_program(self) -> str:
        """Return where the program is.

        Raises:
            AgentNotFound: it is not on PATH.
        """
        program = shutil.which(self._path, path=self.environment.get("PATH"))
        if program is None:
            message = f"the agent program {self._path} was not found"
            raise AgentNotFound(message, hint=self._install_hint)
        return program

    def _ask_version(self) -> str:
        program = self._find_program()
        try:
            said = run_bounded(
                (program, "--version"),
                seconds=_VERSION_TIMEOUT,
                env={**self.environment, **self.variables},
            ).checked(program)
        except ProcessError as error:
            message = f"{program} --version failed: {error}"
            raise AgentNotFound(message, hint=self._install_hint) from error
        found = re.search(self.version_pattern, said.text)
        if found is None:
            raise AgentNotFound(f"{program} {self.mismatch}", hint=self._install_hint)
        least = self.minimum_version
        check_version(found[1], name=self.command, least=least, hint=self.update_hint)
        return found[1]


def check_version(version: str, *, name: str, least: tuple[int, ...], hint: str) -> None:
    """Check that the version is not older than `least`.

    Raises:
        AgentTooOld: it is older.
    """
    if version_numbers(version) < least:
        raise AgentTooOld(
            f"{name} {version} is too old, at least {'.'.join(map(str, least))} is needed",
            hint=hint,
        )


def version_numbers(version: str) -> tuple[int, ...]:
    """Return the first three numbers of a version, for comparison."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def encodable(text: str) -> str:
    """Replace lone surrogates, which come from a command line that is not UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _absolute(path: str | os.PathLike[str]) -> str:
    """Resolve a relative path now, as sessions run in other folders; keep a bare name."""
    name = os.fspath(path)
    return str(Path.cwd() / name) if os.sep in name else name
