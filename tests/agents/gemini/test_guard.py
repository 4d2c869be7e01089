"""The guard of the Gemini CLI with a fake program: hook, rules, stream, and its files."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.base.guard import NOT_JUDGED
from cuggino.agents.base.watch import VerdictLog
from cuggino.agents.gemini import guard as gemini_guard
from cuggino.agents.gemini.config import Home
from cuggino.agents.gemini.guard import UNMARKED, GeminiWatch, SessionGuard, prepare_guard, rules
from cuggino.agents.gemini.hook import answer
from cuggino.agents.gemini.tools import MARK
from cuggino.agents.gemini.wire import Exits
from cuggino.errors import GuardNotLive
from cuggino.events import GuardDenied
from cuggino.guard.roles import role_policy

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nowhere"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "p" / ".specs").mkdir(parents=True)
    (tmp_path / "s").mkdir()
    return tmp_path / "p"


@pytest.fixture
def home(project: Path) -> Iterator[Home]:
    with ExitStack() as stack:
        made = Home({"HOME": str(project.parent / "s")}, stack)
        yield made


@pytest.fixture
def guard(project: Path, home: Home) -> SessionGuard:
    policy = role_policy("implementing", project=project, level="roles")
    return prepare_guard(policy, ENV, home)[0]


def ask(guard: SessionGuard, tool: str, /, **given: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    orders, settings = guard.guard.judge, {"servers": [], "marked": guard.marked, "readable": []}
    data = {"hook_event_name": "BeforeTool", "tool_name": tool, "tool_input": given}
    return answer({**data, "cwd": orders.policy.project}, orders, settings)


def test_check_guard(guard: SessionGuard, project: Path) -> None:
    """The trial before a session leaves no canary for it."""
    guard.try_out(ENV, str(project))
    assert guard.log.path.read_bytes()
    assert [] == guard.log.read()


def test_marks(guard: SessionGuard) -> None:
    """Modifying calls are marked; a wrapped command behaves as before."""
    command = "echo 'it'\"'\"'s' $(echo x); cat <<'A'\n-e $HOME\nA"
    said, told = ask(guard, "run_shell_command", command=command, **{MARK: "forged"})
    marked = said["hookSpecificOutput"]["tool_input"]
    assert guard.guard.token == marked[MARK]
    assert {"command": command} == told["input"]
    outputs = [
        subprocess.run(["bash", "-c", text], capture_output=True, check=True).stdout
        for text in (command, marked["command"])
    ]
    assert outputs[0] == outputs[1] == b"it's x\n-e $HOME\n"
    assert {"decision": "allow"} == ask(guard, "read_file", file_path="x")[0]
    assert {"decision": "allow"} == ask(guard, "mcp_x_y", a=1)[0]


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("run_shell_command", {"command": "echo x > .specs/y"}),
        ("run_shell_command", {"command": "echo x > y", "dir_path": ".specs"}),
        ("run_shell_command", {"command": "ls", "additional_permissions": {}}),
        ("write_file", {"file_path": ".gemini/settings.json", "content": ""}),
        ("replace", {"file_path": ".specs/task.md"}),
        ("mcp_x_y", {"path": ".specs/task.md"}),
        ("discovered_tool", {}),
    ],
)
def test_denied_calls(guard: SessionGuard, tool: str, given: dict[str, Any]) -> None:
    """Forbidden and unknown calls get a reason and no mark."""
    said, told = ask(guard, tool, **given)
    assert ("deny", said["reason"]) == (said["decision"], told["reason"])
    assert told["reason"] and "hookSpecificOutput" not in said


def test_bounded_reading(project: Path, home: Home) -> None:
    """With limited reading, readers are marked too and stay in the project."""
    policy = role_policy("verify", project=project, level="full")
    guard, _ = prepare_guard(policy, ENV, home)
    assert (
        guard.guard.token
        == ask(guard, "read_file", file_path="x")[0]["hookSpecificOutput"]["tool_input"][MARK]
    )
    for tool, given in (
        ("read_file", {"file_path": "/etc/passwd"}),
        ("list_directory", {"dir_path": ".."}),
        ("glob", {"pattern": "../*"}),
        ("grep_search", {"pattern": "x", "dir_path": "/"}),
        ("read_many_files", {"include": ["a", "/etc/*"]}),
    ):
        assert "deny" == ask(guard, tool, **given)[0]["decision"], tool
    assert "allow" == ask(guard, "grep_search", pattern="/x")[0]["decision"]


def test_the_rules(guard: SessionGuard) -> None:
    """Modifying tools need the mark, others do not, and unknown ones are denied."""
    made = tomllib.loads(rules(unattended=True, guard=guard))["rule"]
    by_tool = {name: rule for rule in reversed(made) for name in rule["toolName"]}
    for tool in ("run_shell_command", "write_file", "replace"):
        assert guard.guard.token in by_tool[tool]["argsPattern"]
    assert "argsPattern" not in by_tool["read_file"]
    decisions = [by_tool[tool]["decision"] for tool in ("glob", "mcp_*", "*", "ask_user")]
    assert ["allow", "allow", "deny", "deny"] == decisions
    order = [rule["priority"] for rule in made]
    assert sorted(order, reverse=True) == order
    assert order[-1] == by_tool["*"]["priority"]


def test_rules_without_permission() -> None:
    """Without permission the session can read and use named tools only."""
    allowed = ("Bash", "mcp__a__b", "mcp__c")
    made = tomllib.loads(rules(unattended=False, guard=None, allowed_tools=allowed))["rule"]
    may = [name for rule in made if rule["decision"] == "allow" for name in rule["toolName"]]
    assert {"run_shell_command", "read_file", "b", "*"} <= set(may)
    assert not {"write_file", "mcp_*"} & set(may)
    assert ["a", "c"] == [rule["mcpName"] for rule in made if "mcpName" in rule]
    only = tomllib.loads(rules(unattended=True, guard=None))["rule"]
    assert ["deny"] == [rule["decision"] for rule in only]


def test_rules_of_an_administrator(
    project: Path, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No guarded session starts if an administrator's rules would replace ours."""
    (tmp_path / "a.toml").touch()
    monkeypatch.setattr(gemini_guard, "_ADMIN", {})
    monkeypatch.setattr(gemini_guard, "_ADMIN_ELSEWHERE", str(tmp_path))
    with pytest.raises(GuardNotLive):
        prepare_guard(role_policy("implementing", project=project, level="roles"), ENV, home)


