"""`cuggino agents`: which agents are listed, how they are looked at and checked."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from cuggino import run
from cuggino.agents import AgentEntry, Capabilities, agent_entries
from cuggino.agents.choosing.registry import BUILT_IN
from cuggino.config import AcpProgram, Config, load_config, save_config
from cuggino.doctor.agents import AgentReport, _answer, _configured, inspect_agent, inspect_agents
from cuggino.testing import no_leaks
from cuggino.testing.leaks import is_guardian
from cuggino_cli.main import main
from cuggino_cli.screen.agents import agents_fragments
from cuggino_cli.screen.columns import width
from cuggino_cli.screen.fragments import paint
from tests.agents.acp.scripts import PROGRAM
from tests.cli.cli import Cli
from tests.limits import LIMIT
from tests.screen.screen import printed
from tests.third_party import AGENT, install

READY = AgentReport(
    name="claude",
    origin="cuggino",
    configured=True,
    state="ready",
    version="2.1.329",
    capabilities=Capabilities(
        guard="calls", mcp=True, resume=True, cost="dollars", sandbox=True, deltas=True
    ),
    sandbox_unavailable="bubblewrap is missing",
)
MISSING = AgentReport(
    name="copilot",
    origin="cuggino",
    state="missing",
    problem="the agent program copilot was not found",
    hint="install it with `npm install -g @github/copilot`",
    capabilities=Capabilities(guard="files", resume=True, cost="tokens", note="not shown now"),
)
OLD = AgentReport(
    name="codex",
    origin="cuggino",
    state="old",
    problem="codex 0.1 is too old",
    hint="update it",
    capabilities=Capabilities(),
)
BROKEN = AgentReport(
    name="theirs",
    origin="theirs-package",
    problem='the agent "theirs"\ncannot be loaded: \x1b[31mValueError',
    hint="install it anew",
)
THEIRS = AgentReport(
    name="other",
    origin="other-package",
    state="ready",
    version="1",
    capabilities=Capabilities(note="of a small house"),
)
LOOKS = (READY, MISSING, OLD, BROKEN, THEIRS)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for packages on the path of this process and of its children."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """List one built-in agent instead of all, as each is inspected in a separate process."""
    _leave_out(BUILT_IN.keys() - {"claude"}, monkeypatch)


@pytest.fixture
def no_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """List no built-in agent."""
    _leave_out(BUILT_IN.keys(), monkeypatch)


def _leave_out(names: Set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def listed() -> tuple[AgentEntry, ...]:
        return tuple(entry for entry in agent_entries() if entry.name not in names)

    monkeypatch.setattr("cuggino.doctor.agents.agent_entries", listed)


def table(looks: Sequence[AgentReport] = LOOKS, columns: int | None = None) -> list[str]:
    return paint(agents_fragments(looks, columns=columns), color=False).splitlines()


def test_the_table() -> None:
    """Each row shows an agent's capabilities, with a note on problems and next steps."""
    install_it = "install it with `npm install -g @github/copilot`"
    cannot = 'the agent "theirs" cannot be loaded: ␛[31mValueError'
    assert [
        "AGENT    VERSION        GUARD  MCP  RESUME  COST     SANDBOX   DELTAS  NOTE",
        "claude*  2.1.329        calls  yes  yes     dollars  not here  yes",
        f"copilot  not installed  files  no   yes     tokens   no        no      {install_it}",
        "codex    too old        no     no   no      no       no        no      update it",
        f"theirs   broken         ?      ?    ?       ?        ?         ?       {cannot}; "
        "install it anew; from theirs-package",
        "other    1              no     no   no      no       no        no      of a small house; "
        "from other-package",
    ] == table()


def test_an_agent_that_takes_messages() -> None:
    """The table notes it, before the agent's own note."""
    look = next(look for look in LOOKS if look.name == "other")
    assert look.capabilities is not None
    told = replace(look, capabilities=replace(look.capabilities, messages=True))
    assert "takes messages; of a small house; from other-package" in " ".join(table([told]))


