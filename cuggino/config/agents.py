"""Agents per role and fallback agents: `agents` and `fallback`."""

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler
from pydantic.functional_serializers import model_serializer
from pydantic.functional_validators import model_validator

from cuggino.guard import ROLES, Role


class _Choice(BaseModel):
    """An agent with its own options; in the file a name or an object."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

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


class AcpProgram(BaseModel):
    """A program that speaks the Agent Client Protocol."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    command: list[Annotated[str, Field(min_length=1)]] = Field(min_length=1)
    """The program and its arguments."""
    env: dict[str, str] = Field(default={})
    """Variables of its sessions."""
    mode: str | None = Field(default=None, pattern=r"\S")
    """The session mode in which it asks before its calls; default: its own."""
    asks: bool = False
    """True if it asks, in this mode, before each call that changes something."""


AcpPrograms: TypeAlias = dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$")], AcpProgram]
FallbackAgents: TypeAlias = list[FallbackAgent]
RoleAgents: TypeAlias = dict[Role, RoleAgent]


def place_of(error: Mapping[str, Any]) -> str:
    """Return the place in the file, such as `agents.planning.fallback[0].model`."""
    place = ""
    for part in error["loc"]:
        if isinstance(part, int):
            place += f"[{part}]"
        elif part != "[key]":
            place += f".{part}" if place else part
    return place


def words_of(error: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return message and hint for an invalid key of an object, or None for an invalid value."""
    *around, key = [part for part in error["loc"] if part != "[key]"]
    holder = place_of({**error, "loc": tuple(around)})
    if error["loc"][-1] == "[key]":
        return f'unknown role "{key}" in "{holder}"', _proposal(str(key), ROLES, "roles")
    if error["type"] == "extra_forbidden":
        kind = FallbackAgent if isinstance(around[-1], int) else RoleAgent
        return f'unknown key "{key}" in "{holder}"', _proposal(str(key), kind.model_fields, "keys")
    if error["type"] == "missing":
        return f'"{holder}" has no "{key}"', 'give the name of an agent, such as "claude"'
    return None


def _proposal(key: str, known: Any, what: str) -> str:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    return f'did you mean "{near[0]}"?' if near else f"valid {what}: " + ", ".join(known)
