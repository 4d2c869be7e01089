"""Agents by name, from a project's configuration, and from third parties."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, empty, throw

from cuggino import Runtime
from cuggino.agents import (
    Capabilities,
    DelegatingAgent,
    InteractiveOptions,
    LlmAgent,
    Role,
    RoutedAgent,
    SpawnOptions,
    adopt,
    configured_agent,
    is_guarded,
    make_agent,
)
from cuggino.agents.acp import AcpAgent
from cuggino.agents.choosing.registry import BUILT_IN, agent_entries, agent_names
from cuggino.agents.claude import ClaudeAgent
from cuggino.agents.scripted import ScriptedAgent
from cuggino.config import AcpProgram, Config, save_config
from cuggino.config.file import parse_config
from cuggino.errors import AgentFailed, ConfigError, GuardNotLive
from cuggino.events import LlmAgentEvent
from cuggino.guard.policy import Policy
from cuggino.testing import InMemoryAgent
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


class Spare(InMemoryAgent):
    """An agent selected by import path."""

    def __init__(self, path: str | None = None) -> None:
        super().__init__({}, name="spare")
        self.path = path


SPARE = f"{__name__}:Spare"


def routed(
    raw: Mapping[str, Any], folder: Path, agent: str | LlmAgent | None = None
) -> RoutedAgent:
    made = configured_agent(parse_config(dict(raw)), cwd=folder, agent=agent)
    assert isinstance(made, RoutedAgent)
    return made


def names(agent: RoutedAgent, role: Role) -> list[str]:
    return [candidate.name for candidate in agent.candidates_for(role)]


def test_a_single_agent_is_not_wrapped(tmp_path: Path) -> None:
    """Without `agents` and `fallback` the agent is not wrapped."""
    assert isinstance(configured_agent(Config(), cwd=tmp_path), ClaudeAgent)
    given = InMemoryAgent({})
    assert given is configured_agent(Config(), cwd=tmp_path, agent=given)


def test_agents_and_fallbacks_of_roles(tmp_path: Path) -> None:
    """A role has its own agent and the common fallbacks, unless it has its own fallbacks."""
    agent = routed(
        {
            "agents": {
                "planning": {"model": "opus"},
                "reviewing": SPARE,
                "audit": {"agent": SPARE, "model": "small", "fallback": []},
                "judge": {"agent": SPARE, "fallback": ["claude"]},
            },
            "fallback": [SPARE, "copilot"],
        },
        tmp_path,
    )
    assert ["claude", SPARE, "copilot"] == names(agent, "implementing")
    assert ["claude (opus)", SPARE, "copilot"] == names(agent, "planning")
    assert [SPARE, "copilot"] == names(agent, "reviewing")
    assert [f"{SPARE} (small)"] == names(agent, "audit")
    assert [SPARE, "claude"] == names(agent, "judge")
    usual = agent.candidates_for("coding")
    assert [True, False, False] == [candidate.is_default for candidate in usual]
    assert agent.candidates_for("planning")[0].is_default


def test_agents_are_shared(tmp_path: Path) -> None:
    """An agent named repeatedly is created once and has one usage limit."""
    agent = routed({"agents": {"audit": SPARE, "judge": SPARE}, "fallback": [SPARE]}, tmp_path)
    usual, spare = agent.candidates_for("coding")
    assert (spare,) == agent.candidates_for("audit") == agent.candidates_for("judge")
    other = routed({"agents": {"audit": {"agent": SPARE, "model": "m"}, "judge": SPARE}}, tmp_path)
    audit, judge = (other.candidates_for(role)[0] for role in ("audit", "judge"))
    assert audit is not judge
    assert audit.agent is judge.agent
    assert usual.agent is not spare.agent


def test_a_program_of_its_own(tmp_path: Path) -> None:
    """A path belongs to its agent; `agentPath` belongs to the default one, wherever it is named."""
    agent = routed(
        {
            "agent": SPARE,
            "agentPath": "/usual",
            "agents": {"audit": {"path": "/own"}, "judge": {"model": "m"}, "plan": "claude"},
        },
        tmp_path,
    )
    paths = [
        candidate.agent.path
        for role in ("coding", "audit", "judge")
        if isinstance((candidate := agent.candidates_for(role)[0]).agent, Spare)
    ]
    assert ["/usual", "/own", "/usual"] == paths
    raw = {"agent": SPARE, "agentPath": "/usual", "fallback": [SPARE]}
    _, spare = routed(raw, tmp_path, InMemoryAgent({})).agents_for("coding")
    assert isinstance(spare, Spare)
    assert "/usual" == spare.path


def test_the_option_replaces_the_default_agent(tmp_path: Path) -> None:
    """The command-line option replaces `agent`, not the agents of roles."""
    raw = {"agents": {"planning": "claude", "audit": {"model": "m"}}, "fallback": ["claude"]}
    agent = routed(raw, tmp_path, SPARE)
    assert [SPARE, "claude"] == names(agent, "coding")
    assert ["claude"] == names(agent, "planning")
    assert [f"{SPARE} (m)", "claude"] == names(agent, "audit")
    given = InMemoryAgent({}, name="own")
    assert given is routed(raw, tmp_path, given).candidates_for("coding")[0].agent
    made = routed(raw, tmp_path)
    assert made is configured_agent(parse_config(dict(raw)), cwd=tmp_path, agent=made)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"agents": {"audit": "nobody"}}, '"agents.audit": unknown agent "nobody"'),
        ({"fallback": ["claude", "nobody"]}, '"fallback[1]": unknown agent "nobody"'),
        (
            {"agents": {"audit": {"fallback": ["nobody"]}}},
            '"agents.audit.fallback[0]": unknown agent "nobody"',
        ),
        (
            {"fallback": ["scripted:none.toml"]},
            '"fallback[0]": scenario .*none.toml cannot be read',
        ),
    ],
)
def test_an_invalid_agent(raw: dict[str, Any], message: str, tmp_path: Path) -> None:
    """The error is one sentence with the place in the configuration, and the exit code is 2."""
    pattern = message.replace("[", r"\[")
    with pytest.raises(ConfigError, match=rf"^\.cuggino\.json: {pattern}") as caught:
        Runtime.live(cwd=tmp_path, config=parse_config(raw))
    assert 2 == caught.value.code
    assert "\n" not in caught.value.message


def test_agents_of_a_runtime(tmp_path: Path) -> None:
    """The services of a project share its agents; the journal names the default one."""
    (tmp_path / "a.toml").write_text("")
    live = Runtime.live(
        cwd=tmp_path, config=parse_config({"agent": "scripted:a.toml", "fallback": ["claude"]})
    )
    assert isinstance(live.agent, RoutedAgent)
    first, then = live.agent.agents_for("coding")
    assert (ScriptedAgent, ClaudeAgent) == (type(first), type(then))
    assert "scripted:a.toml" == live.agent_name
    services = (live.watcher, live.deliverer, live.builder)
    assert {id(live.agent)} == {id(service.services.agent) for service in services}


def test_the_path_of_an_agent_is_its_own(tmp_path: Path) -> None:
    """`agentPath` beside `agent` does not apply to another agent named on the command line."""
    config = parse_config({"agent": "claude", "agentPath": "/opt/claude"})
    spare = configured_agent(config, cwd=tmp_path, agent=SPARE)
    assert isinstance(spare, Spare)
    assert spare.path is None
    alone = configured_agent(parse_config({"agentPath": "/opt/it"}), cwd=tmp_path, agent=SPARE)
    assert isinstance(alone, Spare)
    assert "/opt/it" == alone.path


class Least:
    """A minimal agent."""

    name = "least"

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        return empty()


class Guarded(Least):
    """A foreign agent with some optional members."""

    capabilities = Capabilities(guard="calls", sandbox=True)
    environments = ({"KEY": "value"},)
    own_files = (Path("/recording"),)

    def check(self) -> str:
        return "7.1"

    def check_guard(self, policy: Policy) -> None:
        raise GuardNotLive("not today")

    def interactive(self, options: InteractiveOptions) -> int:
        return 3


def test_defaults(tmp_path: Path) -> None:
    """Members that a foreign agent lacks have the defaults of `LlmAgent`."""
    agent = adopt(Least())
    assert ("least", "", Capabilities()) == (agent.name, agent.check(), agent.capabilities)
    assert ((), (), False) == (agent.environments, agent.own_files, agent.is_router)
    assert (agent,) == agent.agents_for("planning")
    assert not is_guarded(agent, "planning")
    assert "least has no sandbox" == agent.sandbox_unavailable()
    agent.check_roles(["planning"], guarded=True)
    agent.restore_cooldowns(())
    with pytest.raises(GuardNotLive, match="least has no guard"):
        agent.check_guard(Policy(project=str(tmp_path)))
    with pytest.raises(AgentFailed, match="least has no interactive session"):
        agent.interactive(InteractiveOptions(cwd=tmp_path))
    errors: list[Exception] = []
    agent.fall_back("planning", ValueError("lost")).subscribe(on_error=errors.append)
    assert ["lost"] == [str(error) for error in errors]


def test_own_members_win(tmp_path: Path) -> None:
    """A foreign agent's own members are used."""
    agent = adopt(Guarded())
    assert is_guarded(agent, "planning")
    assert ("7.1", "") == (agent.check(), agent.sandbox_unavailable())
    assert 3 == agent.interactive(InteractiveOptions(cwd=tmp_path))
    assert (({"KEY": "value"},), (Path("/recording"),)) == (agent.environments, agent.own_files)
    with pytest.raises(GuardNotLive, match="not today"):
        agent.check_guard(Policy(project=str(tmp_path)))


