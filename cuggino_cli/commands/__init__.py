"""The subcommands: each is `command` in the module that `module_of` names."""

from __future__ import annotations

from collections.abc import Mapping
from keyword import iskeyword
from types import MappingProxyType

COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "run": "Plan, implement and review until the work matches the specs.",
        "watch": "Work through the backlog, item by item, until stopped.",
        "deliver": "Work until every deliverable of SPEC.md has passed.",
        "loop": "Plan the work into jobs, then build them one by one until all are verified.",
        "status": "Show what runs in a project, and what waits for you.",
        "follow": "Show a run from its beginning, then live, until it ends.",
        "steer": "Say something to the agent of the run.",
        "pause": "Let the run stand still after its current stage.",
        "continue": "Let a paused run continue.",
        "stop": "End the run after its current stage; it can be resumed.",
        "skip": "Park the item that the watch works on, at once.",
        "plan": "Talk with a project manager about specs and backlog (also: pm).",
        "backlog": "Add, show, import, retry and remove items of the backlog.",
        "issues": "List and settle spec issues and audit findings.",
        "runs": "List or compare the runs of this project, show one, or replay it.",
        "snapshots": "List the states of the project that `cuggino undo` can restore.",
        "slots": "List the clones that `cuggino watch --slots` works in, and clean them up.",
        "cluster": "Start a cluster for trying one, and check the workers of one.",
        "undo": "Restore the files as they were before a run or a stage.",
        "serve": "Show what runs here, and what waits for you, as a live page.",
        "report": "Write a page about a run: plan, transcripts, diffs, cost, checks and reviews.",
        "demo": "Watch a whole run in a throw-away project; no key needed.",
        "setup": "Save the settings of this project in .cuggino.json.",
        "trust": "Accept what a project starts or allows.",
        "doctor": "Check that a run can work here.",
        "agents": "List the installed agents and their capabilities.",
        "guard": "Ask the guard about an agent's tool calls; nothing is run.",
        "mcp": "Serve tools to an agent over standard input and output (MCP).",
        "help": "Explain a command or a topic.",
    }
)
"""Each subcommand with the first line of its help, so that listing them imports none."""

ALIASES = {"pm": "plan"}
"""Other names of subcommands."""


def module_of(name: str) -> str:
    """Return the module of a subcommand; Python reserves some of their names."""
    return f"{__name__}.{name}{'_' if iskeyword(name) else ''}"
