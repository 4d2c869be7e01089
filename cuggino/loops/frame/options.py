"""The options that all loops share."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import Field, model_validator

from cuggino.agents.base import Role
from cuggino.config import RunSettings
from cuggino.errors import ConfigError

RunKind: TypeAlias = Literal["run", "watch", "deliver", "loop"]
"""The loop of a run, as its journal names it; `loop` is the plan/build loop."""


class RunOptions(RunSettings):
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

    cwd: Path
    """The project."""
    command: str = "cuggino"
    """The command, for the journal and for others who want the workspace."""
    agent: str = ""
    """The agent's name for the journal, as it can be given to `--agent`."""
    env: Mapping[str, str] = Field(default_factory=dict, exclude=True)
    """Variables for the agents, the setup command and the check command, besides those of this
    process. They are not journaled."""
    limits_network: bool = False
    """Limit the hosts that agents connect to, where an agent's own sandbox can: for imported text,
    and for a watch that imports some."""
    retry_pause: float = Field(default=5.0, ge=0)
    """Seconds before the first retry after a transient failure; each further pause doubles."""
    quota_margin: float = Field(default=60.0, ge=0)
    """Seconds to wait beyond the time a usage limit is lifted, as clocks differ."""

    @property
    @abstractmethod
    def roles(self) -> tuple[Role, ...]:
        """The roles of the agents that the loop runs."""

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
