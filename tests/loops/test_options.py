"""The options of each loop, and the services and the guard's policy for their sessions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from reactivex import operators as ops

import cuggino
from cuggino import Config, Runtime, events as ev, run
from cuggino.agents.base import Capabilities, Role, SpawnOptions
from cuggino.config import BacklogSource
from cuggino.errors import ConfigError
from cuggino.events import CheckCannotFail, CheckDoesNotDecide, Event
from cuggino.guard.policy import Policy
from cuggino.loops import (
    DeliverRunOptions,
    LoopRunOptions,
    PlanBuildOptions,
    Services,
    WatchRunOptions,
)
from cuggino.operators import marker_tags
from cuggino.sandbox import Boundary, Engine, boundary
from cuggino.stages import choose_sandbox
from cuggino.storage import Origins, Workspace
from cuggino.testing import AgentRun, InMemoryAgent, VirtualRuntime

UNUSED: list[tuple[type[Any], dict[str, Any], str]] = [
    (DeliverRunOptions, {"check_command": "false"}, "the deliver loop has no option check_command"),
    (
        DeliverRunOptions,
        {"push": "o/x", "gate": "block"},
        "the deliver loop has no option push, gate",
    ),
    (DeliverRunOptions, {"linger": 1.0}, "the deliver loop has no option linger"),
    (PlanBuildOptions, {"max_iterations": 3}, "the plan/build loop has no option max_iterations"),
    (PlanBuildOptions, {"review_patience": 3}, "the plan/build loop has no option review_patience"),
    (LoopRunOptions, {"focus": "x", "verify": True}, "the coding loop has no option verify"),
    (LoopRunOptions, {"focus": "x", "audit": True}, "the coding loop has no option audit"),
    (WatchRunOptions, {"focus": "x"}, "the watch has no option focus"),
]


UNDECIDED = CheckDoesNotDecide(command="make")
ALWAYS = CheckCannotFail(command="true", why="`true` always succeeds")
SLOTS = {"slots": 2, "commit": True}

NOTICES: list[tuple[type[Any], dict[str, Any], list[Event]]] = [
    (LoopRunOptions, {"focus": "x"}, []),
    (LoopRunOptions, {"focus": "x", "check_command": "make"}, [UNDECIDED]),
    (LoopRunOptions, {"focus": "x", "check_command": "make", "slot": 1}, []),
    (LoopRunOptions, {"focus": "x", "check_command": "make", "gate": "block"}, []),
    (LoopRunOptions, {"focus": "x", "check_command": "make", "gate": "clean"}, []),
    (LoopRunOptions, {"focus": "x", "check_command": "true", "gate": "block"}, [ALWAYS]),
    (WatchRunOptions, {"check_command": "make"}, [UNDECIDED]),
    (WatchRunOptions, {"check_command": "make", **SLOTS}, []),
    (WatchRunOptions, {"check_command": "true", **SLOTS}, [ALWAYS]),
    (DeliverRunOptions, {}, []),
    (PlanBuildOptions, {"verify_build": "make", "verify_test": "true"}, [ALWAYS]),
    (PlanBuildOptions, {"verify_build": "true", "verify_test": "true"}, [ALWAYS]),
]
"""What each process of a run reports about its check commands."""


@pytest.mark.parametrize(("model", "given", "events"), NOTICES)
def test_notices(
    model: type[Any], given: dict[str, Any], events: list[Event], tmp_path: Path
) -> None:
    assert events == list(model(cwd=tmp_path, **given).notices())


@pytest.mark.parametrize(("model", "given", "message"), UNUSED)
def test_an_option_of_another_loop(
    model: type[Any], given: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """An option of another loop is an error that names both."""
    with pytest.raises(ConfigError) as caught:
        model(cwd=tmp_path, **given)
    remove = "them" if len(given.keys() - {"focus"}) > 1 else "it"
    assert f"{message}: remove {remove} from {model.__name__}" == str(caught.value)


def test_shared_keys_of_the_configuration(tmp_path: Path) -> None:
    """Keys of other loops in the configuration are no error."""
    (tmp_path / ".cuggino.json").write_text(
        '{"checkCommand": "false", "gate": "block", "commit": true, "budget": 5, "audit": true,'
        ' "progressPatience": 4, "commandTimeout": 60}'
    )
    runtime = Runtime.live(cwd=tmp_path, agent="claude")
    assert isinstance(runtime.config, Config)
    deliver, plan_build = runtime.deliver_options(), runtime.plan_build_options()
    coding = runtime.loop_options(focus="the page")
    assert [5, 5, 5] == [options.budget for options in (deliver, plan_build, coding)]
    assert (4, 60, "block") == (deliver.progress_patience, plan_build.command_timeout, coding.gate)


def test_a_given_option_of_another_loop(tmp_path: Path) -> None:
    """An option of another loop is a configuration error in the runtime."""
    runtime = Runtime.live(cwd=tmp_path, config=Config(), agent="claude")
    with pytest.raises(ConfigError) as caught:
        runtime.deliver_options(check_command="false")
    message = "the deliver loop has no option check_command: remove it from DeliverRunOptions"
    assert message == caught.value.message


def test_variables_are_not_journaled(tmp_path: Path) -> None:
    """They may hold secrets, and each process of a run gives its own."""
    options = LoopRunOptions(focus="a", cwd=tmp_path, env={"TOKEN": "secret"})
    assert "secret" not in options.model_dump_json()
    assert {"TOKEN": "secret"} == dict(dict(options)["env"])


# -- the services of a project without version control


def test_without_a_repository(tmp_path: Path) -> None:
    """The run has no starting commit, and none is made or pushed."""
    services = Services(agent=InMemoryAgent({}), workspace=Workspace(tmp_path))
    repository = services.repository
    assert [None] == run(repository.head().pipe(ops.to_list()))
    assert [] == run(repository.commit("work").pipe(ops.to_list()))
    assert [] == run(repository.push("origin", "main").pipe(ops.to_list()))
    assert [] == list(tmp_path.iterdir())


# -- the guard's policy for sessions of the loops


@dataclass(slots=True)
class Guarded(InMemoryAgent):
    """An agent with a guard."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(guard="calls")

    def check_guard(self, policy: Policy) -> None:
        """Accept any policy."""