ALLOWED = {"name": "replace", "input": {"a": 1}, "tool": "Edit", "decision": "allow"}
DENIED = {**ALLOWED, "decision": "deny", "part": "p", "reason": "r"}


def watched(folder: Path, *verdicts: dict[str, Any]) -> GeminiWatch:
    log = VerdictLog(folder / "log", "t")
    lines = [{"canary": "live"}, *verdicts]
    log.path.write_text("".join(json.dumps({"token": "t", **line}) + "\n" for line in lines))
    watch = GeminiWatch(log)
    watch.start()
    return watch


@pytest.mark.parametrize("reason", [NOT_JUDGED, UNMARKED])
def test_a_hook_that_did_not_answer(tmp_path: Path, reason: str) -> None:
    """A call blocked by a failed hook is reported as denied too."""
    watch = watched(tmp_path)
    watch.call("c", "run_shell_command", "Bash", {})
    expected = [GuardDenied(tool="Bash", tool_use_id="c", part="Bash", reason=reason)]
    assert expected == watch.result("c", is_error=True, message=f"Denied: {reason}")


def test_a_hook_that_is_gone(tmp_path: Path) -> None:
    """The program's message about a missing hook is the reason."""
    watch = watched(tmp_path)
    watch.call("c", "run_shell_command", "Bash", {})
    (denied,) = watch.result("c", is_error=True, message="Tool execution blocked: sh: no file")
    assert "sh: no file" == denied.reason


def test_a_hook_of_the_user(tmp_path: Path) -> None:
    """A call blocked by the user's hook is not the guard's denial; its verdict is consumed."""
    watch = watched(tmp_path, ALLOWED)
    watch.call("c", "replace", "Edit", {"a": 1})
    assert [] == watch.result("c", is_error=True, message="Tool execution blocked: not today")
    watch.call("d", "replace", "Edit", {"a": 1})
    watch.result("d", is_error=False, message="")
    assert watch.breach is not None


def test_inputs_that_the_program_changed(tmp_path: Path) -> None:
    """A verdict is found even if the program's request had a slightly different input."""
    watch = watched(
        tmp_path,
        {**ALLOWED, "name": "glob"},
        {**ALLOWED, "name": "mcp_a_b"},
        {**DENIED, "input": {"a": 1, "b": 2}},
    )
    watch.call("c", "glob", "Glob", {"a": 1, "b": None})
    watch.call("d", "mcp_a_b", "mcp__a__b", {"a": 1, "wait_for_previous": True})
    watch.call("e", "replace", "Edit", {"a": 1})
    assert [] == watch.result("c", is_error=False, message="")
    assert [] == watch.result("d", is_error=False, message="")
    assert ["r"] == [e.reason for e in watch.result("e", is_error=True, message="blocked: r")]
    assert watch.breach is None
    watch.call("f", "mcp_a_b", "mcp__a__b", {"a": 2})
    watch.result("f", is_error=False, message="")
    assert watch.breach is not None


