"""Agents per role, fallback agents, and those of attempts: `agents`, `fallback`, `attempts`."""

from collections.abc import Mapping
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, Field, SerializerFunctionWrapHandler
from pydantic.functional_serializers import model_serializer
from pydantic.functional_validators import model_validator

from cuggino.domain import MOST_ATTEMPTS
from cuggino.edited_files import Section, matching
from cuggino.guard import Role


class _Choice(Section):
    """An agent with its own options; in the file a name or an object."""

    agent: str | None = Field(default=None, pattern=r"\S")
    """A name, as for the setting `agent`, which is the default."""
    model: str | None = Field(default=None, pattern=r"\S")
    """The agent's model."""
    path: str | None = Field(default=None, pattern=r"\S")
    """The agent's program; default: found on PATH."""

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: object) -> object:
        if isinstance(value, str):
            return {"agent": value}
        if not isinstance(value, Mapping | BaseModel):
            raise ValueError("must be the name of an agent, or an object with its options")
        return value

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> object:
        given = {key: value for key, value in handler(self).items() if value is not None}
        return given["agent"] if given.keys() == {"agent"} else given


class FallbackAgent(_Choice):
    """A fallback agent."""

    agent: str = Field(pattern=r"\S")


class RoleAgent(_Choice):
    """The agent of a role."""

    fallback: list[FallbackAgent] | None = None
    """Fallback agents for this role, in order; default: those of the configuration."""


class AttemptChoice(_Choice):
    """What one of several attempts differs in; nothing by default."""

    hint: str | None = Field(default=None, pattern=r"\S")
    """Advice for the planning agent of this attempt, such as "tests first", added to the focus."""


class AcpProgram(Section):
    """A program that speaks the Agent Client Protocol."""

    command: list[Annotated[str, Field(min_length=1)]] = Field(min_length=1)
    """The program and its arguments."""
    env: dict[str, str] = Field(default={})
    """Variables of its sessions."""
    mode: str | None = Field(default=None, pattern=r"\S")
    """The session mode in which it asks before its calls; default: its own."""
    asks: bool = False
    """True if it asks, in this mode, before each call that changes something."""


_Name: TypeAlias = Annotated[
    str, matching(r"[A-Za-z0-9][\w.-]*", "must consist of letters, digits, dots and dashes")
]


def _not_too_many(attempts: list[AttemptChoice]) -> list[AttemptChoice]:
    if not 1 <= len(attempts) <= MOST_ATTEMPTS:
        raise ValueError(f"must be 1 to {MOST_ATTEMPTS} attempts")
    return attempts


Attempts: TypeAlias = (
    Annotated[int, Field(ge=1, le=MOST_ATTEMPTS)]
    | Annotated[list[AttemptChoice], AfterValidator(_not_too_many)]
)
"""How many attempts, or what each of them differs in."""
AcpPrograms: TypeAlias = dict[_Name, AcpProgram]
FallbackAgents: TypeAlias = list[FallbackAgent]
RoleAgents: TypeAlias = dict[Role, RoleAgent]
