"""Copilot's tools with Claude Code's names, which events, policies and reports use."""

from __future__ import annotations

from cuggino.agents.base.calls import Tools

_NAMES = {
    "bash": "Bash",
    "view": "Read",
    "create": "Write",
    "edit": "Edit",
    "apply_patch": "MultiEdit",
    "grep": "Grep",
    "rg": "Grep",
    "glob": "Glob",
    "web_fetch": "WebFetch",
    "web_search": "WebSearch",
    "semantic_code_search": "WebSearch",
    "task": "Task",
    "skill": "Skill",
    "sql": "TodoWrite",
    "update_todo": "TodoWrite",
    "report_intent": "TodoWrite",
    "read_bash": "BashOutput",
    "list_bash": "BashOutput",
    "stop_bash": "KillShell",
    "read_agent": "TaskOutput",
    "list_agents": "ListAgents",
    "write_agent": "SendMessage",
    "send_inbox": "SendMessage",
    "context_board": "SendMessage",
    "task_complete": "TaskUpdate",
    "exit_plan_mode": "ExitPlanMode",
    "tool_search": "ToolSearch",
    "fetch_copilot_cli_documentation": "WebFetch",
}
"""Copilot's own tools. `sql` queries a database of the session, in which it keeps its tasks; the
program itself refuses to attach another one. `write_bash`, which types into a running shell, is
left out, so it is unknown."""

_INPUTS = {
    "Read": {"path": "file_path"},
    "Write": {"path": "file_path", "file_text": "content"},
    "Edit": {"path": "file_path", "old_str": "old_string", "new_str": "new_string"},
    "Grep": {"paths": "path"},
    "Glob": {"paths": "path"},
    "Task": {"agent_type": "subagent_type"},
}
"""Inputs whose names differ."""

TOOLS = Tools(
    names=_NAMES,
    inputs=_INPUTS,
    shell_keys=("command", "description", "shellId", "mode", "detach", "initial_wait"),
    prefix="{server}-",
    # It comes with the program for users who are logged in.
    servers=("github-mcp-server",),
)
