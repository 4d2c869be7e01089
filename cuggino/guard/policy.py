"""The rules of one agent session."""

from __future__ import annotations

import json
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

Level: TypeAlias = Literal["roles", "full"]
"""`roles`: any program may run; files of tools by the role. `full`: only listed programs too."""

Mode: TypeAlias = Literal["run", "sync"]
"""`sync` is for sessions that read and verify but change nothing (AUT-139, AUT-223)."""

PROTECTED = (".autonoe", ".cuggino", ".cuggino.json", ".git", ".claude", ".mcp.json")
"""Files and folders of a project that no tool may write unless the role is granted them.

cuggino itself runs the commands in `.cuggino.json`, outside of the guard.
"""

OWN_SERVERS = ("mcp__autonoe-deliverable__", "mcp__cuggino-")
"""Prefixes of cuggino's own tools."""


class Policy(NamedTuple):
    """The rules of one session. Built once and passed to the hook as JSON; paths are absolute."""

    project: str
    """The real path of the project's folder."""
    level: Level = "full"
    role: str = ""
    """The role's name, used in messages only."""
    mode: Mode = "run"
    profiles: tuple[str, ...] | None = None
    """The language profiles besides base; None for all."""
    extra_commands: tuple[str, ...] = ()
    """Programs that the user allows (AUT-139)."""
    pkill_targets: tuple[str, ...] = ()
    """Process names that the user allows `pkill` to end, besides those of the profiles."""
    allow_destructive: bool = False
    """True if the user allows `rm` and `mv`, discarding work, pushing and publishing."""
    protected: tuple[str, ...] = PROTECTED
    """Relative to the project; a folder covers everything in it."""
    read_only: tuple[str, ...] = ()
    """More read-only paths, such as the specifications, relative to the project."""
    writable: tuple[str, ...] | None = None
    """The only files and folders of the project that may be written; None for all."""
    granted: tuple[str, ...] = ()
    """Protected paths that may be written all the same, such as the planner's plan file."""
    rules: tuple[str, ...] | None = None
    """Permission rules, which decide about tools that neither run commands nor write files (see
    `rules`); None allows these tools, and reading outside the project."""
    apart: tuple[str, ...] = ()
    """Folders around the project, if it is a slot: the user's project and the other slots. They may
    not be written, and nothing may be pushed."""
    variables: tuple[str, ...] = ()
    """Environment variables as `NAME=value`: commands can rely on them and may not change them."""
    confined: bool = False
    """True if a sandbox certainly limits what every program of the session can write; then level
    `roles` leaves the paths of writes to it and judges acts alone."""

    @property
    def judges_paths(self) -> bool:
        """True if the guard judges the paths of writes."""
        return self.level == "full" or not self.confined

    def known(self) -> dict[str, str]:
        return dict(variable.split("=", 1) for variable in self.variables)

    def to_json(self) -> str:
        """Serialize as one line of ASCII."""
        return json.dumps(self._asdict(), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Policy:
        """Parse the output of `to_json`.

        Raises:
            ValueError: the text is anything else.
        """
        data: Any = json.loads(text)
        if not isinstance(data, dict) or set(data) != set(cls._fields):
            raise ValueError("no policy of this version")
        for key, value in data.items():
            default = cls._field_defaults.get(key, "")
            if isinstance(default, str | bool):
                if type(value) is not type(default):
                    raise ValueError(f"{key} is no {type(default).__name__}")
            elif value is not None or default is not None:
                if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                    raise ValueError(f"{key} is no list of texts")
                data[key] = tuple(value)
        if not all("=" in variable for variable in data["variables"]):
            raise ValueError("a variable has no value")
        if data["level"] not in get_args(Level) or data["mode"] not in get_args(Mode):
            raise ValueError("unknown level or mode")
        return cls(**data)
