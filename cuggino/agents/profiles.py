"""Profiles of programs of the Agent Client Protocol: their commands, modes, tools and formats.

They are outside of `cuggino.agents.acp`, as the models of the protocol take longer to import than
the rest of a command that only lists the programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from cuggino.config import CONFIG_FILE, AcpProgram, load_config
from cuggino.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A program that implements the Agent Client Protocol."""

    name: str
    """Name after `acp:`."""
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of every session."""
    overrides: Mapping[str, object] = field(default_factory=dict)
    """Settings for every session, which override the user's and the project's."""
    overrides_variable: str = ""
    """The variable that names the file with these settings."""
    overrides_file: str = ""
    """An administrator's file of such settings; if it exists, `overrides` do not apply."""
    install: str = ""
    """The command that installs the program."""
    least: tuple[int, ...] = ()
    """Oldest tested version, as `--version` prints it; () requires none."""
    asks: bool = False
    """True if it asks before each call that changes something, in this `mode`."""
    mode: str | None = None
    """The session mode in which it asks; None keeps the program's own."""
    system_prompt: str = ""
    """Its option that appends a text to the system prompt. Without one, or if the text is too long
    for an argument, the text is prepended to the first prompt."""
    arguments: Literal["input", "text"] = "input"
    """The location of a call's arguments: `rawInput`, or JSON in the text of the `tool_call`."""
    names: Literal["meta", "title"] = "meta"
    """The location of a tool's name: `_meta`, or the title of the `tool_call`."""
    tools: Mapping[str, str] = field(default_factory=dict)
    """Claude Code's names for its tools; others are named by their kind."""
    sub_agents: tuple[str, ...] = ()
    """Sub-agents whose calls it asks about; () means all of them."""
    foreground: str = ""
    """The input that must be false in a sub-agent's call, as the session ends with its turn."""
    own_files: tuple[str, ...] = ()
    """Files that it writes without asking, as patterns relative to the home folder."""
    unrun: str = ""
    """The start of the result of a call that it reports as failed but never ran."""
    silencing: tuple[str, ...] = ()
    """Files of a project that make the program stop asking."""
    usage: Literal["none", "requests", "turns", "session"] = "none"
    """The scope of its token counts: each request (in `_meta` of a chunk), or each turn or the
    whole session (in the response to a prompt)."""
    cost: Literal["dollars", "tokens", "none"] = "none"
    """Unit in which it is known to report usage."""
    state: tuple[str, ...] = ()
    """Folders that it writes, relative to the home folder."""
    settings: tuple[str, ...] = ()
    """Files in its first state folder that decide what later sessions run."""
    note: str = ""


def _tools(same: str = "", **others: str) -> Mapping[str, str]:
    """Return the table of tools: names that are Claude Code's, and the program's own, by those."""
    table = {name: name for name in same.split()}
    return table | {own: name for name, owns in others.items() for own in owns.split()}


QWEN = Profile(
    name="qwen",
    command=(
        *("qwen", "--acp", "--exclude-tools", "ask_user_question"),
        # A person would have to end the mode again.
        *("--exclude-tools", "enter_plan_mode", "--exclude-tools", "exit_plan_mode"),
    ),
    # Without the second one the session begins before the tools of its servers are there.
    env=MappingProxyType({"QWEN_DISABLE_AUTO_TITLE": "1", "QWEN_CODE_LEGACY_MCP_BLOCKING": "1"}),
    overrides=MappingProxyType(
        {
            # It would wait for up to an hour more; the loop waits for quota itself.
            "model": {"generationConfig": {"maxRetries": 0}},
            # Requests to the model besides those of the session.
            "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
            "ui": {"enableFollowupSuggestions": False},
        }
    ),
    overrides_variable="QWEN_CODE_SYSTEM_SETTINGS_PATH",
    overrides_file="/etc/qwen-code/settings.json",
    install="npm install -g @qwen-code/qwen-code",
    least=(0, 24, 4),
    asks=True,
    mode="default",
    system_prompt="--append-system-prompt",
    tools=_tools(
        AskUserQuestion="ask_user_question",
        Bash="run_shell_command",
        Glob="glob",
        Grep="grep_search",
        LS="list_directory",
        ListAgents="list_agents",
        Read="read_file",
        Skill="skill",
        Task="agent",
        TaskStop="task_stop",
        TodoRead="get_goal",
        TodoWrite="save_memory todo_write update_goal",
        ToolSearch="tool_search",
        WebFetch="web_fetch",
        WebSearch="web_search",
    ),
    # Others are agents of their own, such as Claude Code, started without any guard.
    sub_agents=("general-purpose", "Explore", "review-agent"),
    foreground="run_in_background",
    silencing=(".qwen",),
    unrun="Skipped because a permission request was cancelled before the user answered",
    usage="requests",
    cost="tokens",
    state=(".qwen",),
    settings=("settings.json", "extensions", "skills", "agents", "commands"),
)

