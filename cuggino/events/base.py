"""The base of all events: one frozen model, tagged with its class name."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict
from typing_extensions import TypeIs

from cuggino.events.names import HOMES


class Event(BaseModel):
    """Base of all events. Frozen, compared by value, tagged with its class name.

    Unknown fields, written by a newer version, are ignored. The category of an event is its base
    class (CUG-023).
    """

    model_config = ConfigDict(
        frozen=True, extra="ignore", ser_json_inf_nan="constants", defer_build=True
    )

    registry: ClassVar[dict[str, type[Event]]] = {}
    """The event classes defined so far by tag, without the categories.

    `event_type` finds those of cuggino that are not loaded yet.
    """

    def __init_subclass__(cls, *, category: bool = False) -> None:
        super().__init_subclass__()
        is_own = cls.__module__.startswith(f"{__package__}.")
        if not category and (is_own or cls.__name__ not in HOMES):
            Event.registry.setdefault(cls.__name__, cls)

    @property
    def tag(self) -> str:
        """Return the `_tag` of the wire format: the name of the class."""
        return type(self).__name__


class UnknownEvent(Event, category=True):
    """An event with a tag unknown to this version; `raw` is the whole JSON object."""

    raw: dict[str, object]

    @property
    def tag(self) -> str:
        """Return the `_tag` that was read, not the name of this class."""
        return str(self.raw.get("_tag", ""))


E = TypeVar("E", bound=Event)


def category_guard(category: type[E]) -> Callable[[object], TypeIs[E]]:
    """Return the guard of a category: whether a value is one of its events."""

    def guard(event: object) -> TypeIs[E]:
        return isinstance(event, category)

    return guard
