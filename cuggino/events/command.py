"""Events of the setup and check commands."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from cuggino.events.base import category_guard
from cuggino.events.loop import LoopPhaseEvent

Checked: TypeAlias = Literal["work", "start", "copy", "commit"]
"""What a check command runs on: the work tree; a copy of it with the tests and check files of the
start; a copy as it is; a clean checkout of the current commit."""


_ON: Mapping[Checked, str] = MappingProxyType(
    {
        "work": "",
        "start": " (with the tests and check files of the start)",
        "copy": " (again, in a copy)",
        "commit": " (on a clean checkout)",
    }
)


class CommandStartedEvent(LoopPhaseEvent, category=True):
    """Category: a setup or check command is about to run."""

    command: str

    @property
    def title(self) -> str:
        return self.command


class SetupCommandStarted(CommandStartedEvent):
    """The setup command is about to run."""


class CheckCommandStarted(CommandStartedEvent):
    """The check command is about to run."""

    on: Checked = "work"

    @property
    def title(self) -> str:
        """The command, and what it runs on unless that is the work."""
        return f"{self.command}{_ON[self.on]}"


class CommandOutputEvent(LoopPhaseEvent, category=True):
    """Category: a setup or check command has ended."""

    output: str = ""
    """Standard output and error together; only the end of a long output."""
    exit_code: int | None = None
    """127 if the command could not be started, 124 if it timed out."""
    file_path: str | None = None
    """The file with the whole output; it is removed with the session."""
    truncated: bool = False
    """True if `output` is not the whole output."""


class SetupCommandOutput(CommandOutputEvent):
    """The setup command has ended; its failure ends the run only with `setupStrict`."""


class CheckCommandOutput(CommandOutputEvent):
    """The check command has ended; its output is given to the next agent."""

    on: Checked = "work"


is_command_output_event = category_guard(CommandOutputEvent)
