"""The whole guard: decides whether a tool call may run under a policy.

Every call starts it in a new process, so each kind of tool imports only the modules it needs.
"""

from __future__ import annotations

from collections.abc import Mapping

from cuggino.guard.commands.wordlist import words
from cuggino.guard.paths import Paths
from cuggino.guard.policy import Policy
from cuggino.guard.verdict import Verdict, denied

SHELLS = frozenset({"Bash", "Monitor"})
"""Tools whose `command` runs in bash."""

FILE_TOOLS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
"""Tools that write the given file."""

READERS = frozenset({"Read", "Grep", "Glob", "LS", "NotebookRead"})
"""Tools that read the given files."""

HARMLESS = READERS | frozenset(
    words(
        "TodoRead TodoWrite WebFetch WebSearch LSP BashOutput KillShell KillBash TaskOutput"
        " TaskStop AgentOutputTool Agent Task TaskCreate TaskGet TaskList TaskUpdate"
        " ListAgents SendMessage Workflow Skill SlashCommand ToolSearch ReportFindings"
        " StructuredOutput AskUserQuestion EnterPlanMode ExitPlanMode ExitWorktree"
        " ListMcpResourcesTool ReadMcpResourceTool CronCreate CronDelete CronList ScheduleWakeup"
        " Sleep PushNotification"
    )
)
"""Tools that read or plan. Calls of agents that they start are judged separately."""

_REFUSED = {
    "PowerShell": "PowerShell commands cannot be judged here: use Bash",
    "EnterWorktree": "Only changes in the project's own folder count: work there, on its branch",
}


def judge(
    policy: Policy, tool: str, tool_input: Mapping[str, object], cwd: str, *, shfmt: str
) -> Verdict:
    """Judge a tool call, part by part.

    `tool` and `tool_input` use Claude Code's names; `cwd` is the absolute folder in which the agent
    works; `shfmt` is the path of that program. Never raises: an internal error denies the call and
    is the reason.
    """
    try:
        return _judge(policy, tool, tool_input, cwd, shfmt)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"[:200]
        return denied(
            str(tool), f"The guard failed on this call, so it is denied ({what}): simplify it"
        )


def _judge(
    policy: Policy, tool: str, tool_input: Mapping[str, object], cwd: str, shfmt: str
) -> Verdict:
    if not isinstance(tool_input, Mapping):
        return denied(tool, f"The input of {tool} is not an object")
    if tool_input.get("dangerouslyDisableSandbox") not in (None, False):
        return denied(tool, "Commands stay in the sandbox: leave out dangerouslyDisableSandbox")
    if reason := _REFUSED.get(tool):
        return denied(tool, reason)
    paths = Paths(policy)
    if tool in SHELLS:
        return _judge_command(policy, paths, tool, tool_input.get("command"), cwd, shfmt)
    if tool in FILE_TOOLS:
        from cuggino.guard.files import judge_files

        return Verdict(tuple(judge_files(policy, paths, tool, tool_input, cwd)))
    if tool in HARMLESS:
        return Verdict()
    from cuggino.guard.arguments import judge_arguments

    return Verdict(tuple(judge_arguments(policy, paths, tool, tool_input, cwd)))


def _judge_command(
    policy: Policy, paths: Paths, tool: str, command: object, cwd: str, shfmt: str
) -> Verdict:
    if command is None or command == "":
        return Verdict()  # The tool itself refuses it (AUT-163).
    if not isinstance(command, str):
        return denied(tool, "The command is not a string")
    from cuggino.guard.shell.parser import parse
    from cuggino.guard.shell.tree import Refused
    from cuggino.guard.walk import judge_script

    try:
        script = parse(command, shfmt=shfmt, known=policy.known())
    except Refused as refused:
        return denied(refused.part or command, refused.reason)
    cwds = frozenset({cwd} if cwd else ())
    return Verdict(judge_script(script, policy=policy, paths=paths, cwds=cwds, shfmt=shfmt))
