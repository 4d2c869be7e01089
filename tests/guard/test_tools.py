"""The whole guard, tool by tool: every known tool, and every argument that names a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuggino.guard import tools
from cuggino.guard.commands.wordlist import words
from cuggino.guard.paths import STATE_REASON, SYNC_REASON
from cuggino.guard.places import passes
from cuggino.guard.policy import Policy
from cuggino.guard.roles import PERMISSION_SETS, PermissionSet, role_policy
from cuggino.guard.shell.shfmt import find_shfmt
from cuggino.guard.tools import judge
from cuggino.guard.verdict import Verdict
from tests.guard.judging import SHFMT, make_project

PARSER = find_shfmt()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a project with its protected folders and a link to one of them."""
    root = tmp_path / "home" / "project"
    for folder in ("src", ".specs", ".autonoe", ".cuggino/wip", ".git/hooks", ".claude"):
        (root / folder).mkdir(parents=True)
    (root / "state").symlink_to(".autonoe")
    return root


def judged(project: Path, tool: str, data: Any, **rules: Any) -> Verdict:
    """Return the verdict with a policy of these rules."""
    policy = Policy(project=str(project))._replace(**rules)
    return tools.judge(policy, tool, data, str(project), shfmt=PARSER)


def of_role(project: Path, role: PermissionSet, tool: str, data: Any) -> Verdict:
    """Return the verdict for an agent in the role."""
    wip = project / ".cuggino" / "wip"
    policy = role_policy(
        role, project=project, level="roles", plan=wip / "x.plan.md", review=wip / "x.review.md"
    )
    return tools.judge(policy, tool, data, str(project), shfmt=PARSER)


@pytest.mark.parametrize("tool", ["Write", "Edit", "MultiEdit", "NotebookEdit"])
@pytest.mark.parametrize("key", ["file_path", "filePath", "notebook_path", "notebookPath"])
def test_a_file_tool_is_judged_by_its_path(project: Path, tool: str, key: str) -> None:
    """Every file tool is judged by its path, under every key."""
    assert judged(project, tool, {key: "src/a.py"}).is_allowed
    assert judged(project, tool, {key: f"{project}/src/a.py"}).is_allowed
    for path in (".autonoe/x", "state/x", ".git/config", "../x", "/etc/x", "~/x", "src\\..\\..\\x"):
        assert not judged(project, tool, {key: path}).is_allowed
    assert STATE_REASON == judged(project, tool, {key: ".autonoe\\x"}).reason
    assert STATE_REASON == judged(project, tool, {key: "C:\\a\\.autonoe\\x"}).reason
    assert STATE_REASON == judged(project, tool, {key: ".autonoe/../src/a.py"}).reason


@pytest.mark.parametrize("data", [{}, {"file_path": None}, {"file_path": ""}, {"content": "x"}])
def test_a_file_tool_without_a_path_is_left_to_the_tool(project: Path, data: Any) -> None:
    """A missing path is allowed, because the tool itself refuses it (AUT-220)."""
    assert judged(project, "Write", data).is_allowed


@pytest.mark.parametrize("path", [1, True, ["src/a.py", 2], 1.5, b"x"])
def test_a_path_of_another_type_is_denied(project: Path, path: Any) -> None:
    """A path that is not a string is denied."""
    verdict = judged(project, "Write", {"file_path": path})
    assert "deny" == verdict.decision
    assert "no text" in verdict.reason


def test_every_path_of_a_call_counts(project: Path) -> None:
    """One denied path at any depth denies the call and is named."""
    edits = [{"file_path": "src/a.py"}, {"file_path": ".git/config"}]
    verdict = judged(project, "MultiEdit", {"file_path": "src/a.py", "edits": edits})
    assert ["", True] == [verdict.parts[0].reason, ".git" in verdict.reason]
    assert "MultiEdit .git/config" == next(p.text for p in verdict.parts if p.reason)


def test_a_file_tool_in_sync_mode_writes_the_note_alone(project: Path) -> None:
    """In sync mode scratch files and notes elsewhere are denied too (AUT-223)."""
    note = ".autonoe-note.md"
    for path in (note, f"{project}/{note}", f"C:{str(project).replace('/', chr(92))}\\{note}"):
        assert judged(project, "Write", {"file_path": path}, mode="sync").is_allowed
    for path in ("/tmp/x", f"src/{note}", "src/a.py", f"/tmp/{note}"):
        assert SYNC_REASON == judged(project, "Edit", {"file_path": path}, mode="sync").reason


