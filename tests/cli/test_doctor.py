"""`cuggino doctor`: each check of settings, agents and packages, and the exit codes."""

from __future__ import annotations

import json
import os
import re
import sys
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from cuggino._version import __version__
from cuggino.agents.base.guard import find_bash
from cuggino.config import Config, save_config
from cuggino.doctor import loops, project as project_checks
from cuggino.doctor.agent_checks import HONEST, check_program, permissions
from cuggino.doctor.checks import configuration
from cuggino.doctor.result import CheckResult
from cuggino.errors import install_extra
from cuggino.guard.shell.shfmt import find_shfmt
from cuggino.testing import InMemoryAgent
from cuggino.wakefulness import sleep_prevention
from cuggino_cli.commands.doctor import result_fragments
from cuggino_cli.main import main
from cuggino_cli.screen.fragments import paint
from tests.cli.cli import Cli
from tests.cli.looking import look, look_at_all, place


def fake_claude(folder: Path, version: str) -> str:
    """Return the path of a program that reports that version of Claude Code."""
    program = folder / "claude"
    program.write_text(f"#!/bin/sh\necho '{version} (Claude Code)'\n", encoding="utf-8")
    program.chmod(0o755)
    return str(program)


def test_configuration_valid(ready: Path) -> None:
    """A valid file is reported as such, with its settings."""
    finding, there = configuration(place(ready))
    assert CheckResult("ok", "configuration: .cuggino.json is valid") == finding
    assert Config(agent="scripted:scenario.toml") == there.config


def test_configuration_absent(tmp_path: Path) -> None:
    """A missing file means the defaults, without a problem."""
    finding, there = configuration(place(tmp_path))
    assert CheckResult("ok", "configuration: defaults, no .cuggino.json") == finding
    assert Config() == there.config


def test_configuration_broken(ready: Path) -> None:
    """An invalid file is a problem with the error's message and hint."""
    (ready / ".cuggino.json").write_text('{"comit": true}', encoding="utf-8")
    expected = CheckResult(
        "problem",
        'configuration: .cuggino.json: unknown key "comit"',
        'did you mean "commit"?',
    )
    finding, there = configuration(place(ready))
    assert (expected, False) == (finding, there.is_configured)


def test_agent_found(tmp_path: Path) -> None:
    """An available agent is reported with its version."""
    program = fake_claude(tmp_path, "2.9.1")
    found = next(check_program("claude", tmp_path, program))
    assert CheckResult("ok", "agent: claude 2.9.1") == found


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("claude", "agent: the agent program .*/missing was not found"),
        ("nobody", 'agent: unknown agent "nobody"'),
        ("scripted:missing.toml", "agent: scenario .*missing.toml cannot be read"),
        ("scripted:/dev/zero", "agent: scenario /dev/zero cannot be read: not a regular file"),
        ("replay:/dev/zero", "agent: cannot read the cassette /dev/zero: not a regular file"),
    ],
)
def test_agent_missing(name: str, reason: str, tmp_path: Path) -> None:
    """An unusable agent is a problem."""
    found = next(check_program(name, tmp_path, str(tmp_path / "missing")))
    assert "problem" == found.status
    assert re.match(reason, found.what)


def test_the_code_of_an_agent_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exception of an agent of one's own is a problem."""

    class Odd(InMemoryAgent):
        def check(self) -> str:
            raise ZeroDivisionError("oh")

    monkeypatch.setattr("cuggino.doctor.agents.make_agent", lambda *_args, **_options: Odd({}))
    found = next(check_program("odd", tmp_path, None))
    expected = ("problem", "agent: its check failed: ZeroDivisionError: oh")
    assert expected == (found.status, found.what)


def test_agent_too_old(tmp_path: Path) -> None:
    """An outdated agent is a problem, with how to update it."""
    found = next(check_program("claude", tmp_path, fake_claude(tmp_path, "1.0.0")))
    assert "problem" == found.status
    assert "too old" in found.what
    assert found.hint is not None
    assert "update" in found.hint


