"""Fixtures for pytest, available wherever cuggino is installed.

- `marbles`: makes `Marbles`; at the end of the test their streams must have no subscribers
- `cuggino_runtime`: makes a `VirtualRuntime` in a project below `tmp_path`
- `cuggino_agent`: makes an `InMemoryAgent`
- `cuggino_scripted`: makes a `ScriptedAgent` from the text of a scenario, or from its file
- `cuggino_clock`: the `VirtualClock` of the runtimes of a test
- `cuggino_no_leaks`: the test must leave no process, thread or open file behind; for whole files
  use `pytestmark = pytest.mark.usefixtures("cuggino_no_leaks")`, for a whole project the option
  `cuggino_no_leaks = true`, from which `@pytest.mark.cuggino_may_leak` exempts a test

Nothing of cuggino is imported before one of them is used. `-p no:cuggino` disables the plugin.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from cuggino.agents.base import LlmAgent, Role
    from cuggino.config import Config
    from cuggino.testing import (
        CommandResult,
        InMemoryAgent,
        Marbles,
        Played,
        ScriptedAgent,
        VirtualClock,
        VirtualRuntime,
    )

_OPTION = "cuggino_no_leaks"
_EXEMPT = "cuggino_may_leak"


class MakeMarbles(Protocol):
    """The type of the fixture `marbles`."""

    def __call__(
        self,
        *,
        error: Exception | None = None,
        clock: VirtualClock | None = None,
        **events: Any,
    ) -> Marbles:
        """Make `Marbles` with its own options."""


class MakeRuntime(Protocol):
    """The type of the fixture `cuggino_runtime`."""

    def __call__(
        self,
        agent: LlmAgent | Mapping[Role, Iterable[Played]],
        *,
        config: Config | None = None,
        files: Mapping[str, str] | None = None,
        commands: Mapping[str, CommandResult | Sequence[CommandResult]] | None = None,
        git: bool = False,
        folder: str = "project",
    ) -> VirtualRuntime:
        """Make a `VirtualRuntime` in `folder` below `tmp_path`, on the clock of the test."""


class MakeAgent(Protocol):
    """The type of the fixture `cuggino_agent`."""

    def __call__(
        self, runs: Mapping[Role, Iterable[Played]] | None = None, **options: Any
    ) -> InMemoryAgent:
        """Make an `InMemoryAgent` with these sessions, by role."""


MakeScripted = Callable[[str | Path], "ScriptedAgent"]
"""The type of the fixture `cuggino_scripted`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option of the configuration file."""
    words = "every test must leave no process, thread or open file behind"
    parser.addini(_OPTION, words, type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, and register the check for every test if the option asks for it."""
    words = f"{_EXEMPT}(reason): the test is exempt from the option {_OPTION}"
    config.addinivalue_line("markers", words)
    if config.getini(_OPTION):
        config.pluginmanager.register(_Everywhere(), "cuggino-everywhere")


class _Everywhere:
    """The leak check for every test, registered only on request."""

    @pytest.fixture(autouse=True)
    def _cuggino_no_leaks_everywhere(self, request: pytest.FixtureRequest) -> None:
        if request.node.get_closest_marker(_EXEMPT) is None:
            request.getfixturevalue("cuggino_no_leaks")


@pytest.fixture
def cuggino_no_leaks() -> Iterator[None]:
    """Assert at the end that the test has left no process, thread or open file behind."""
    from cuggino.testing import no_leaks

    with no_leaks():
        yield


@pytest.fixture
def cuggino_clock() -> VirtualClock:
    """Return the virtual clock of the test, which its runtimes share."""
    from cuggino.testing import VirtualClock

    return VirtualClock()


@pytest.fixture
def marbles() -> Iterator[MakeMarbles]:
    """Make `Marbles`.

    At the end of the test their streams must have no subscribers: an operator that keeps a
    subscription fails the test, with the stream and the time of the subscription.
    """
    from cuggino.testing import Marbles

    made: list[Marbles] = []

    def make(
        *,
        error: Exception | None = None,
        clock: VirtualClock | None = None,
        **events: Any,
    ) -> Marbles:
        made.append(Marbles(error=error, clock=clock, **events))
        return made[-1]

    yield make
    for each in made:
        each.check_released()


@pytest.fixture
def cuggino_agent() -> MakeAgent:
    """Make an `InMemoryAgent` from sessions by role."""
    from cuggino.testing import InMemoryAgent

    def make(runs: Mapping[Role, Iterable[Played]] | None = None, **options: Any) -> InMemoryAgent:
        return InMemoryAgent(runs or {}, **options)

    return make


@pytest.fixture
def cuggino_scripted(tmp_path_factory: pytest.TempPathFactory) -> MakeScripted:
    """Make a `ScriptedAgent` from a scenario: its TOML text, or the path of its file."""
    from cuggino.testing import ScriptedAgent

    def make(scenario: str | Path) -> ScriptedAgent:
        if isinstance(scenario, str):
            file = tmp_path_factory.mktemp("scenario") / "scenario.toml"
            file.write_text(scenario, encoding="utf-8")
            return ScriptedAgent(file)
        return ScriptedAgent(scenario)

    return make


@pytest.fixture
def cuggino_runtime(
    tmp_path: Path, cuggino_clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> MakeRuntime:
    """Make a `VirtualRuntime` in a project of its own, isolated from the machine's git settings."""
    from cuggino.testing import VirtualRuntime

    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))

    def make(
        agent: LlmAgent | Mapping[Role, Iterable[Played]],
        *,
        config: Config | None = None,
        files: Mapping[str, str] | None = None,
        commands: Mapping[str, CommandResult | Sequence[CommandResult]] | None = None,
        git: bool = False,
        folder: str = "project",
    ) -> VirtualRuntime:
        return VirtualRuntime(
            tmp_path / folder,
            agent,
            config=config,
            files=files,
            commands=commands,
            git=git,
            clock=cuggino_clock,
        )

    return make