@pytest.mark.parametrize("tool", ["Bash", "Monitor"])
def test_a_shell_tool_is_judged_by_its_command(project: Path, tool: str) -> None:
    """A command is parsed; a missing one is allowed, another type is denied (AUT-163)."""
    assert judged(project, tool, {"command": "ls -la", "description": "rm -rf /"}).is_allowed
    assert judged(project, tool, {}).is_allowed
    assert judged(project, tool, {"command": ""}).is_allowed
    assert judged(project, tool, {"command": " \n"}).is_allowed
    for command in (1, ["ls"], {"a": "ls"}, True):
        assert "not a string" in judged(project, tool, {"command": command}).reason
    verdict = judged(project, tool, {"command": "ls && rm -rf /"})
    assert ["ls", "rm -rf /"] == [part.text for part in verdict.parts]
    assert [True, False] == [part.is_allowed for part in verdict.parts]
    assert "Command 'rm' is not in the allowlist" in verdict.reason


def test_unparsable_commands_are_denied(project: Path) -> None:
    """A command that is not bash is denied as a whole, at every level."""
    for level in ("roles", "full"):
        verdict = judged(project, "Bash", {"command": "echo $("}, level=level)
        assert "deny" == verdict.decision
        assert verdict.parts[0].text


def test_no_tool_leaves_the_sandbox(project: Path) -> None:
    """No command may turn the sandbox off."""
    data = {"command": "ls", "dangerouslyDisableSandbox": True}
    assert "sandbox" in judged(project, "Bash", data).reason
    assert judged(project, "Bash", data | {"dangerouslyDisableSandbox": False}).is_allowed
    assert not judged(project, "Bash", data | {"dangerouslyDisableSandbox": "yes"}).is_allowed


@pytest.mark.parametrize("level", ["roles", "full"])
def test_powershell_and_worktrees_are_refused(project: Path, level: str) -> None:
    """PowerShell and tools that leave the project are denied."""
    assert "Bash" in judged(project, "PowerShell", {"command": "ls"}, level=level).reason
    assert "deny" == judged(project, "EnterWorktree", {"name": "x"}, level=level).decision


@pytest.mark.parametrize(
    ("tool", "data"),
    [
        ("mcp__fs__move_file", {"source": "a", "destination": ".autonoe/x"}),
        ("mcp__fs__move_file", {"source": ".git/hooks/a", "destination": "a"}),
        ("mcp__fs__write_file", {"path": "/etc/passwd", "content": "x"}),
        ("mcp__fs__write_file", {"path": "state/x"}),
        ("mcp__fs__write_file", {"filePath": ".AUTONOE"}),
        ("mcp__fs__write_file", {"uri": "file://{project}/.git/config"}),
        ("mcp__fs__write_files", {"files": [{"name": "a"}, {"name": ".claude/settings.json"}]}),
        ("mcp__x__do", {"a": {"b": [["src/../.mcp.json"]]}}),
        ("mcp__shell__run", {"command": "rm -rf '.autonoe'"}),
        ("mcp__shell__run", {"args": ["-c", "echo > .git/config"]}),
        ("mcp__x__create", {"path": "../x"}),
        ("mcp__fs__search_and_replace", {"path": ".git/config"}),
        ("mcp__fs__getOrCreateFile", {"path": ".autonoe/status.json"}),
    ],
)
@pytest.mark.parametrize("level", ["roles", "full"])
def test_server_tools_with_protected_paths(
    project: Path, tool: str, data: dict[str, Any], level: str
) -> None:
    """Protected paths and paths out of the project are denied, at any depth and in any spelling."""
    data = {
        key: value.format(project=project) if isinstance(value, str) else value
        for key, value in data.items()
    }
    assert "deny" == judged(project, tool, data, level=level).decision