@pytest.mark.parametrize(
    ("name", "uid", "env", "expected"),
    [
        ("claude", 1000, {}, "ok"),
        ("claude", 0, {"IS_SANDBOX": "1"}, "ok"),
        ("claude", 0, {"CLAUDE_CODE_BUBBLEWRAP": "1"}, "ok"),
        ("scripted:a.toml", 0, {}, "ok"),
        ("claude", 0, {}, "problem"),
        ("claude", 0, {"IS_SANDBOX": "true"}, "problem"),
        ("claude", 0, {"IS_SANDBOX": ""}, "problem"),
    ],
)
def test_permissions(name: str, uid: int, env: dict[str, str], expected: str) -> None:
    """Running claude as root is a problem unless the environment declares a sandbox."""
    found = permissions(name, env=env, uid=uid, guarded=False)
    assert expected == found.status
    assert (expected == "problem") == (found.hint is not None)


def test_permissions_of_a_guarded_agent() -> None:
    """A guarded claude works as root, except in interactive sessions, which is noted."""
    found = permissions("claude", env={}, uid=0, guarded=True)
    expected = ("note", "permissions: as root, claude refuses `cuggino plan`")
    assert expected == (found.status, found.what)
    assert "ok" == permissions("claude", env={}, uid=1, guarded=True).status


def test_workspace_fine(ready: Path) -> None:
    """A writable folder passes, with or without a workspace."""
    assert [CheckResult("ok", f"workspace: {ready} can be written")] == look("workspace", ready)
    (ready / ".cuggino" / "wip").mkdir(parents=True)
    expected = CheckResult("ok", f"workspace: {ready / '.cuggino'} can be written")
    assert [expected] == look("workspace", ready)


@pytest.mark.parametrize("name", [".cuggino", ".cuggino/wip"])
def test_workspace_is_a_file(name: str, ready: Path) -> None:
    """A file in place of a workspace folder is a problem."""
    (ready / name).parent.mkdir(exist_ok=True)
    (ready / name).write_text("", encoding="utf-8")
    (found,) = look("workspace", ready)
    assert ("problem", f"workspace: {ready / name} is not a folder") == (found.status, found.what)


