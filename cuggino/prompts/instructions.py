"""What a session of the deliverables loop is told.

A workflow has two instructions: one that plans, and one that works. The built-in texts are
templates of this package; a project may put its own in their place.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from cuggino.prompts import Prompts

InstructionName: TypeAlias = Literal["initializer", "coding", "sync", "verify"]

OVERRIDES = ".autonoe"
"""Where a project keeps instructions of its own, as `<name>.md`."""


class Workflow(NamedTuple):
    """The instruction that plans, and the one for every session after that (AUT-271)."""

    planning: InstructionName
    working: InstructionName


RUN = Workflow("initializer", "coding")
SYNC = Workflow("sync", "verify")


class Instruction(NamedTuple):
    """What a session is told."""

    name: InstructionName
    text: str
    is_override: bool = False
    """Whether the text is the project's own."""
    warnings: tuple[str, ...] = ()
    """Why the project's own text was not taken, for a person."""


def choose_instruction(workflow: Workflow, *, is_planned: bool) -> InstructionName:
    """The instruction of the next session; to be asked anew before each (AUT-120).

    A run is planned once `.autonoe/status.json` exists, a sync once its planning has ended.
    """
    return workflow.working if is_planned else workflow.planning


def is_planning(name: InstructionName) -> bool:
    """Whether the instruction plans, and so uses the model for planning (AUT-271)."""
    return name in (RUN.planning, SYNC.planning)


def load_instruction(
    name: InstructionName, project: Path, *, tools: Mapping[str, str]
) -> Instruction:
    """The project's own instruction in place of the built-in one, or that (AUT-121).

    `tools` are those that the session has for deliverables, each with the name that the agent sees;
    the built-in text speaks of them by that. The project's own text is taken as it is, without a
    byte order mark and with `\\n` at the ends of lines; it has no variables. One that is blank or
    unreadable is passed over with a warning.

    Raises:
        ConfigError: the built-in text needs a tool that is not among `tools`.
    """
    built_in = Prompts().render(name, tools)
    try:
        text = _own_text(project / OVERRIDES / f"{name}.md")
    except _Unusable as error:
        warning = f"{OVERRIDES}/{name}.md {error}: the built-in instruction is used"
        return Instruction(name, built_in, warnings=(warning,))
    if text is None:
        return Instruction(name, built_in)
    return Instruction(name, text, is_override=True)


class _Unusable(Exception):
    """Why a file that is there is no instruction."""


def _own_text(path: Path) -> str | None:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # the read of a pipe would never end
            raise _Unusable("is not a file")
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        if path.is_symlink():
            raise _Unusable("is a link to nothing") from error
        return None
    except NotADirectoryError:
        return None
    except UnicodeDecodeError as error:
        raise _Unusable(f"is not UTF-8 (byte {error.start})") from error
    except OSError as error:
        raise _Unusable(f"cannot be read ({error.strerror})") from error
    if "\0" in text:
        raise _Unusable("is not a text: it holds a NUL character")
    if not text.strip():
        raise _Unusable("is blank")
    return text.replace("\r\n", "\n").replace("\r", "\n")