@pytest.mark.parametrize(
    ("tool", "data"),
    [
        ("mcp__fs__read_file", {"path": ".autonoe/status.json"}),
        ("mcp__fs__get_info", {"path": "/etc"}),
        ("mcp__fs__write_file", {"path": "src/a.py", "content": "see .autonoe/x and .git"}),
        ("mcp__fs__write_file", {"path": "/tmp/a"}),
        ("mcp__playwright__browser_navigate", {"url": "http://localhost:3000/.git/config"}),
        ("mcp__playwright__browser_click", {"element": "Save", "ref": "e12"}),
        ("mcp__issues__create", {"title": "Guard .git/ and .claude/", "body": "a\n.autonoe/x\n"}),
        ("mcp__issues__create", {"labels": ["ui/login", "a.b"]}),
        ("mcp__autonoe-deliverable__create_deliverable", {"deliverables": [{"id": ".autonoe/x"}]}),
        ("mcp__db__query", {"sql": "select '/etc/passwd'"}),
        ("mcp__shell__run", {"command": "npm test"}),
    ],
)
def test_other_server_tools_are_allowed(project: Path, tool: str, data: dict[str, Any]) -> None:
    """Reading, prose, addresses, project files and the loop's own tools are allowed."""
    verdict = judged(project, tool, data)
    assert "allow" == verdict.decision, verdict.reason


def test_server_tools_of_a_limited_role(project: Path) -> None:
    """A reviewing agent's servers may write its review but no source."""
    tool = "mcp__fs__write_file"
    assert of_role(project, "reviewing", tool, {"path": ".cuggino/wip/x.review.md"}).is_allowed
    assert not of_role(project, "reviewing", tool, {"path": "a.py"}).is_allowed
    assert not of_role(project, "reviewing", tool, {"name": "src/a.py"}).is_allowed
    assert of_role(project, "implementing", tool, {"name": "src/a.py"}).is_allowed


def test_unknown_tools(project: Path) -> None:
    """An unknown tool is denied at level `full`; at level `roles` its paths are checked."""
    assert "not known" in judged(project, "NewTool", {"x": 1}).reason
    assert judged(project, "NewTool", {"x": "src/a.py"}, level="roles").is_allowed
    assert not judged(project, "NewTool", {"x": ".git/config"}, level="roles").is_allowed
    assert not judged(project, "bash", {"command": "rm .git/config"}, level="roles").is_allowed


@pytest.mark.parametrize("role", ["planning", "reviewing", "audit"])
def test_limited_roles_may_not_write_source(project: Path, role: PermissionSet) -> None:
    """Every tool denies it, naming the role and the files it may write."""
    for tool, data in (
        ("Write", {"file_path": f"{project}/src/a.py"}),
        ("NotebookEdit", {"notebook_path": "src/a.ipynb"}),
        ("Bash", {"command": "echo x > src/a.py"}),
        ("Bash", {"command": "ls; (cd src && tee a.py < b)"}),
        ("Bash", {"command": "sed -i s/a/b/ src/a.py"}),
    ):
        verdict = of_role(project, role, tool, data)
        assert "deny" == verdict.decision
        assert f"the {role} agent may write" in verdict.reason


