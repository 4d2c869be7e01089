"""Commands to the run that works in a project, from this process or another.

    send_command("my-project", PauseAsked())

`Runtime.send` is the same, for a program that has a runtime.
"""

from __future__ import annotations

import os
from pathlib import Path

from cuggino.errors import ConfigError, NothingRuns
from cuggino.events import ControlEvent, SkipAsked
from cuggino.files import state_folder
from cuggino.processes import is_started_by_run
from cuggino.storage import KEY_FILE, ControlFolder, LockOwner, Workspace

__all__ = ["check_receiver", "control_folder", "pending_commands", "send_command"]


def control_folder(workspace: Workspace) -> ControlFolder:
    """Return the commands to the run of a workspace, signed with the key of the user."""
    state = state_folder(os.environ)
    return ControlFolder(workspace.control, key=state / KEY_FILE if state else None)


def send_command(project: str | os.PathLike[str], command: ControlEvent) -> None:
    """Send a command to the run that works in the project.

    Raises:
        NothingRuns: no run works in the project.
        ConfigError: the run has no items to skip, the message is empty or too long, or an agent or
            a command of a run calls this.
        StorageError: the command could not be written.
    """
    workspace = Workspace(Path(project).resolve())
    check_receiver(workspace, command)
    control_folder(workspace).send(command)


def pending_commands(project: str | os.PathLike[str]) -> list[ControlEvent]:
    """Return the commands in the project that have not taken effect, the oldest first."""
    folder = control_folder(Workspace(Path(project).resolve()))
    return [command.event for command in folder.pending()]


def check_receiver(workspace: Workspace, command: ControlEvent) -> None:
    """Check that a run works that can obey the command, and that a person sends it.

    Raises:
        ConfigError: an agent or a command of a run sends it, or the run has no items.
        NothingRuns: no run works in the workspace.
    """
    if is_started_by_run():
        raise ConfigError(
            "agents and commands of a run cannot command it", hint="use a terminal of your own"
        )
    holder = workspace.holder()
    if holder is None:
        raise NothingRuns(str(workspace.root))
    if isinstance(command, SkipAsked) and not _has_items(holder):
        raise ConfigError(
            "only a watch, or a run with hands, has items to skip",
            hint="`cuggino stop` ends this run",
        )


def _has_items(holder: LockOwner) -> bool:
    words = (holder.command or "").split()
    return "watch" in words[1:2] or "--hands" in words
