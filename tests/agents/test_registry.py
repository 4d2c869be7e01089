"""Agents by name: built-in ones, installed packages, and import paths."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuggino.agents import LlmAgent, configured_agent, make_agent
from cuggino.agents.acp import AcpAgent
from cuggino.agents.choosing.registry import BUILT_IN, agent_entries, agent_names
from cuggino.config import AcpProgram, Config, save_config
from cuggino.errors import ConfigError
from tests.third_party import AGENT, install

ALL = """\
from theirs import Agent


class Everything(Agent):
    def __init__(self, **given):
        self.given = given


def make(cwd):
    agent = Agent()
    agent.cwd = cwd
    return agent


class Nothing:
    pass


class Refuses(Agent):
    def __init__(self):
        from cuggino.errors import ConfigError

        raise ConfigError("theirs needs a licence", hint="buy one")


class Fails(Agent):
    def __init__(self):
        raise KeyError("licence")
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder for packages on the import path."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def given(agent: LlmAgent, *names: str) -> list[object]:
    """Return the constructor arguments of the agent."""
    return [vars(getattr(agent, "agent", agent))[name] for name in names]


def test_a_package_adds_an_agent(packages: Path) -> None:
    """An entry point of the group is an agent, listed after the built-in ones."""
    install(packages, "theirs", AGENT)
    agent = make_agent("theirs", cwd=packages)
    assert ("theirs", "7.1") == (agent.name, agent.check())
    assert (*BUILT_IN, "theirs") == tuple(entry.name for entry in agent_entries())
    assert "theirs" == agent_entries()[-1].origin
    assert "theirs" == agent_names()[-1]


def test_constructor_arguments(packages: Path) -> None:
    """An agent gets its program and the text after a colon, if it accepts them."""
    install(packages, "theirs", AGENT)
    agent = make_agent("theirs:fast", cwd=packages, path="bin/theirs")
    assert [str(packages / "bin/theirs"), "fast"] == given(agent, "path", "argument")
    agent = make_agent("theirs", cwd=packages, path="theirs")
    assert ["theirs", None] == given(agent, "path", "argument")


def test_factories(packages: Path) -> None:
    """An entry point can be a function, and a class with `**kwargs` gets all arguments."""
    install(packages, "theirs", AGENT)
    points = {"all": "more:Everything", "made": "more:make"}
    install(packages, "more", ALL, agents=points)
    made = make_agent("made", cwd=packages, path="x")
    assert [packages] == given(made, "cwd")
    everything = make_agent("all:words", cwd=packages, path="x")
    expected = {"path": "x", "cwd": packages, "argument": "words"}
    assert [expected] == given(everything, "given")


def test_an_import_path(packages: Path) -> None:
    """A module and class name select an agent without an entry point."""
    install(packages, "theirs", AGENT, agents={"x": "theirs:Agent"})
    agent = make_agent("theirs:Agent", cwd=packages, path="theirs")
    assert ["theirs", None] == given(agent, "path", "argument")


def test_an_entry_point_comes_before_an_import_path(packages: Path) -> None:
    """An ambiguous name selects the installed agent with an argument."""
    install(packages, "theirs", AGENT)
    assert ["Agent"] == given(make_agent("theirs:Agent", cwd=packages), "argument")


def test_built_in_names_are_reserved(packages: Path) -> None:
    """A package cannot replace a built-in agent."""
    install(packages, "theirs", AGENT, agents={"claude": "theirs:Agent"})
    assert "theirs" != make_agent("claude", cwd=packages).name
    assert len(BUILT_IN) == len(agent_entries())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nobody", 'unknown agent "nobody"'),
        ("claude:x", 'the agent "claude:x" cannot be imported'),
        ("no_such_module:Agent", "No module named 'no_such_module'"),
        ("theirs:Nothing", "has no attribute 'Nothing'"),
        ("json:dumps", "cannot be made: TypeError"),
        ("more:Nothing", "makes a Nothing, which is not an agent"),
        ("more:Refuses", "theirs needs a licence"),
        ("more:Fails", "cannot be made: KeyError: 'licence'"),
        ("absent", 'the agent "absent" of broken cannot be loaded: ModuleNotFoundError'),
        ("raises", 'the agent "raises" of broken cannot be loaded: OSError: not today'),
        ("../theirs:Agent", 'unknown agent "../theirs:Agent"'),
        ("", 'unknown agent ""'),
    ],
)
def test_invalid_agents(packages: Path, name: str, words: str) -> None:
    """An unknown name or a broken package is reported in one sentence."""
    install(packages, "theirs", AGENT, agents={"x": "theirs:Agent"})
    install(packages, "more", ALL, agents={"y": "more:make"})
    points = {"absent": "no_such_module:Agent", "raises": "broken:Agent"}
    install(packages, "broken", "raise OSError('not today')\n", agents=points)
    with pytest.raises(ConfigError) as failed:
        make_agent(name, cwd=packages)
    assert words in failed.value.message
    assert "\n" not in failed.value.message