def test_an_internal_error_denies(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An internal error denies the call and is the reason."""
    assert not judged(project, "Write", [1, 2]).is_allowed
    assert not judged(project, "Write", None).is_allowed
    missing = tools.judge(
        Policy(project=str(project)), "Bash", {"command": "ls"}, "", shfmt="/no/shfmt"
    )
    assert "deny" == missing.decision

    def fail(*args: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(tools, "Paths", fail)
    verdict = judged(project, "Write", {"file_path": "a"})
    assert "deny" == verdict.decision
    assert "RecursionError" in verdict.reason


def test_relative_paths_without_a_folder_are_denied(project: Path) -> None:
    """Without the agent's folder only absolute paths are allowed."""
    policy = Policy(project=str(project))
    relative = tools.judge(policy, "Write", {"file_path": "a"}, "", shfmt=PARSER)
    absolute = tools.judge(policy, "Write", {"file_path": f"{project}/a"}, "", shfmt=PARSER)
    assert ["deny", "allow"] == [relative.decision, absolute.decision]


def test_a_sandbox_that_confines_the_session_decides_about_files(project: Path) -> None:
    """The guard's own files stay its own, and level `full` judges every path."""
    policy = role_policy("reviewing", project=project, level="roles")._replace(confined=True)
    own = policy._replace(protected=(*policy.protected, "verdicts-1.log"))
    call = {"file_path": f"{project}/src/a.py"}
    log = {"file_path": "/tmp/verdicts-1.log"}
    found = [
        tools.judge(one, "Write", data, str(project), shfmt=PARSER).decision
        for one in (own, own._replace(confined=False), own._replace(level="full"))
        for data in (call, log)
    ]
    assert ["allow", *["deny"] * 5] == found


HARMLESS = words(
    "Read Grep Glob LS NotebookRead TodoRead TodoWrite WebFetch WebSearch LSP BashOutput KillShell"
    " KillBash TaskOutput TaskStop AgentOutputTool Agent Task TaskCreate TaskGet TaskList"
    " TaskUpdate ListAgents SendMessage Workflow Skill SlashCommand ToolSearch ReportFindings"
    " StructuredOutput AskUserQuestion EnterPlanMode ExitPlanMode ExitWorktree ListMcpResourcesTool"
    " ReadMcpResourceTool CronCreate CronDelete CronList ScheduleWakeup Sleep PushNotification"
)
PLACES = words(
    "path paths file files filename filepath dir directory folder dest destination out_path"
    " target-file sourcePath targetFile logFilename outDir aDirectory myFolder theDestination"
    " target source src dst output out to from"
)
READERS = words(
    "get_x list_x search_x find_x query_x fetch_x view_x show_x describe_x stat_x grep_x glob_x"
    " tree_x count_x check_x look_x lookup_x resolve_x inspect_x read_x getX browser_navigate"
    " browser_click browser_snapshot browser_console browser_network browser_wait browser_resize"
    " browser_close browser_tab browser_hover browser_type browser_press"
)
OTHERS = words(
    "write_x delete_x browser_run browser_evaluate browser_install browser_file browser_pdf"
    " browser_take getter listen"
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Create one project for all calls."""
    return str(make_project(tmp_path_factory.mktemp("tools") / "home" / "project"))


def decided(policy: Policy, tool: str, data: dict[str, object]) -> str:
    return judge(policy, tool, data, policy.project, shfmt=SHFMT).decision


@pytest.mark.parametrize("role", PERMISSION_SETS)
def test_tools_that_read_or_plan(shared: str, role: PermissionSet) -> None:
    """Tools that read, plan or start agents are allowed for every role, with any arguments."""
    data: dict[str, object] = {"path": f"{shared}/.autonoe", "prompt": "rm -rf .git"}
    data |= {"file_path": ".git/config", "command": "rm -rf .git"}
    policy = role_policy(role, project=Path(shared), level="roles")
    assert [] == [tool for tool in HARMLESS if decided(policy, tool, data) != "allow"]
    limited = policy._replace(level="full", writable=())
    assert [] == [tool for tool in HARMLESS if decided(limited, tool, data) != "allow"]


def test_path_arguments(shared: str) -> None:
    """A path argument must be writable for a tool that may write."""
    policy = Policy(shared, level="roles")
    found = [key for key in PLACES if decided(policy, "mcp__x__write", {key: "/etc/x"}) != "deny"]
    assert [] == found
    assert "allow" == decided(policy, "mcp__x__write", {"note": "/etc/x", "path": "src/x"})


def test_script_arguments(shared: str) -> None:
    """Every word of a script is checked, in any language."""
    policy = Policy(shared, level="roles")
    keys = words("command cmd script code arg args argument argv shell")
    data = [{key: "x; rm -rf .git/x"} for key in keys]
    assert ["deny"] * len(data) == [decided(policy, "mcp__x__run", dict(one)) for one in data]


def test_reading_tools_of_servers(shared: str) -> None:
    """Tools of servers count as reading by a whole word of their name only."""
    policy = Policy(shared, level="roles")
    data: dict[str, object] = {"path": ".git/x"}
    assert [] == [name for name in READERS if decided(policy, f"mcp__x__{name}", data) != "allow"]
    assert [] == [name for name in OTHERS if decided(policy, f"mcp__x__{name}", data) != "deny"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/project/../x", True),
        ("/home/a/../project", True),
        ("/home/./project//x", True),
        ("/home/projects", False),
        ("/home/a/project", False),
        ("/home", False),
    ],
)
def test_paths_that_enter_a_folder(path: str, expected: bool) -> None:
    """A path enters a folder even if it leaves it again."""
    assert expected == passes(path, "/home/project")
    assert passes(str(Path(path)), "/")
