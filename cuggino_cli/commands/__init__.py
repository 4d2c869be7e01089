"""The subcommands: each is `command` in the module that `module_of` names."""

from __future__ import annotations

from collections.abc import Mapping
from keyword import iskeyword
from types import MappingProxyType

SELDOM = "Seldom needed"
GROUPS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "Start here": {
            "demo": "Watch a whole run in a throw-away project; no key needed.",
            "setup": "Save the settings of this project in .cuggino.json.",
            "doctor": "Check that a run can work here.",
            "run": "Plan, implement and review until the work matches the specs.",
            "plan": "Talk with a project manager about specs and backlog (also: pm).",
            "help": "Explain a command, a topic or a word.",
        },
        "While it runs": {
            "status": "Show what runs in a project, and what waits for you.",
            "follow": "Show a run from its beginning, then live, until it ends.",
            "top": "Show all runs of this machine on one screen, and act on them.",
            "serve": "Show what runs here, and what waits for you, as a live page.",
            "approve": "Approve a plan, work before it lands, or spending more.",
            "reject": "Reject a plan, work before it lands, or spending more.",
            "steer": "Send a message to the agent of the run.",
            "pause": "Pause the run after its current stage.",
            "continue": "Continue a paused run.",
            "stop": "End the run after its current stage; it can be resumed.",
        },
        "Afterwards": {
            "report": "Write a page about a run or a night.",
            "runs": "List or compare the runs of this project, show one, or replay it.",
            "issues": "List and settle spec issues and audit findings.",
            "undo": "Restore the files as they were before a run or a stage.",
        },
        "Several at once": {
            "watch": "Work through the backlog, item by item, until stopped.",
            "backlog": "Add, show, import, retry and remove items of the backlog.",
            "skip": "Park the item that the watch works on, or leave a task undone, at once.",
        },
        "For programs": {
            "guard": "Ask the guard about an agent's tool calls; nothing is run.",
            "mcp": "Serve tools to an agent over standard input and output (MCP).",
        },
        SELDOM: {
            "deliver": "Work until every deliverable of SPEC.md has passed.",
            "loop": "Plan the work into jobs, then build them one by one until all are verified.",
            "agents": "List the installed agents and their capabilities.",
            "trust": "Accept what a project starts or allows.",
            "snapshots": "List the states of the project that `cuggino undo` can restore.",
            "slots": "List the clones of `watch --slots` and `run --hands`, and clean them up.",
            "cluster": "Start a cluster for trying one, and check the workers of one.",
            "simulate": "Compare the loops with agents and a check that fail by chance.",
        },
    }
)
"""The subcommands by use, each with the first line of its help: listing them imports none."""

COMMANDS: Mapping[str, str] = MappingProxyType(
    {name: about for group in GROUPS.values() for name, about in group.items()}
)
"""All subcommands."""

ALIASES = {"pm": "plan"}
"""Other names of subcommands."""


def module_of(name: str) -> str:
    """Return the module of a subcommand; Python reserves some of their names."""
    return f"{__name__}.{name}{'_' if iskeyword(name) else ''}"
