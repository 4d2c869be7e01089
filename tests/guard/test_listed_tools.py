"""Every known tool of an agent, and every argument that names a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.guard.commands.wordlist import words
from cuggino.guard.places import passes
from cuggino.guard.policy import Policy
from cuggino.guard.tools import judge
from tests.guard.judging import SHFMT, make_project

HARMLESS = words(
    "Read Grep Glob LS NotebookRead TodoRead TodoWrite WebFetch WebSearch LSP BashOutput KillShell"
    " KillBash TaskOutput TaskStop AgentOutputTool Agent Task TaskCreate TaskGet TaskList"
    " TaskUpdate ListAgents SendMessage Workflow Skill SlashCommand ToolSearch ReportFindings"
    " StructuredOutput AskUserQuestion EnterPlanMode ExitPlanMode ExitWorktree ListMcpResourcesTool"
    " ReadMcpResourceTool CronCreate CronDelete CronList ScheduleWakeup Sleep PushNotification"
)
WRITERS = words("Write Edit MultiEdit NotebookEdit")
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
def project(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Create one project for all calls."""
    return str(make_project(tmp_path_factory.mktemp("tools") / "home" / "project"))


def decided(policy: Policy, tool: str, data: dict[str, object]) -> str:
    return judge(policy, tool, data, policy.project, shfmt=SHFMT).decision


def test_tools_that_read_or_plan(project: str) -> None:
    """Tools that read or plan are allowed for every role, with any arguments."""
    policy = Policy(project, writable=(), role="planning")
    data: dict[str, object] = {"path": "/etc/x", "command": "rm -rf .git"}
    assert [] == [tool for tool in HARMLESS if decided(policy, tool, data) != "allow"]


def test_tools_that_write(project: str) -> None:
    """Tools that write are judged by their file, under each of its key names."""
    keys = words("file_path filePath notebook_path notebookPath")
    calls = [(tool, key) for tool in WRITERS for key in keys]
    policy = Policy(project)
    assert ["deny"] * len(calls) == [decided(policy, t, {k: ".git/x"}) for t, k in calls]
    assert ["allow"] * len(calls) == [decided(policy, t, {k: "src/x"}) for t, k in calls]


def test_tools_that_run_commands(project: str) -> None:
    """Both tools of bash are judged; other shells and other worktrees are denied."""
    policy = Policy(project, level="roles")
    assert "deny" == decided(policy, "Bash", {"command": "rm -rf .git"})
    assert "deny" == decided(policy, "Monitor", {"command": "rm -rf .git"})
    assert "deny" == decided(policy, "PowerShell", {"command": "ls"})
    assert "deny" == decided(policy, "EnterWorktree", {})
    assert "deny" == decided(policy, "Bash", {"command": "ls", "dangerouslyDisableSandbox": True})
    assert "allow" == decided(policy, "Bash", {"command": "ls", "dangerouslyDisableSandbox": False})


def test_path_arguments(project: str) -> None:
    """A path argument must be writable for a tool that may write."""
    policy = Policy(project, level="roles")
    found = [key for key in PLACES if decided(policy, "mcp__x__write", {key: "/etc/x"}) != "deny"]
    assert [] == found
    assert "allow" == decided(policy, "mcp__x__write", {"note": "/etc/x", "path": "src/x"})


def test_script_arguments(project: str) -> None:
    """Every word of a script is checked, in any language."""
    policy = Policy(project, level="roles")
    keys = words("command cmd script code arg args argument argv shell")
    data = [{key: "x; rm -rf .git/x"} for key in keys]
    assert ["deny"] * len(data) == [decided(policy, "mcp__x__run", dict(one)) for one in data]


def test_reading_tools_of_servers(project: str) -> None:
    """Tools of servers count as reading by a whole word of their name only."""
    policy = Policy(project, level="roles")
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
