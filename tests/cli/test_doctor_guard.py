"""`cuggino doctor` on guard and sandbox, and the warnings at a start."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents import LlmAgent, find_bash, make_agent
from cuggino.agents.claude import ClaudeAgent
from cuggino.config import BacklogSource, Config, save_config
from cuggino.doctor import sandbox as doctor
from cuggino.doctor.agent_checks import HONEST, guard
from cuggino.doctor.result import CheckResult, about
from cuggino.errors import ConfigError
from cuggino.guard.shell import shfmt
from cuggino.sandbox import Boundary
from cuggino.testing import InMemoryAgent
from cuggino_cli.main import main
from cuggino_cli.options.supervision import warn_if_loose
from tests.cli.looking import look, look_at_all, place
from tests.cli.test_doctor import fake_claude
from tests.git_project import GitProject
from tests.sandbox.arena import needs_bubblewrap

AGENT = "scripted:scenario.toml"
WARNING = "cuggino: the guard is off: only the sandbox limits what agents may do\n"


def found(folder: Path, name: str = AGENT, **settings: Any) -> CheckResult:
    """Return the only finding about the guard."""
    there = place(folder, **settings)
    finding, *_ = about("guard", lambda: guard(name, there))
    return finding


@pytest.mark.parametrize("level", ["roles", "full"])
def test_the_guard_works(level: str, ready: Path) -> None:
    """With a working parser, shell and trial, both programs and the limits are reported."""
    what = f"guard: {level} ({shfmt.find_shfmt()}, {find_bash(os.environ)})"
    assert CheckResult("ok", what, HONEST) == found(ready, guard=level)


def test_the_guard_is_off(ready: Path) -> None:
    """A guard that is off is noted, with how to turn it on."""
    finding = found(ready, guard="off")
    assert ("note", "guard: off, an agent may do whatever you may") == (
        finding.status,
        finding.what,
    )
    assert finding.hint == 'set "guard" to "roles" in .cuggino.json'


def test_claude_new_enough(ready: Path) -> None:
    """A version that supports failing closed passes; an older one is a problem."""
    path = fake_claude(ready, "2.1.295")
    assert "ok" == found(ready, "claude", agent_path=path).status
    fake_claude(ready, "2.1.294")
    finding = found(ready, "claude", agent_path=path)
    assert "problem" == finding.status
    assert "2.1.294 is too old to be guarded, at least 2.1.295 is needed" in finding.what
    assert '"guard"' in str(finding.hint)


def test_no_parser(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing shfmt is a problem, with how to install it."""

    def missing() -> str:
        raise ConfigError("no shfmt", hint="install it")

    monkeypatch.setattr("cuggino.doctor.agent_checks.find_shfmt", missing)
    expected = ("problem", "guard: no shfmt")
    finding = found(ready)
    assert expected == (finding.status, finding.what)
    assert str(finding.hint).startswith("install it")