@pytest.mark.parametrize("name", ["claude-sdk", "cuggino.agents.claude_sdk:ClaudeSdkAgent"])
def test_removed_agents(tmp_path: Path, name: str) -> None:
    """A removed agent names its replacement."""
    with pytest.raises(ConfigError) as failed:
        make_agent(name, cwd=tmp_path)
    assert f'the agent "{name}" was removed: use `claude`, the same program' == str(failed.value)
    assert name not in agent_names()


def test_a_package_may_provide_a_removed_agent(packages: Path) -> None:
    """An entry point with the name of a removed agent is used."""
    install(packages, "theirs", AGENT, agents={"claude-sdk": "theirs:Agent"})
    assert "theirs" == make_agent("claude-sdk", cwd=packages).name


def test_modules_of_the_project_are_not_agents(tmp_path: Path) -> None:
    """Modules in the project's folder are never imported."""
    (tmp_path / "evil.py").write_text("open('run', 'w').close()\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="No module named 'evil'"):
        make_agent("evil:Agent", cwd=tmp_path)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", BUILT_IN)
def test_all_programs_expose_their_environment(name: str, tmp_path: Path) -> None:
    """Every agent exposes its program's environment, where recordings look for secrets."""
    assert make_agent(name, cwd=tmp_path).environments


def test_programs_of_the_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known programs are listed if they are installed; a project can name more."""
    (tmp_path / "qwen").write_text("#!/bin/sh\n")
    (tmp_path / "qwen").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "acp:qwen" == agent_entries()[len(BUILT_IN)].name
    assert "acp:kimi" not in [entry.name for entry in agent_entries()]
    assert "acp:qwen" == make_agent("acp:qwen", cwd=tmp_path).name
    with pytest.raises(ConfigError, match='unknown agent "acp:mine"') as caught:
        make_agent("acp:mine", cwd=tmp_path)
    assert "acp:qwen" in str(caught.value.hint)
    program = AcpProgram(command=["bin/mine", "--acp"], mode="ask", asks=True)
    save_config(tmp_path, Config(acp={"mine": program}))
    for agent in (
        make_agent("acp:mine", cwd=tmp_path),
        configured_agent(Config(acp={"mine": program}), cwd=tmp_path, agent="acp:mine"),
    ):
        assert isinstance(agent, AcpAgent)
        assert (str(tmp_path / "bin/mine"), "--acp") == agent.profile.command
        assert ("asked", True) == (agent.capabilities.guard, agent.capabilities.view)
    with pytest.raises(ConfigError, match="comes with cuggino"):
        make_agent("acp:qwen", cwd=tmp_path, acp={"qwen": program})


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        ('{"acp": {"mine": {"command": []}}}', '"acp.mine.command"', "my-agent"),
        ('{"acp": {"mine": {"command": "x"}}}', '"acp.mine.command"', "my-agent"),
        ('{"acp": {"mine": {"command": ["x"], "mod": "a"}}}', '"mod" in "acp.mine"', "mode"),
        ('{"acp": {"a b": {"command": ["x"]}}}', '"a b" in "acp"', "rename"),
        ('{"acp": []}', '"acp"', "my-agent"),
    ],
)
def test_broken_programs(tmp_path: Path, text: str, words: str, hint: str) -> None:
    """A broken definition is named by its place, with what to do."""
    (tmp_path / ".cuggino.json").write_text(text)
    with pytest.raises(ConfigError) as caught:
        make_agent("acp:mine", cwd=tmp_path)
    assert words in caught.value.message
    assert hint in str(caught.value.hint)
