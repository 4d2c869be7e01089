"""Packages with agents, installed into a folder as an installer would."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

AGENT = dedent('''\
    """An agent of another package."""

    from reactivex import Observable, empty

    from cuggino.agents import Capabilities, SpawnOptions
    from cuggino.errors import AgentNotFound
    from cuggino.events import LlmAgentEvent


    class Agent:
        name = "theirs"

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
    ''')
"""The module of a package with a working agent."""


def install(
    folder: Path, name: str, source: str, *, agents: Mapping[str, str] | None = None
) -> Path:
    """Install the package into the folder; by default its one entry point has its name.

    Return the folder, which belongs on the module search path.
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