def test_a_wide_terminal() -> None:
    """A wide terminal truncates the note and nothing else."""
    lines = table(columns=100)
    assert len(LOOKS) + 1 == len(lines)
    assert all(width(line) < 100 for line in lines)
    assert lines[2].endswith("install it with `npm inst...")


@pytest.mark.parametrize("columns", [20, 40, 60, 90])
def test_a_narrow_terminal(columns: int) -> None:
    """A narrow terminal shows each agent on several lines with its whole note."""
    lines = table(columns=columns)
    assert all(width(line) < columns for line in lines)
    text = " ".join(" ".join(lines).split())
    assert "claude*" in text
    assert "guard calls, MCP yes, resume yes, cost dollars, sandbox not here, deltas yes" in text
    if columns > 30:
        assert "install it with `npm install -g @github/copilot`" in text


def test_colours() -> None:
    """Available is green, missing is yellow and broken is red."""
    lines = paint(agents_fragments(LOOKS, columns=None), color=True).splitlines()
    assert "\x1b[1m\x1b[32m2.1.329" in lines[1]
    assert "\x1b[1m\x1b[33mnot installed" in lines[2]
    assert "\x1b[1;31mbroken" in lines[4]


@pytest.mark.real_agent
def test_json(few: None, packages: Path, project: Path, cli: Cli) -> None:
    """With `--json` each agent is one object per line, built-in agents first."""
    install(packages, "theirs", AGENT)
    save_config(project, Config(agent="theirs"))
    rows = [json.loads(line) for line in cli("agents", "--json").splitlines()]
    assert [*BUILT_IN, "theirs"] == [entry.name for entry in agent_entries()]
    assert ["claude", "theirs"] == [row["name"] for row in rows]
    assert {"cuggino"} == {row["origin"] for row in rows[:-1]}
    assert {
        "name": "theirs",
        "origin": "theirs",
        "configured": True,
        "state": "ready",
        "version": "7.1",
        "problem": None,
        "hint": None,
        "sandbox_unavailable": "",
        "guard": "none",
        "mcp": True,
        "resume": False,
        "cost": "tokens",
        "sandbox": False,
        "view": False,
        "deltas": False,
        "messages": False,
        "interactive": False,
        "note": "of a small house",
    } == rows[-1]