def says(marker: type[ev.LlmMarkerEvent]) -> AgentRun:
    (tag,) = marker_tags(marker)
    text = ev.AgentMessage(text=f"<{tag}>x</{tag}>", message_id=tag)
    return AgentRun([text], plan="# Plan" if marker is ev.PlanComplete else None)


def sessions(
    folder: Path, agent: type[InMemoryAgent] = Guarded, **config: Any
) -> dict[str, SpawnOptions]:
    """Return the options of the sessions of an approved run, by role."""
    (folder / ".specs").mkdir(exist_ok=True)
    (folder / ".specs" / "a.md").write_text("# A\n")
    runs: dict[Role, list[AgentRun]] = {
        "planning": [says(ev.PlanComplete)],
        "implementing": [says(ev.Done)],
        "reviewing": [says(ev.Approved)],
    }
    doubled: Any = agent(runs)
    runtime = Runtime.live(cwd=folder, agent=doubled, config=Config(journal=False, **config))
    cuggino.run(runtime.run(focus="x"), lambda _event: None)
    return {str(options.role): options for options in doubled.spawned}


def test_each_role_has_its_policy(tmp_path: Path) -> None:
    """The planner may write its plan, the reviewer its review, the implementer no specification."""
    started = sessions(tmp_path)
    guards = {role: options.guard for role, options in started.items()}
    planning, implementing, reviewing = guards.values()
    assert planning and implementing and reviewing
    assert {"roles"} == {guard.level for guard in guards.values() if guard}
    plan, review = (
        Path(started[role].env[f"CUGGINO_{name}_FILE"]).relative_to(tmp_path)
        for role, name in (("planning", "PLAN"), ("reviewing", "REVIEW"))
    )
    assert ((), (str(plan),)) == (planning.writable, planning.granted)
    assert ((), (str(review),)) == (reviewing.writable, reviewing.granted)
    assert (None, (".specs",)) == (implementing.writable, implementing.read_only)


def test_the_settings_reach_the_policy(tmp_path: Path) -> None:
    """`guard: "full"`, profiles, programs and process names are those of the configuration."""
    started = sessions(
        tmp_path,
        guard="full",
        profile="python",
        allow_commands=["make"],
        allow_pkill_targets=["celery"],
        allow_destructive=True,
    )
    guard = started["implementing"].guard
    assert guard
    assert ("full", ("python",), ("make",)) == (guard.level, guard.profiles, guard.extra_commands)
    assert (("celery",), True) == (guard.pkill_targets, guard.allow_destructive)