def test_workspace_protected(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only folder is a problem."""
    monkeypatch.setattr(os, "access", lambda *_args, **_options: False)
    (found,) = look("workspace", ready)
    assert ("problem", f"workspace: {ready} cannot be written") == (found.status, found.what)


def test_specifications(ready: Path) -> None:
    """One file with text anywhere in the specs folder is enough; hidden ones are none."""
    assert [CheckResult("ok", "specs: .specs")] == look("specs", ready)
    deep = ready / "docs" / "a" / "b"
    deep.mkdir(parents=True)
    (found,) = look("specs", ready, specs_path="docs")
    expected = ("problem", f"specs: {ready / 'docs'} holds no specification")
    assert expected == (found.status, found.what)
    (deep / "spec.md").touch()
    (deep / ".gitkeep").write_text("keep", encoding="utf-8")
    (deep / ".git").mkdir()
    (deep / ".git" / "HEAD").write_text("ref", encoding="utf-8")
    (found,) = look("specs", ready, specs_path="docs")
    assert expected == (found.status, found.what)
    (deep / "spec.md").write_text("# A", encoding="utf-8")
    assert ["ok"] == [one.status for one in look("specs", ready, specs_path="docs")]
    (missing,) = look("specs", ready, specs_path="nothing")
    expected = ("problem", f"specs: {ready / 'nothing'} does not exist")
    assert expected == (missing.status, missing.what)
    (file,) = look("specs", ready, specs_path="scenario.toml")
    expected = ("problem", f"specs: {ready / 'scenario.toml'} is not a folder")
    assert expected == (file.status, file.what)


def test_commands_absent(ready: Path) -> None:
    """Commands are optional; a missing check command is explained."""
    assert [CheckResult("ok", "setup command: none")] == look("setup command", ready)
    (found,) = look("check command", ready)
    assert ("ok", "check command: none") == (found.status, found.what)
    assert found.hint is not None


@pytest.mark.parametrize(
    "command",
    [
        "sh -c 'exit 1'",
        "cd src && make",
        "if true; then :; fi",
        ". ./env",
        "CI=1 unheard-of",
        "./unheard-of",
        "bin/unheard-of",
        '"unheard of" a',
        "(unheard-of)",
        "unheard-of; true",
    ],
)
def test_command_found(command: str, ready: Path) -> None:
    """A program on PATH, a shell builtin and a command only the shell can resolve all pass."""
    expected = CheckResult("ok", f"setup command: {command}")
    assert [expected] == look("setup command", ready, setup_command=command)


def test_command_missing(ready: Path) -> None:
    """An unknown program name is a problem, for both commands."""
    for name in ("setup", "check"):
        settings: dict[str, Any] = {f"{name}_command": "unheard-of a"}
        (found,) = look(f"{name} command", ready, **settings)
        expected = ("problem", f"{name} command: unheard-of was not found")
        assert expected == (found.status, found.what)


def test_gate_advice(ready: Path) -> None:
    """A check command that does not decide comes with the advice to make it a gate."""
    (loose,) = look("check command", ready, check_command="sh a")
    told = "check command: sh a (an approval counts even if it fails)"
    assert ("note", told) == (loose.status, loose.what)
    assert loose.hint is not None
    assert '"gate" to "block"' in loose.hint
    expected = "check command: sh a (an approval counts only if it passes"
    for gate, ending in (("block", ")"), ("clean", " on a clean checkout of HEAD, too)")):
        (strict,) = look("check command", ready, check_command="sh a", gate=gate)
        assert CheckResult("ok", f"{expected}{ending}") == strict
    (landing,) = look("check command", ready, check_command="sh a", slots=2, commit=True)
    assert CheckResult("ok", "check command: sh a (it decides what lands)") == landing


def test_a_check_that_cannot_fail(ready: Path) -> None:
    (found,) = look("check command", ready, check_command="sh a || true", gate="block")
    assert found.status == "note"
    assert "(it cannot fail: `|| true` hides the failure of `sh a`)" in found.what


def test_a_verification_command_that_cannot_fail(ready: Path) -> None:
    """The commands of the plan/build loop are looked at, too."""
    (ready / ".lopen").mkdir()
    settings = '{"verify.build": "make", "verify.test": "make test; echo done"}'
    (ready / ".lopen/loop-config.json").write_text(settings, encoding="utf-8")
    (found,) = look("jobs", ready, env={})
    assert found.status == "note"
    assert "verify.test: make test; echo done (it cannot fail: its exit code" in found.what


def test_a_push_without_commits(ready: Path) -> None:
    """`push` without commits is noted; otherwise nothing is."""
    [found] = look("push", ready, push="origin/main")
    expected = ("note", 'push: nothing is pushed to origin/main, as "commit" is off')
    assert expected == (found.status, found.what)
    assert [] == look("push", ready, push="origin/main", commit=True)
    assert [] == look("push", ready)
    assert found not in look_at_all(ready)
    save_config(ready, Config(agent="scripted:scenario.toml", push="origin/main"))
    assert found in look_at_all(ready)


def test_fragments() -> None:
    """A finding is one line with an indented hint, and control characters are escaped."""
    finding = CheckResult("problem", "specs: \x1b[2Jgone", "write them\nor not")
    expected = "problem  specs: ␛[2Jgone\n         write them\n         or not"
    assert expected == paint(result_fragments(finding), color=False)
    assert "\x1b[1m\x1b[31mproblem" in paint(result_fragments(finding), color=True)


@pytest.mark.usefixtures("no_repository")
def test_command_without_problems(ready: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """A project without problems exits with 0, and is printed plainly to a pipe."""
    monkeypatch.setenv("AUTONOE_NO_SANDBOX", "1")
    monkeypatch.setenv("WAKEPY_FAKE_SUCCESS", "1")
    assert 0 == main(["doctor"])
    expected = [
        "ok       configuration: .cuggino.json is valid",
        f"ok       agent: scripted:scenario.toml {__version__}",
        "ok       permissions: nothing in the way",
        f"ok       guard: roles ({find_shfmt()}, {find_bash(os.environ)})",
        f"         {HONEST}",
        "note     sandbox: off, by AUTONOE_NO_SANDBOX",
        "         verification only: what a session changes beyond its role is found and put back",
        f"ok       workspace: {ready} can be written",
        "note     git: no repository here (commit is off)",
        "         run `git init`; without git `cuggino undo` restores nothing, and reports have no "
        "diffs",
        "ok       specs: .specs",
        "ok       setup command: none",
        "ok       check command: none",
        "         with one, an approval can depend on it (`cuggino setup`)",
        f"ok       sleep: none while a loop works ({sleep_prevention()})",
        "ok       report and live page: installed",
        "ok       session files: none left over",
        "",
        "No problems.",
    ]
    assert expected == cli.printed().out.splitlines()


def test_command_with_problems(ready: Path, cli: Cli) -> None:
    """Problems are counted and exit with 1; `--agent` replaces the configured agent."""
    (ready / ".specs" / "login.md").unlink()
    lines = cli("doctor", "--agent", "nobody", code=1).splitlines()
    assert 'problem  agent: unknown agent "nobody"' in lines
    assert "2 problems." == lines[-1]


@pytest.mark.usefixtures("no_repository")
def test_command_with_broken_configuration(ready: Path, cli: Cli) -> None:
    """With a broken configuration only independent checks run."""
    (ready / ".cuggino.json").write_text("{nope", encoding="utf-8")
    lines = cli("doctor", code=1).splitlines()
    topics = [line[9:].partition(":")[0] for line in lines if line[:1].strip() and ":" in line]
    assert ["configuration", "workspace", "git", "session files"] == topics
    assert "1 problem." == lines[-1]


def test_nothing_is_written(ready: Path) -> None:
    """A diagnosis leaves no file behind."""
    before = sorted(ready.rglob("*"))
    main(["doctor"])
    assert before == sorted(ready.rglob("*"))


def test_backlog(ready: Path) -> None:
    """Items are counted, and what is in the backlog without being one is noted."""
    assert [] == look("backlog", ready)
    folder = ready / ".cuggino" / "backlog"
    folder.mkdir(parents=True)
    (folder / "001-login.md").write_text("# Login", encoding="utf-8")
    (folder / "002-empty.md").write_text("", encoding="utf-8")
    (noted, counted) = look("backlog", ready)
    assert noted.status == "note"
    assert noted.what.startswith("backlog: 002-empty.md is not an item: ")
    assert CheckResult("ok", "backlog: 1 item") == counted


def test_all_agents_of_the_configuration(ready: Path) -> None:
    """Agents of roles and fallbacks are checked too, with their purpose."""
    raw = {
        "agent": "scripted:scenario.toml",
        "agents": {"audit": "nobody", "judge": {"model": "m"}},
        "fallback": [{"agent": "claude", "path": fake_claude(ready.parent, "1.0.0")}, "nobody"],
    }
    (ready / ".cuggino.json").write_text(json.dumps(raw), encoding="utf-8")
    found = look_at_all(ready)
    agents = [(finding.status, finding.what) for finding in found if "agent" in finding.what[:6]]
    assert [
        ("ok", f"agent: scripted:scenario.toml {__version__}"),
        ("problem", 'agent (audit, fall-back): unknown agent "nobody"'),
    ] == agents[:2]
    ((status, what),) = agents[2:]
    assert "problem" == status
    assert what.startswith("agent (fall-back): ")
    only = look_at_all(ready, agent="scripted:scenario.toml")
    assert 1 == sum(finding.what.startswith("agent") for finding in only)


def test_a_budget_that_cannot_hold(ready: Path) -> None:
    """A budget is checked against what the agents report, without starting any."""

    def found(**settings: object) -> list[tuple[str, str]]:
        raw = {"agent": "scripted:scenario.toml", **settings}
        (ready / ".cuggino.json").write_text(json.dumps(raw), encoding="utf-8")
        results = look_at_all(ready)
        return [(one.status, one.what) for one in results if one.what.startswith("budget")]

    assert [] == found()
    assert [] == found(budget=5)
    silent = {"budget": 5, "fallback": [{"agent": "codex", "model": "gpt-99"}]}
    ((status, what),) = found(**silent)
    assert "problem" == status
    assert "The budget of $5.00 cannot hold: codex reports no dollars" in what
    assert [] == found(**silent, priceAs="gpt-5.5")
    ((status, what),) = found(budget=5, fallback=["codex"])
    assert "note" == status
    assert "an unknown model ends the run" in what
    ((status, what),) = found(budget=5, fallback=["acp:kimi"])
    assert "note" == status
    assert "acp:kimi reports neither dollars nor tokens" in what
    ((status, what),) = found(priceAs="gpt-99")
    assert ("problem", 'budget: the price of "gpt-99" in priceAs is unknown') == (status, what)


def test_an_agent_of_a_role_is_guarded(ready: Path) -> None:
    """An agent's guard is reported with its role; an agent without one is a problem."""
    raw = {
        "agent": "scripted:scenario.toml",
        "agents": {"audit": "scripted:scenario.toml", "judge": "tests.cli.falling:Loose"},
        "fallback": [{"agent": "scripted:scenario.toml", "path": "x"}],
    }
    (ready / ".cuggino.json").write_text(json.dumps(raw), encoding="utf-8")
    found = look_at_all(ready, trusted=True)
    guards = [finding for finding in found if finding.what.startswith("guard")]
    assert ["ok", "problem", "ok"] == [finding.status for finding in guards]
    assert guards[1].what.startswith("guard (judge): tests.cli.falling")
    assert guards[2].what.startswith("guard (fall-back): roles (")


@pytest.fixture
def deliverables(tmp_path: Path) -> Path:
    (tmp_path / "SPEC.md").write_text("A page.\n")
    (tmp_path / ".autonoe").mkdir()
    settings(tmp_path, {"mcpServers": {}})
    return tmp_path


def settings(folder: Path, value: dict[str, Any]) -> None:
    (folder / ".autonoe" / "agent.json").write_text(json.dumps(value))


def status(folder: Path, *flags: tuple[bool, bool]) -> None:
    items = [
        {
            "id": f"D{n}",
            "description": "x",
            "acceptanceCriteria": ["y"],
            "passed": passed,
            "blocked": blocked,
        }
        for n, (passed, blocked) in enumerate(flags)
    ]
    day = {"createdAt": "2026-01-02", "updatedAt": "2026-01-02"}
    text = json.dumps({**day, "deliverables": items})
    (folder / ".autonoe" / "status.json").write_text(text)


def test_nothing_elsewhere(tmp_path: Path) -> None:
    """Nothing is reported where the loop is not used."""
    assert [] == look("deliverables", tmp_path)


def test_no_other_specification_is_needed(deliverables: Path) -> None:
    """A missing specs folder is a problem, but only a note next to a `SPEC.md`."""
    assert ["note"] == [one.status for one in look("specs", deliverables)]
    (deliverables / "SPEC.md").unlink()
    assert ["problem"] == [one.status for one in look("specs", deliverables)]


def test_progress(deliverables: Path) -> None:
    """The check reports how many are passed and blocked, or that there are none yet."""
    assert [CheckResult("ok", "deliverables: none yet")] == look("deliverables", deliverables)
    status(deliverables, (True, False), (False, True), (False, False))
    assert [CheckResult("ok", "deliverables: 1/3 passed, 1 blocked")] == look(
        "deliverables", deliverables
    )


def test_missing_parts(deliverables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing specification is noted and a missing library is a problem, both with advice."""
    (deliverables / "SPEC.md").unlink()
    monkeypatch.setattr(loops, "find_spec", lambda _name: None)
    note, problem, _ = look("deliverables", deliverables)
    assert ("note", "deliverables: there is no SPEC.md") == (note.status, note.what)
    assert "problem" == problem.status
    assert "cuggino[deliver]" in str(problem.hint)


def test_broken_parts(deliverables: Path) -> None:
    """A broken status file and an unknown profile are problems; oddities are notes."""
    file = deliverables / ".autonoe" / "status.json"
    file.write_text("{")
    (broken,) = look("deliverables", deliverables)
    assert ("problem", True) == (broken.status, "status.json is broken" in broken.what)
    status(deliverables, (True, True))
    (odd,) = look("deliverables", deliverables)
    assert "note" == odd.status
    file.unlink()
    settings(deliverables, {"profile": "cobol"})
    assert "problem" in {found.status for found in look("deliverables", deliverables)}
    settings(
        deliverables, {"mcpServers": {"x": {"command": "no-such-program-here"}}, "sandbox": False}
    )
    texts = [found.what for found in look("deliverables", deliverables) if found.status == "note"]
    assert any("no-such-program-here is not installed" in text for text in texts)
    assert any('"sandbox" is ignored' in text for text in texts)


OR_BELL = 'or set "notify" to "bell" in .cuggino.json'


@pytest.fixture
def no_apprise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make Apprise impossible to import."""
    monkeypatch.setitem(sys.modules, "apprise", None)


@pytest.mark.parametrize("ways", ["bell", "none", [], ["bell", "none"]])
def test_without_urls(ways: str | list[str], no_apprise: None) -> None:
    """Without URLs nothing is required."""
    assert [] == look("notifications", Path(), notify=ways)


@pytest.mark.parametrize("ways", ["ntfy://topic", ["bell", "ntfy://user:geheim@host/topic"]])
def test_apprise_is_missing(ways: str | list[str], no_apprise: None) -> None:
    """URLs without Apprise are a problem, with what to install."""
    expected = CheckResult(
        "problem",
        'notifications: "notify" has Apprise URLs, but Apprise is not installed',
        f"{install_extra('notify')}, {OR_BELL}",
    )
    assert [expected] == look("notifications", Path(), notify=ways)


def test_an_unknown_url() -> None:
    """A URL that Apprise rejects is a problem that shows only its scheme."""
    pytest.importorskip("apprise")
    (found,) = look("notifications", Path(), notify=["ntfy://topic", "nonsense://geheim"])
    assert "problem" == found.status
    assert "Apprise cannot use the nonsense:// URL" in found.what
    assert "geheim" not in f"{found}"


def test_apprise_is_installed() -> None:
    """Known URLs are listed by scheme, each once."""
    pytest.importorskip("apprise")
    urls = ["bell", "ntfy://topic", "json://user:geheim@host", "ntfy://other"]
    expected = CheckResult("ok", "notifications: by Apprise (ntfy, json)")
    assert [expected] == look("notifications", Path(), notify=urls)


def test_the_command(ready: Path, no_apprise: None, cli: Cli) -> None:
    """Problems with notifications count in the exit code of the command."""
    save_config(ready, Config(agent="scripted:scenario.toml", notify="ntfy://topic"))
    lines = cli("doctor", code=1).splitlines()
    assert 1 == sum(line.startswith("problem  notifications: ") for line in lines)
    assert "1 problem." == lines[-1]


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of packages that are not found."""
    gone: set[str] = set()
    find = util.find_spec
    monkeypatch.setattr(
        project_checks, "find_spec", lambda name: None if name in gone else find(name)
    )
    return gone


def test_all_is_there() -> None:
    """The report and the live page belong to every installation."""
    expected = CheckResult("ok", "report and live page: installed")
    assert [expected] == look("report and live page", Path())


def test_something_is_missing(without: set[str]) -> None:
    """An incomplete installation is noted with the names of what it lacks."""
    without |= {"jinja2", "uvicorn"}
    (found,) = look("report and live page", Path())
    assert ("note", "report and live page: not installed: jinja2, uvicorn") == (
        found.status,
        found.what,
    )


def test_a_cluster_without_its_extra(without: set[str]) -> None:
    """A configured cluster needs its extra, which is installed for the Python that runs cuggino."""
    without.add("distributed")
    (found,) = look("cluster", Path(), cluster="tls://host:8786")
    assert ("problem", install_extra("cluster")) == (found.status, found.hint)
    assert sys.executable in install_extra("cluster")
