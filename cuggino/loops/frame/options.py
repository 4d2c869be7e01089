"""The options that all loops share."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import model_validator

from cuggino.agents.base import Role
from cuggino.domain import Window
from cuggino.errors import ConfigError
from cuggino.events import CheckCannotFail, Event
from cuggino.gate import why_it_cannot_fail
from cuggino.stages import StageOptions

RunKind: TypeAlias = Literal["run", "watch", "deliver", "loop"]
"""The loop of a run, as its journal names it; `loop` is the plan/build loop."""


def checks_that_cannot_fail(*commands: str | None) -> tuple[CheckCannotFail, ...]:
    """Return an event for each command that decides although it always succeeds."""
    reasons = {command: why_it_cannot_fail(command) for command in commands if command}
    return tuple(CheckCannotFail(command=it, why=why) for it, why in reasons.items() if why)


class RunOptions(StageOptions):
    """The options that all loops share.

    An option that a loop does not use is an error. The keys of `.cuggino.json` are shared by all
    loops: `Runtime` picks those that a loop uses.
    """

    kind: ClassVar[RunKind]
    name: ClassVar[str]
    """The name of the loop in messages."""
    kept: ClassVar[tuple[str, ...]] = ()
    """The options that decide which stage follows which: a resumed run keeps them. All others, such
    as limits and the model, are those of the process that resumes it."""
    kept_apart: ClassVar[tuple[str, ...]] = ()
    """The same, for options that the journal keeps in fields of `RunStarted`."""

    command: str = "cuggino"
    """The command, for the journal and for others who want the workspace."""
    agent: str = ""
    """The agent's name for the journal, as it can be given to `--agent`."""

    @property
    @abstractmethod
    def roles(self) -> tuple[Role, ...]:
        """The roles of the agents that the loop runs."""

    @property
    def at_once(self) -> int:
        """The number of runs that the loop may have at work at once."""
        return 1

    @property
    def prompt_files(self) -> Mapping[str, str]:
        """The files of the project's own prompts whose names the options set."""
        return {}

    def windows(self) -> Sequence[Window]:
        """Return the hours in which work may begin; none without a limit."""
        return ()

    def notices(self) -> tuple[Event, ...]:
        """Return what each process of a run reports before its first stage."""
        return ()

    @model_validator(mode="before")
    @classmethod
    def _only_its_own(cls, given: Any) -> Any:
        unused = [str(key) for key in given if key not in cls.model_fields]
        if unused:
            it = "it" if len(unused) == 1 else "them"
            raise ConfigError(
                f"{cls.name} has no option {', '.join(unused)}: remove {it} from {cls.__name__}"
            )
        return given