def test_an_agent_without_a_guard(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent without guard support is a problem that names it, unless the guard is off."""

    unguarded = InMemoryAgent({}, name="odd")
    monkeypatch.setattr(
        "cuggino.doctor.agent_checks.make_agent", lambda *_args, **_options: unguarded
    )
    finding = found(ready, "odd")
    assert "problem" == finding.status
    assert finding.what.startswith("guard: odd is unguarded")
    assert "note" == found(ready, "odd", guard="off").status


def test_an_agent_that_is_asked(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a sandbox, the weaker guard is noted, and settings that end it are a problem."""
    qwen = ready / "qwen"
    qwen.write_text("#!/bin/sh\necho 0.24.4\n")
    qwen.chmod(0o755)
    finding = found(ready, "acp:qwen", agent_path=str(qwen), sandbox="off")
    assert ("note", "guard: roles, but only for the calls that acp:qwen asks about") == (
        finding.status,
        finding.what,
    )
    (ready / ".qwen").mkdir()
    (ready / ".qwen" / "settings.json").write_text("{}")
    finding = found(ready, "acp:qwen", agent_path=str(qwen), sandbox="off")
    assert "problem" == finding.status
    assert ".qwen can make qwen stop asking" in finding.what
    confined = Boundary(engine="bubblewrap")
    monkeypatch.setattr("cuggino.doctor.sandbox.probe", lambda *_args, **_options: confined)
    assert "ok" == found(ready, "acp:qwen", agent_path=str(qwen)).status


def test_a_run_with_an_agent_that_is_asked(
    ready: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run warns about the weaker guard, unless the system confines its roles."""
    line = "cuggino: acp:qwen decides which calls it asks about"
    save_config(ready, Config(agent="acp:qwen", agent_path="/none/qwen", sandbox="off"))
    main(["run", "--focus", "x"])
    assert 1 == capfd.readouterr().err.count(line)
    confined = Boundary(engine="bubblewrap")
    monkeypatch.setattr(
        "cuggino_cli.options.supervision.probe", lambda *_args, **_options: confined
    )
    config = Config(agent="acp:qwen")
    for roles, expected in ((["implementing"], 0), (["planning"], 0)):
        warn_if_loose(config, make_agent("acp:qwen", cwd=ready), roles=roles)  # type: ignore[arg-type]
        assert expected == capfd.readouterr().err.count(line)
    landlock = Boundary(engine="landlock")
    monkeypatch.setattr(
        "cuggino_cli.options.supervision.probe", lambda *_args, **_options: landlock
    )
    warn_if_loose(config, make_agent("acp:qwen", cwd=ready), roles=["planning", "implementing"])
    assert 1 == capfd.readouterr().err.count(line)


def test_only_with_an_agent(ready: Path) -> None:
    """Without an agent or a configuration, doctor reports nothing about the guard."""
    topics = [finding.what.partition(":")[0] for finding in look_at_all(ready, agent="nobody")]
    assert "agent" in topics
    assert "guard" not in topics


def test_a_run_without_guard_and_sandbox_warns(
    ready: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing limits agents if the sandbox is off, too."""
    save_config(ready, Config(agent=AGENT, guard="off", sandbox="off"))
    main(["run", "--focus", "x"])
    assert "the guard is off: agents may do whatever you may\n" in capfd.readouterr().err


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_unguarded_run_warns(
    options: list[str], ready: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A run with the guard off warns once on standard error and leaves standard output alone."""
    save_config(ready, Config(agent=AGENT, guard="off"))
    main(["run", "--focus", "x", *options])
    said = capfd.readouterr()
    assert 1 == said.err.count(WARNING)
    assert WARNING not in said.out
    if options:
        assert all(json.loads(line)["_tag"] for line in said.out.splitlines())


def test_a_guarded_run_does_not_warn(ready: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A run with the guard on has no such line."""
    main(["run", "--focus", "x"])
    assert "guard" not in capfd.readouterr().err


OPEN = "Warning: the sandbox is off ({}): the system does not keep agents from writing anywhere.\n"
BY_FLAG = OPEN.format("--no-sandbox")
BY_ENV = OPEN.format("AUTONOE_NO_SANDBOX")
DESTRUCTIVE = (
    "Warning: Destructive commands (rm, mv) enabled. Files can be deleted within project directory."
)


def finding_of(folder: Path, here: Boundary, **settings: Any) -> CheckResult:
    """Return the finding about a machine with this boundary."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doctor, "probe", lambda *_args, **_options: here)
        (result,) = about("sandbox", lambda: doctor.roles(place(folder, **settings)))
        return result


def found_of(agent: LlmAgent, folder: Path, here: Boundary, **settings: Any) -> list[str]:
    """Return the findings about an agent on a machine with this boundary, each with its status."""
    there = place(folder, **settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doctor, "probe", lambda *_args, **_options: here)
        patch.setattr(doctor, "make_agent", lambda *_args, **_options: agent)
        results = [*about("sandbox", lambda: doctor.of_agent(agent.name, there))]
    return [f"{result.status} {result.what}" for result in results]


BEST = Boundary(engine="bubblewrap", overlay="loader", program="bwrap")
PLAIN = Boundary(engine="bubblewrap", program="bwrap", reason="no overlay: not permitted")
LANDLOCK = Boundary(engine="landlock", reason="bubblewrap is not installed")
NONE = Boundary(reason="there is no engine for macOS")


@pytest.fixture
def claude_path(ready: Path) -> str:
    return fake_claude(ready, "2.1.329")


@pytest.fixture
def unavailable(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make the sandbox of the agent itself unavailable for a given reason."""
    why = [""]
    monkeypatch.setattr(ClaudeAgent, "sandbox_unavailable", lambda _self: why[0])
    return why


def test_doctor_shows_how_each_role_is_confined(ready: Path) -> None:
    """Every role is named once, with its kind of write access."""
    best = finding_of(ready, BEST)
    assert ("ok", "sandbox: bubblewrap+overlay confines all roles") == (best.status, best.what)
    assert str(best.hint).splitlines() == [
        "planning, reviewing, audit, sync, verify, plan, judge: copy-on-write, so changes vanish",
        "implementing, initializer, coding, build: writes the project, but nothing protected",
        "pm: read-only, but for files of its own",
    ]
    plain = finding_of(ready, PLAIN)
    what = "sandbox: bubblewrap confines all roles (no overlay: not permitted)"
    assert ("ok", what) == (plain.status, plain.what)
    assert "planning, reviewing, audit, pm, sync, verify, plan, judge: read-only" in str(plain.hint)


def test_doctor_shows_what_is_not_confined(ready: Path) -> None:
    """A second choice is a note with its reason; so is none, such as on macOS."""
    some = finding_of(ready, LANDLOCK)
    what = "sandbox: landlock confines only the roles that look (bubblewrap is not installed)"
    assert ("note", what) == (some.status, some.what)
    assert "\nimplementing, initializer, coding, build: verification only" in str(some.hint)
    none = finding_of(ready, NONE)
    what = "sandbox: none here (there is no engine for macOS)"
    assert ("note", what) == (none.status, none.what)
    assert str(none.hint).startswith("all roles: verification only")


@pytest.mark.parametrize("here", [LANDLOCK, NONE])
def test_doctor_finds_a_required_sandbox_missing(ready: Path, here: Boundary) -> None:
    """Doctor reports a problem with a remedy if `require` would refuse to start."""
    problem = finding_of(ready, here, sandbox="require")
    assert "problem" == problem.status
    assert problem.what.endswith(", but it is required: a run would not start")
    assert here.reason in problem.what
    assert '"auto"' in str(problem.hint)
    assert "ok" == finding_of(ready, BEST, sandbox="require").status


def test_doctor_finds_named_paths_that_are_not(ready: Path) -> None:
    """A path that does not exist may be a typing error; without bubblewrap none is hidden."""
    (ready / "keys").mkdir()
    hide = [str(ready / "keys"), str(ready / "kyes"), "~/.no-such-folder"]
    said: dict[str, list[str]] = {}
    for here in (BEST, LANDLOCK):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(doctor, "probe", lambda *_args, here=here, **_options: here)
            results = look("sandboxHide", ready, env={"HOME": str(ready)}, sandbox_hide=hide)
        said[here.name] = [f"{result.status} {result.what}" for result in results]
    missing = [ready / "kyes", ready / ".no-such-folder"]
    assert [f"note sandboxHide: {path} does not exist" for path in missing] == said[BEST.name]
    assert ["note sandboxHide: no effect, as it needs bubblewrap"] == said[LANDLOCK.name]


def test_git_in_a_subfolder_of_a_repository(ready: Path) -> None:
    """The views of a project in a subfolder find the repository around it."""
    needs_bubblewrap(ready)
    git = GitProject(ready.parent)
    git.git("add", "--all")
    git.git("commit", "--quiet", "--message", "start")
    assert ["ok"] == [one.status for one in look("sandbox", ready, check_command="git log")]


def test_doctor_finds_agents_that_cannot_be_confined(ready: Path) -> None:
    """An agent without support for views is noted, and a problem where the sandbox is required."""
    agent = InMemoryAgent({})
    what = f"sandbox: {agent.name} cannot be started in one"
    assert [f"note {what}"] == found_of(agent, ready, BEST)
    required = [f"problem {what}, but it is required"]
    assert required == found_of(agent, ready, BEST, sandbox="require")
    assert [] == found_of(agent, ready, BEST, sandbox="off")


def test_doctor_finds_the_agents_own(ready: Path, claude_path: str, unavailable: list[str]) -> None:
    """The agent's own sandbox counts only without a view, or with an allow-list of hosts."""
    agent = ClaudeAgent(path=claude_path)
    assert [] == found_of(agent, ready, BEST)
    [own] = found_of(agent, ready, LANDLOCK)
    assert own.startswith("ok sandbox: claude brings its own (commands write in the project")
    [more] = found_of(agent, ready, BEST, sandbox_domains=["*.example.com"])
    assert more.endswith("package registries and 1 of yours)")
    unavailable[0] = "socat not installed"
    none = "note sandbox: commands of claude have no other: socat not installed"
    assert [none] == found_of(agent, ready, LANDLOCK)
    assert [] == found_of(agent, ready, LANDLOCK, guard="off")


def test_doctor_finds_agents_with_any_network(
    ready: Path, claude_path: str, unavailable: list[str]
) -> None:
    """Imported items limit the hosts of an agent, if it can and the source does not open them."""
    sources = [BacklogSource(type="command", command="true")]
    [own] = found_of(ClaudeAgent(path=claude_path), ready, BEST, backlog_sources=sources)
    assert own.startswith("ok sandbox: claude brings its own")
    agent = replace(ClaudeAgent.capabilities, sandbox=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClaudeAgent, "capabilities", agent)
        none = "note sandbox: nothing limits the hosts of claude for imported items"
        assert [none] == found_of(
            ClaudeAgent(path=claude_path), ready, BEST, backlog_sources=sources
        )
        free = [BacklogSource(type="command", command="true", network=True)]
        assert [] == found_of(ClaudeAgent(path=claude_path), ready, BEST, backlog_sources=free)


def test_doctor_finds_logins_that_agents_have(tmp_path: Path) -> None:
    """Doctor reports logins that nothing hides, or that a setting leaves."""
    (tmp_path / ".config/gh").mkdir(parents=True)
    (tmp_path / ".netrc").touch()
    env = {"HOME": str(tmp_path), "GH_TOKEN": "t"}

    def said(here: Boundary, *show: str) -> list[str]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(doctor, "probe", lambda *_args, **_options: here)
            results = look("logins", tmp_path, env=env, sandbox_show=[*show])
            return [f"{result.status} {result.what}" for result in results]

    gh, netrc = tmp_path / ".config/gh", tmp_path / ".netrc"
    left = f"note logins: left to agents by sandboxShow: GH_TOKEN, {gh}"
    assert said(BEST) == []
    assert said(BEST, "~/.config/gh") == [left]
    assert said(LANDLOCK) == [f"note logins: agents can read {gh}, {netrc}"]
    assert said(NONE, "~/.config/gh") == [left, f"note logins: agents can read {netrc}"]


@pytest.mark.parametrize(
    ("env", "settings", "what"),
    [
        ({"AUTONOE_NO_SANDBOX": "1"}, {}, "sandbox: off, by AUTONOE_NO_SANDBOX"),
        ({}, {"sandbox": False}, 'sandbox: off, by "sandbox" in .cuggino.json'),
    ],
)
def test_doctor_finds_it_off(
    env: dict[str, str], settings: dict[str, object], what: str, ready: Path
) -> None:
    """A disabled sandbox is noted with the setting that disabled it."""
    finding, *_ = look("sandbox", ready, env={**os.environ, **env}, **settings)
    assert ("note", what) == (finding.status, finding.what)


@pytest.mark.parametrize("command", [["run", "--focus", "x"], ["run", "--resume"]])
@pytest.mark.parametrize(
    ("options", "env", "settings", "said"),
    [
        (["--no-sandbox"], {"AUTONOE_NO_SANDBOX": "1"}, {}, BY_FLAG),
        ([], {"AUTONOE_NO_SANDBOX": "1"}, {}, BY_ENV),
        ([], {"AUTONOE_NO_SANDBOX": "true"}, {}, ""),
        ([], {}, {"allow_destructive": True}, ""),
        (["--no-sandbox"], {}, {"guard": "full", "allow_destructive": True}, BY_FLAG + DESTRUCTIVE),
    ],
)
def test_an_unsandboxed_start_warns(
    command: list[str],
    options: list[str],
    env: dict[str, str],
    settings: dict[str, object],
    said: str,
    ready: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The flag takes precedence over the environment; a sandboxed start prints no warning."""
    monkeypatch.delenv("AUTONOE_NO_SANDBOX", raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    save_config(ready, Config.model_validate({"agent": AGENT, **settings}))
    main([*command, *options])
    warnings = capfd.readouterr().err
    assert warnings.startswith(said)
    assert said.count("Warning") == warnings.count("Warning")


def test_deliver_warns_in_the_words_of_autonoe(
    ready: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads the output of Autonoe finds its warning there."""
    monkeypatch.setenv("AUTONOE_NO_SANDBOX", "1")
    main(["deliver"])
    said = "Warning: SDK sandbox disabled via AUTONOE_NO_SANDBOX environment variable.\n"
    assert said in capfd.readouterr().err


def test_an_agent_without_support(ready: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The start warns of agents that no sandbox can confine, as no event of the run does."""
    agent = InMemoryAgent({})
    said = f"cuggino: {agent.name} cannot run in a sandbox"
    for sandbox, times in (("auto", 1), ("off", 0)):
        config = Config.model_validate({"sandbox": sandbox, "guard": "off"})
        warn_if_loose(config, agent, roles=("planning",))
        assert times == capfd.readouterr().err.count(said)
