"""The demo as a run of any agent, and its outcome."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import cuggino
from cuggino import LlmAgent, Runtime, events as ev
from cuggino.agents.scripted.scenario import load_scenario
from tests.model_server import ModelServer
from tests.real_claude import clean_env

DEMO = Path(cuggino.__file__).parents[1] / "cuggino_cli" / "demo" / "scenario.toml"
SCENARIO = load_scenario(DEMO).model_copy(update={"pause": 0.0})
FOCUS = "the temperature conversions of .specs/temperature.md"


@dataclass(frozen=True)
class Played:
    """A run of the demo: its events and the resulting project."""

    folder: Path
    events: list[ev.Event]

    @property
    def story(self) -> list[tuple[str, str]]:
        """Everything but the agents' own events, with the texts that depend on nothing else."""
        return [
            (event.tag, _text(event)) for event in self.events if not ev.is_llm_agent_event(event)
        ]

    @property
    def sessions(self) -> list[ev.SessionEnded]:
        return [event for event in self.events if isinstance(event, ev.SessionEnded)]

    @property
    def files(self) -> dict[str, str]:
        """The working tree, without caches and what belongs to the tools."""
        return {
            str(path.relative_to(self.folder)): path.read_text()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and not {".git", ".cuggino", "__pycache__"} & set(path.parts)
        }

    @property
    def subjects(self) -> list[str]:
        log = ["git", "-C", str(self.folder), "log", "--reverse", "--format=%s"]
        return subprocess.check_output(log, text=True).splitlines()

    @property
    def session_files(self) -> list[Path]:
        return list((self.folder / ".cuggino" / "wip").iterdir())


def _text(event: ev.Event) -> str:
    match event:
        case ev.LlmMarkerEvent():
            return event.content
        case ev.CommitPerformed():
            return event.message
        case _:
            return ""


def play(folder: Path, agent: LlmAgent) -> Played:
    """Run the demo in this process."""
    events: list[ev.Event] = []
    cuggino.run(Runtime.live(cwd=folder, agent=agent).run(focus=FOCUS), events.append)
    return Played(folder, events)


def agent_env(home: Path, server: ModelServer) -> dict[str, str]:
    """Return the environment of Claude Code, with the Python of the demo's checks."""
    return {**clean_env(home, server.url), "CUGGINO_PYTHON": sys.executable}