def test_an_agent_is_not_wrapped() -> None:
    """A subclass of `LlmAgent` is returned unchanged."""
    agent = InMemoryAgent({})
    assert adopt(agent) is agent


def test_by_import_path(tmp_path: Path) -> None:
    """The configuration accepts a minimal class."""
    assert "least" == make_agent(f"{__name__}:Least", cwd=tmp_path).name


def test_a_wrapper_delegates(tmp_path: Path) -> None:
    """A wrapper delegates everything that it does not override."""

    class Broken(DelegatingAgent):
        def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
            return throw(AgentFailed("broken", reason="crash"))

    inner: LlmAgent = adopt(Guarded())
    agent = Broken(inner)
    assert ("least", inner.capabilities) == (agent.name, agent.capabilities)
    assert (inner.environments, inner.own_files) == (agent.environments, agent.own_files)
    assert (False, (inner,)) == (agent.is_router, agent.agents_for("planning"))
    assert ("7.1", "") == (agent.check(), agent.sandbox_unavailable())
    assert 3 == agent.interactive(InteractiveOptions(cwd=tmp_path))
    agent.check_roles(["planning"], guarded=True)
    agent.restore_cooldowns(())
    with pytest.raises(GuardNotLive):
        agent.check_guard(Policy(project=str(tmp_path)))
    errors: list[Exception] = []
    agent.fall_back(None, ValueError("lost")).subscribe(on_error=errors.append)
    agent.spawn(SpawnOptions(prompt="Go.", cwd=tmp_path)).subscribe(on_error=errors.append)
    assert ["lost", "broken"] == [str(error) for error in errors]