def test_a_sub_agents_calls(tmp_path: Path) -> None:
    """A denial in a sub-agent is reported with the call that started it."""
    watch = watched(tmp_path, DENIED, DENIED, {**ALLOWED, "name": "invoke_agent", "input": {}})
    watch.call("t", "invoke_agent", "Task", {})
    expected = [GuardDenied(tool="Edit", tool_use_id="t", part="p", reason="r")] * 2
    assert expected == watch.result("t", is_error=False, message="")
    assert watch.breach is None


@pytest.fixture
def private(tmp_path: Path) -> Iterator[Home]:
    with ExitStack() as stack:
        made = Home({"HOME": str(tmp_path)}, stack)
        yield made


@pytest.fixture(params=["roles", "full"])
def held(private: Home, tmp_path: Path, request: pytest.FixtureRequest) -> SessionGuard:
    """Return a guarded session with all its files."""
    (tmp_path / "p").mkdir()
    policy = role_policy("implementing", project=tmp_path / "p", level=request.param)
    private.distrust()
    private.keep("rules.toml", "")
    Exits(private.own)
    return prepare_guard(policy, ENV, private)[0]


def decision(held: SessionGuard, tool: str, **given: Any) -> str:
    orders = held.guard.judge
    settings: dict[str, Any] = {"servers": [], "marked": [], "readable": []}
    data = {"hook_event_name": "BeforeTool", "tool_name": tool, "tool_input": given}
    data |= {"cwd": orders.policy.project}
    return str(answer(data, orders, settings)[0]["decision"])


def test_location(held: SessionGuard, private: Home) -> None:
    """The files are in one private folder with a name unique to the session."""
    assert {
        *("guard.sh", "verdicts.jsonl", "rules.toml", "trusted.json"),
        *("exits", "exits.sh"),
    } == {file.name for file in private.own.iterdir()}
    assert {".gemini", "tmp", private.own.name} == {file.name for file in private.path.iterdir()}
    assert 0o700 == private.own.stat().st_mode & 0o777
    assert private.path.name in private.own.name != private.path.name


def test_writing(held: SessionGuard, private: Home) -> None:
    """Neither the files nor the folder can be written, replaced or removed, under any name."""
    for path in (
        *private.own.iterdir(),
        private.own / "exits" / "1.json",
        private.own / "new",
        private.own,
    ):
        assert "deny" == decision(held, "write_file", file_path=str(path), content="x"), path
        assert "deny" == decision(held, "replace", file_path=str(path)), path
        for command in (
            *(f"echo x > {path}", f"echo x >> {path}", f"cp a {path}", f"rm -rf {path}"),
            *(f"mv {path} a", f"ln -sf /a {path}", f"sed -i s/a/b/ {path}", f"tee {path}"),
            *(f"cd {path.parent} && echo x > {path.name}", f"touch {path}"),
            f"echo x > {private.temp}/../{path.relative_to(private.path)}",
        ):
            assert "deny" == decision(held, "run_shell_command", command=command), command
    moved = f"{private.path}2"
    for command in (
        f"echo x > {private.path}/*/guard.sh",
        f"ln -s {private.own} {private.temp}/a && echo x > {private.temp}/a/guard.sh",
        f"cd {private.temp} && ln -s ../{private.own.name} a && echo x > a/guard.sh",
        f"mv {private.path} {moved} && echo x > {moved}/{private.own.name}/guard.sh",
    ):
        assert "deny" == decision(held, "run_shell_command", command=command), command
    (private.temp / "link").symlink_to(private.own)
    by_link = str(private.temp / "link" / "guard.sh")
    assert "deny" == decision(held, "write_file", file_path=by_link, content="x")
    assert "deny" == decision(held, "run_shell_command", command=f"echo x > {by_link}")


def test_scratch_files(held: SessionGuard, private: Home) -> None:
    """The folder for temporary files stays writable."""
    place = str(private.temp / "scratch.txt")
    assert "allow" == decision(held, "write_file", file_path=place, content="x")
    assert "allow" == decision(held, "run_shell_command", command=f"echo x > {place}")