@pytest.mark.real_agent
def test_without_a_terminal(
    few: None, packages: Path, project: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe gets the whole table, uncolored."""
    install(packages, "theirs", AGENT.replace("a small house", "a very small house " * 20))
    monkeypatch.setenv("PATH", "/nowhere")
    out = cli("agents")
    assert "\x1b" not in out
    assert ["AGENT", "claude*", "theirs"] == [line.split()[0] for line in out.splitlines()]
    assert "a very small house " * 19 in out


@pytest.mark.real_agent
def test_broken_packages(no_built_in: None, packages: Path, project: Path) -> None:
    """A package that fails, prints, exits or holds no agent affects only its own row."""
    install(packages, "absent", "", agents={"absent": "no_such_module:Agent"})
    install(packages, "ends", "import os\nos._exit(3)\n")
    install(packages, "loud", "print('x' * 100_000)\n" + AGENT)
    install(packages, "raises", "raise OSError('not today')\n")
    install(packages, "strange", "class Agent:\n    pass\n")
    install(packages, "unsure", AGENT.replace('return "7.1"', "raise KeyError('version')"))
    looks = {look.name: look for look in inspect_agents(project)}
    assert ("ready", "7.1") == (looks["loud"].state, looks["loud"].version)
    words = {
        "absent": "No module named 'no_such_module'",
        "ends": "its code ended the process that inspected it",
        "raises": "OSError: not today",
        "strange": "which is not an agent",
        "unsure": "its check failed: KeyError: 'version'",
    }
    for name, part in words.items():
        assert "broken" == looks[name].state
        assert part in (looks[name].problem or "")


@pytest.mark.real_agent
def test_a_probe_that_hangs(no_built_in: None, packages: Path, project: Path) -> None:
    """A probe that takes too long is terminated with its process tree."""
    hangs = "import subprocess, sys, time\nsubprocess.Popen(['sleep', '31417'])\ntime.sleep(600)\n"
    install(packages, "hangs", hangs)
    began = time.monotonic()
    looks = {look.name: look for look in inspect_agents(project, seconds=4.0)}
    assert time.monotonic() - began < LIMIT
    assert "it did not report its version in time" == looks["hangs"].problem
    left = [p for p in psutil.process_iter() if _words(p) == ["sleep", "31417"]]
    left += [p for p in psutil.Process().children(recursive=True) if not is_guardian(p)]
    _, alive = psutil.wait_procs(left, timeout=LIMIT)  # killed processes exit shortly
    assert [] == alive


@pytest.mark.real_agent
def test_the_projects_own(no_built_in: None, packages: Path, project: Path) -> None:
    """An agent that only the project configures is listed with the configured program."""
    install(packages, "theirs", AGENT, agents={})
    save_config(project, Config(agent="theirs:Agent", agent_path="nowhere"))
    look = inspect_agents(project)[-1]
    assert ("theirs:Agent", "", True) == (look.name, look.origin, look.configured)
    assert ("missing", "install it by hand") == (look.state, look.hint)


def test_a_broken_project(few: None, project: Path) -> None:
    """An unreadable configuration hides no agent; a file named like a module is not imported."""
    (project / ".cuggino.json").write_text("{", encoding="utf-8")
    for name in ("click", "reactivex", "cuggino_cli"):
        (project / f"{name}.py").write_text("open('run', 'w').close()\n", encoding="utf-8")
    (look,) = inspect_agents(project)
    assert ("claude", True) == (look.name, look.capabilities is not None)
    assert not (project / "run").exists()


def test_an_unknown_agent(tmp_path: Path) -> None:
    """The error for an unknown agent lists the known ones."""
    look = inspect_agent("nobody", folder=tmp_path, path=None)
    assert 'unknown agent "nobody"' == look.problem
    assert "claude" in (look.hint or "")


def test_an_agent_that_is_too_old(tmp_path: Path) -> None:
    """An outdated program is reported differently from a missing one."""
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\necho '1.0.0 (Claude Code)'\n", encoding="utf-8")
    program.chmod(0o755)
    look = inspect_agent("claude", folder=tmp_path, path=str(program))
    assert "old" == look.state
    assert "claude 1.0.0 is too old" in (look.problem or "")


@pytest.mark.parametrize("no_color", ["", pytest.param("1", marks=pytest.mark.real_agent)])
def test_on_a_terminal(
    no_built_in: None, packages: Path, project: Path, monkeypatch: pytest.MonkeyPatch, no_color: str
) -> None:
    """A terminal gets colors, unless NO_COLOR is set, and lines that fit."""
    install(packages, "theirs", AGENT)
    for name, value in {"PATH": "/nowhere", "TERM": "xterm", "NO_COLOR": no_color}.items():
        monkeypatch.setenv(name, value)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
    with open(slave, "w", encoding="utf-8") as terminal:  # noqa: PTH123
        monkeypatch.setattr(sys, "stdout", terminal)
        assert 0 == main(["agents"])
        terminal.flush()
        said = printed(master, slave)
    os.close(master)
    assert ("\x1b[1m\x1b[32m7.1" in said) == (not no_color)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", said)
    assert all(width(line) < 50 for line in plain.split("\r\n"))
    assert "guard no, MCP yes, resume no, cost tokens" in plain


@pytest.mark.real_agent  # starts a process for each agent: with the second command
def test_as_a_program(project: Path, packages: Path) -> None:
    """With no agent installed the command exits with 0 and prints nothing to standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "cuggino_cli", "agents"],
        cwd=project,
        env={**os.environ, "PATH": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert (0, "") == (done.returncode, done.stderr)
    assert "not installed" in done.stdout


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


RULES = ["program", "session", "mode", "guard", "mcp_server", "unknown_session"]
UNKNOWN = {"session/resume": {"code": -32602, "message": "No such session"}}


@pytest.fixture
def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that checks the scripted program and returns the results."""
    monkeypatch.chdir(tmp_path)

    def check(cli: Cli, asks: bool = True, **script: Any) -> Any:
        file = tmp_path / "script.json"
        file.write_text(json.dumps(script))
        command = [sys.executable, "-IS", str(PROGRAM), str(file)]
        program = AcpProgram(command=command, mode="ask", asks=asks)
        save_config(tmp_path, Config(acp={"mine": program}))
        code = main(["agents", "check", "acp:mine", "--json"])
        rows = [json.loads(line) for line in cli.printed().out.splitlines()]
        assert RULES == [row["rule"] for row in rows]
        log = file.with_suffix(".log")
        assert "session/prompt" not in log.read_text()
        return code, {row["rule"]: (row["outcome"], row["message"]) for row in rows}

    return check


def test_kept(checked: Any, cli: Cli) -> None:
    """A program that keeps all rules is not prompted; servers may be started later."""
    code, found = checked(cli, errors=UNKNOWN)
    assert 0 == code
    skipped = found.pop("mcp_server")
    assert ("skipped", "it was not started before the first prompt") == skipped
    assert {"passed"} == {outcome for outcome, _ in found.values()}
    assert "mode ask" == found["mode"][1]
    assert "No such session" in found["unknown_session"][1]


@pytest.mark.parametrize(
    ("script", "rule", "words"),
    [
        ({"keeps": True, "errors": UNKNOWN}, "mode", "its mode ask is not in force"),
        ({}, "unknown_session", "as if it were known"),
    ],
)
def test_broken(checked: Any, cli: Cli, script: dict[str, Any], rule: str, words: str) -> None:
    """A broken rule is named, with exit code 1."""
    code, found = checked(cli, **script)
    assert (1, "failed") == (code, found[rule][0])
    assert words in found[rule][1]
    failed = [name for name, (outcome, _) in found.items() if outcome == "failed"]
    assert rule in failed


def test_unguarded(checked: Any, cli: Cli) -> None:
    """Rules for features that a program does not claim, such as asking, are skipped."""
    given: dict[str, Any] = {"initialize": {"agentCapabilities": {}}}
    code, found = checked(cli, asks=False, **given)
    assert 0 == code
    assert {"skipped"} == {found[rule][0] for rule in ("mode", "guard", "unknown_session")}


def test_lines(here: Path, cli: Cli) -> None:
    """A missing program fails every rule that starts it, one line each."""
    save_config(here, Config(acp={"mine": AcpProgram(command=["no-such-agent"])}))
    out = cli("agents", "check", "acp:mine", code=1).splitlines()
    assert "failed   program: the agent program no-such-agent was not found" in out[0]
    assert out[0].startswith("failed   program")
    assert len(RULES) == len(out)


def test_other_agents(cli: Cli) -> None:
    """Only programs of the protocol can be checked."""
    assert "does not speak the Agent Client Protocol" in cli.err("agents", "check", "claude")


def test_the_agents_of_a_project(tmp_path: Path) -> None:
    """A project's agents include those of roles and the fallbacks of one role or of all."""
    config = {
        "agent": "claude",
        "agents": {"planning": {"agent": "a:A", "fallback": ["b:B"]}, "audit": "c:C"},
        "fallback": ["d:D"],
    }
    (tmp_path / ".cuggino.json").write_text(json.dumps(config))
    assert {"claude", "a:A", "b:B", "c:C", "d:D"} == set(_configured(load_config(tmp_path)))


def test_an_answer(tmp_path: Path) -> None:
    """What an inspection prints is its answer, whatever its exit code."""
    words = [sys.executable, "-c", "print('said'); exit(1)"]
    assert b"said\n" == run(_answer(words, tmp_path, seconds=LIMIT))


def test_an_inspection_that_times_out(tmp_path: Path) -> None:
    """An inspection that still runs when the time is up has no answer, and leaves no process."""
    with no_leaks():
        assert run(_answer(["sleep", "600"], tmp_path, seconds=0.0)) is None
