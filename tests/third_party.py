"""Packages that bring agents, installed into a folder as an installer does it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

AGENT = dedent('''\
    """An agent of somebody else."""

    from reactivex import Observable, empty

    from cuggino.agents import Capabilities, InteractiveOptions, SpawnOptions
    from cuggino.errors import AgentNotFound
    from cuggino.events import LlmAgentEvent


    class Agent:
        name = "theirs"
        can_resume = False

        def __init__(self, *, path: str | None = None, argument: str | None = None) -> None:
            self.path, self.argument = path, argument

        @property
        def capabilities(self) -> Capabilities:
            return Capabilities(mcp=True, cost="tokens", note="of a small house")

        def check(self) -> str:
            if self.path == "nowhere":
                raise AgentNotFound("theirs was not found", hint="install it by hand")
            return "7.1"

        def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
            return empty()

        def interactive(self, options: InteractiveOptions) -> int:
            return 0
    ''')
"""The module of a package whose agent is well."""


def install(
    folder: Path, name: str, source: str, *, agents: Mapping[str, str] | None = None
) -> Path:
    """Put the package into the folder; `agents` are its entry points, by default one of its name.

    Gives the folder, which is to be among the places for modules.
    """
    module = name.replace("-", "_")
    (folder / f"{module}.py").write_text(source, encoding="utf-8")
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    (info / "METADATA").write_text(about, encoding="utf-8")
    (info / "RECORD").write_text("", encoding="utf-8")
    lines = [f"{key} = {value}" for key, value in (agents or {name: f"{module}:Agent"}).items()]
    points = "[cuggino.agents]\n" + "\n".join(lines) + "\n"
    (info / "entry_points.txt").write_text(points, encoding="utf-8")
    return folder
