"""Help pages, printed by `cuggino help TOPIC`: Markdown files, rendered as plain text.

The pages about configuration, events, markers, operators and refusals are generated from the code
(`python -m tests.documents`); the others are written by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

TOPICS: Mapping[str, str] = MappingProxyType(
    {
        "start": "from zero to a night, in 600 words",
        "loops": "each loop step by step, its options, limits, resuming, recording",
        "hands": "several agents on the tasks of one goal: what it costs, when it hurts",
        "overnight": "a recipe for a night alone: settings, the morning, after a power cut",
        "attempts": "the same work several times side by side: the first or the best one lands",
        "control": "looking at a run from another terminal, and steering, pausing, stopping it",
        "config": "the keys of .cuggino.json, other files, environment variables",
        "trackers": "a backlog from GitHub, GitLab, Jira or a program, and what comes back there",
        "chat": "questions and reports by Telegram or ntfy, and your answers back",
        "providers": "the agents that do the work, fallbacks, and agents of your own",
        "refusals": "what an agent's error means: waited for, retried, handed to a fallback",
        "safety": "the guard, trust, snapshots and containers",
        "sandbox": "what each role may write, where that holds, what it costs",
        "page": "the live page: starting it, who can use it, other machines",
        "clusters": "working on items on other machines: SSH hosts, Slurm, PBS, Kubernetes",
        "events": "what a run emits, with `--json` and in the library",
        "markers": "how agents report progress with tags in their text",
        "exit-codes": "the exit codes of the loops",
        "library": "cuggino from Python: streams, loops and policies of your own",
        "operators": "the operators of the library, with marble diagrams",
        "effect": "for those who know Effect: its functions, and what serves here",
        "testing": "tests of your own loops, policies and agents",
        "speed": "what cuggino costs in time and memory, and beside what it is measured",
        "evidence": 'what the loops do to an agent that fails, and how often "done" is true',
        "comparison": "cuggino and other tools that run agents in a loop",
        "contributing": "how to change cuggino: set-up, tests, conventions",
    }
)
"""The pages, in reading order, with a short description of each."""


def page(topic: str) -> str:
    """Return the Markdown of a page."""
    return Path(__file__).with_name(f"{topic}.md").read_text(encoding="utf-8")
