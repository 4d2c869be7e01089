"""The rules of one agent session: what its tools may do."""

from __future__ import annotations

import json
from typing import Any, Literal, NamedTuple, TypeAlias

Level: TypeAlias = Literal["roles", "full"]
"""`roles`: files by the role's permissions, any program. `full`: only listed programs too."""

Mode: TypeAlias = Literal["run", "sync"]
"""`sync` is for sessions that look and judge but change nothing (AUT-139, AUT-223)."""

PROTECTED = (".autonoe", ".cuggino", ".cuggino.json", ".git", ".claude", ".mcp.json")
"""What no tool may write in a project, but what a role is given.

The commands in `.cuggino.json` are run by cuggino itself, where no guard looks.
"""


class Policy(NamedTuple):
    """What one session may do. Built once, handed to the hook as JSON; paths are absolute."""

    project: str
    """The real path of the project's folder."""
    level: Level = "full"
    role: str = ""
    """For the sentences only: who is told no."""
    mode: Mode = "run"
    profiles: tuple[str, ...] | None = None
    """The language profiles besides base; None for all."""
    extra_commands: tuple[str, ...] = ()
    """Programs that the user has allowed (AUT-139)."""
    pkill_targets: tuple[str, ...] = ()
    """Process names that the user lets `pkill` end, besides those of the profiles."""
    allow_destructive: bool = False
    """Whether `rm` and `mv` may be used within the project, and git may throw work away."""
    protected: tuple[str, ...] = PROTECTED
    """Relative to the project; a folder means all in it."""
    read_only: tuple[str, ...] = ()
    """More that may not be written, such as the specifications: relative to the project."""
    writable: tuple[str, ...] | None = None
    """The only files and folders of the project that may be written; None for all of it."""
    granted: tuple[str, ...] = ()
    """What may be written though it is protected, such as the plan file of a planner."""
    scoped_reads: bool = False
    """Whether the agent's own rules decide what its file tools read, which is the project's files
    and what those rules name; else they read anything."""
    variables: tuple[str, ...] = ()
    """`NAME=value` for each variable that commands can rely on, and may not change."""

    def known(self) -> dict[str, str]:
        """The variables by name."""
        return dict(variable.split("=", 1) for variable in self.variables)

    def to_json(self) -> str:
        """As one line, in ASCII."""
        return json.dumps(self._asdict(), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Policy:
        """Read what `to_json` wrote.

        Raises:
            ValueError: it is something else; nothing is guessed.
        """
        data: Any = json.loads(text)
        if not isinstance(data, dict) or set(data) != set(cls._fields):
            raise ValueError("no policy of this version")
        lists = ("profiles", "extra_commands", "pkill_targets", "protected", "read_only")
        for key in (*lists, "writable", "granted", "variables"):
            value = data[key]
            if value is None and key in ("profiles", "writable"):
                continue
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise ValueError(f"{key} is no list of texts")
            data[key] = tuple(value)
        if not all(isinstance(data[key], str) for key in ("project", "role")):
            raise ValueError("project or role is no text")
        if not all("=" in variable for variable in data["variables"]):
            raise ValueError("a variable has no value")
        if data["level"] not in ("roles", "full") or data["mode"] not in ("run", "sync"):
            raise ValueError("unknown level or mode")
        for key in ("allow_destructive", "scoped_reads"):
            if not isinstance(data[key], bool):
                raise ValueError(f"{key} is neither true nor false")
        return cls(**data)