@pytest.mark.parametrize(("agent", "guard"), [(Guarded, "off"), (InMemoryAgent, "roles")])
def test_without_the_guard(tmp_path: Path, agent: type[InMemoryAgent], guard: str) -> None:
    """With the guard off, or for an agent without guard support, sessions have no policy."""
    started = sessions(tmp_path, agent, guard=guard)
    assert {None} == {options.guard for options in started.values()}
    assert 3 == len(started)
    assert {None} == {options.sandbox for options in started.values()}


def test_each_role_has_its_sandbox(tmp_path: Path) -> None:
    """The guard brings a sandbox that protects the specifications and can be turned off."""
    for role, options in sessions(tmp_path, sandbox_domains=["*.example.com"]).items():
        assert options.sandbox is not None, role
        assert "*.example.com" in options.sandbox.domains
        assert str(tmp_path.resolve() / ".specs") in options.sandbox.deny_write
    assert {None} == {options.sandbox for options in sessions(tmp_path, sandbox=False).values()}


@dataclass(slots=True)
class Viewed(Guarded):
    """An agent that can be started in a view."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(guard="calls", view=True)


@pytest.mark.parametrize(
    ("engine", "domains", "expected"),
    [
        ("bubblewrap", [], []),
        ("bubblewrap", ["*.example.com"], ["planning", "implementing", "reviewing"]),
        ("landlock", [], ["implementing"]),
    ],
)
def test_the_agents_own_sandbox_is_for_what_no_view_holds(
    engine: Engine,
    domains: list[str],
    expected: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Around single commands of a confined session, it would keep git from working."""
    monkeypatch.setattr(boundary, "_probed", lambda *_: Boundary(engine=engine))
    started = sessions(tmp_path, Viewed, sandbox_domains=domains)
    assert ["planning", "implementing", "reviewing"] == [*started]
    assert all(options.view is not None for options in started.values())
    assert expected == [role for role, one in started.items() if one.sandbox is not None]


@pytest.mark.parametrize(
    ("engine", "agent", "expected"),
    [
        ("bubblewrap", Viewed, ["planning", "implementing", "reviewing"]),
        ("landlock", Viewed, ["planning", "reviewing"]),
        ("none", Viewed, []),
        ("bubblewrap", Guarded, []),
    ],
)
def test_the_guard_leaves_paths_to_a_view_that_holds(
    engine: Engine,
    agent: type[InMemoryAgent],
    expected: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It judges the paths of writes for every other role, and with the sandbox turned off."""
    monkeypatch.setattr(boundary, "_probed", lambda *_: Boundary(engine=engine))

    def confined(**config: Any) -> list[str]:
        guards = {role: one.guard for role, one in sessions(tmp_path, agent, **config).items()}
        return [role for role, guard in guards.items() if guard and guard.confined]

    assert expected == confined()
    assert [] == confined(sandbox=False)


@pytest.mark.parametrize(
    ("origin", "limited"), [(None, False), ({"network": False}, True), ({"network": True}, False)]
)
def test_imported_items_keep_the_agents_own_sandbox(
    origin: dict[str, Any] | None, limited: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It alone limits the hosts that commands connect to, if their source does not open them."""
    monkeypatch.setattr(boundary, "_probed", lambda *_: Boundary(engine="bubblewrap"))
    agent = Viewed({"planning": [says(ev.SpecIssue)]})
    project = VirtualRuntime(tmp_path, agent, config=Config(journal=False), files={".specs/a": "A"})
    workspace = Workspace(project.folder)
    workspace.open()
    (workspace.backlog / "s-00001.md").write_text("# Task\n")
    if origin is not None:
        Origins(workspace).change("s-00001.md", source="s", id="1", **origin)
    project.watch(until="1m")
    (options,) = agent.spawned
    assert (options.sandbox is not None) is limited


def test_a_watch_that_imports_says_whose_network_is_not_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, with what confines its agents; not if its sources open the network."""
    monkeypatch.setattr(boundary, "_probed", lambda *_: Boundary(engine="bubblewrap"))

    def reason(*, network: bool) -> str:
        source = BacklogSource(type="command", command="true", network=network)
        config = Config(journal=False, backlog_sources=[source])
        options = Runtime.live(cwd=tmp_path, agent=Viewed({}), config=config).watch_options()
        chosen = choose_sandbox(options, Viewed({}), options.roles)
        assert chosen is not None
        return chosen.reason

    assert reason(network=False) == (
        "nothing limits the network of memory for imported items: memory has no sandbox"
    )
    assert reason(network=True) == ""