KIMI = Profile(
    name="kimi",
    command=("kimi", "acp"),
    env=MappingProxyType({"KIMI_LOOP_MAX_ATTEMPTS_PER_STEP": "3"}),
    install="npm install -g @moonshot-ai/kimi-code",
    least=(2, 1, 0),
    asks=True,
    mode="default",
    arguments="text",
    names="title",
    tools=_tools(
        "AskUserQuestion Bash CronList Edit EnterPlanMode ExitPlanMode Glob Grep Read Skill"
        " TaskList TaskOutput TaskStop WebSearch Write",
        Read="ReadMediaFile",
        Task="Agent AgentSwarm",
        TaskOutput="WaitFor",
        TodoRead="GetGoal",
        TodoWrite="CreateGoal SetGoalBudget TodoList UpdateGoal",
        WebFetch="FetchURL",
    ),
    own_files=(".kimi-code/sessions/*/plans/*.md",),
    state=(".kimi-code",),
    settings=("config.toml", "mcp.json"),
    note="reports neither tokens nor cost",
)

VIBE = Profile(
    name="vibe",
    command=("vibe-acp",),
    env=MappingProxyType(
        {"VIBE_API_RETRY_MAX_ELAPSED_TIME": "15", "VIBE_SESSION_LOGGING__GENERATE_TITLES": "false"}
    ),
    install="pip install mistral-vibe",
    least=(3, 0, 2),
    asks=True,
    mode="ask",
    tools=_tools(Bash="bash", Grep="grep", Read="read", TodoWrite="todo"),
    usage="session",
    cost="dollars",
    state=(".vibe",),
)

PROFILES: Mapping[str, Profile] = MappingProxyType({one.name: one for one in (QWEN, KIMI, VIBE)})
"""Profiles that come with cuggino, each tested with the real program."""


def profile_of(
    name: str, programs: Mapping[str, AcpProgram] | None = None, *, cwd: Path
) -> Profile:
    """Return the profile of that name; None for `programs` takes those of the configuration.

    Raises:
        ConfigError: the profile does not exist, or the configuration is broken.
    """
    known = PROFILES.get(name)
    own = load_config(cwd).acp if programs is None and known is None else programs or {}
    if known is not None:
        if name in own:
            raise ConfigError(
                f'{CONFIG_FILE}: "acp.{name}" comes with cuggino',
                hint='choose another name, or give the program as "agentPath"',
            )
        return known
    if name not in own:
        names = ", ".join(f"acp:{one}" for one in (*PROFILES, *own))
        raise ConfigError(
            f'unknown agent "acp:{name}"',
            hint=f'available: {names}; or define it as "acp" (see `cuggino help providers`)',
        )
    given = own[name]
    program, *words = given.command
    # A path in the file is relative to it, as sessions run in other folders.
    first = str(cwd / program) if "/" in program else program
    return Profile(
        name=name,
        command=(first, *words),
        env=MappingProxyType(given.env),
        asks=given.asks,
        mode=given.mode,
        usage="turns",
        note="defined by the project",
    )
