"""Instructions for the sessions of the deliver loop.

A workflow has two: one for planning and one for working. The built-in texts are templates of this
package; a project may override them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from cuggino.files import describe, read_text
from cuggino.prompts.overriding import OVERRIDES, RUN, SYNC, InstructionName, Workflow
from cuggino.prompts.rendering import Prompts


class Instruction(NamedTuple):
    """The prompt of a session."""

    name: InstructionName
    text: str
    is_override: bool = False
    """True if the text is the project's own."""
    warnings: tuple[str, ...] = ()
    """The reasons why the project's own text was not used."""


def choose_instruction(workflow: Workflow, *, is_planned: bool) -> InstructionName:
    """Return the instruction of the next session; call it before each (AUT-120).

    A run is planned once `.autonoe/status.json` exists, a sync once its planning has ended.
    """
    return workflow.working if is_planned else workflow.planning


def is_planning(name: InstructionName) -> bool:
    """Return whether the instruction plans, and so uses the planning model (AUT-271)."""
    return name in (RUN.planning, SYNC.planning)


def load_instruction(
    name: InstructionName, project: Path, *, tools: Mapping[str, str]
) -> Instruction:
    """Return the project's own instruction, or the built-in one (AUT-121).

    `tools` are the session's deliverables tools, by the names that the agent sees, which the
    built-in text mentions. The project's own text is used verbatim, without a byte order mark and
    with `\\n` line endings; it has no variables. A blank or unreadable one is ignored with a
    warning.

    Raises:
        ConfigError: the built-in text needs a tool that is not among `tools`.
    """
    built_in = Prompts().render(name, tools)
    try:
        text = _own_text(project / OVERRIDES / f"{name}.md")
    except ValueError as error:
        warning = f"{OVERRIDES}/{name}.md: {error}; the built-in instruction is used"
        return Instruction(name, built_in, warnings=(warning,))
    if text is None:
        return Instruction(name, built_in)
    return Instruction(name, text, is_override=True)


def _own_text(path: Path) -> str | None:
    """Return the text of the project's file, or None without one; `ValueError` if unusable."""
    try:
        return read_text(path)
    except FileNotFoundError as error:
        if path.is_symlink():
            raise ValueError("a link without a target") from error
        return None
    except NotADirectoryError:
        return None
    except OSError as error:
        raise ValueError(describe(error)) from error
