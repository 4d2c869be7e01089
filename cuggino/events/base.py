"""The base of all events: one frozen model, tagged with its class name."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Event(BaseModel):
    """Base of all events. Frozen, compared by value, tagged with its class name.

    Unknown fields, written by a newer version, are ignored. The category of an event is its base
    class (CUG-023).
    """

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="constants")

    registry: ClassVar[dict[str, type[Event]]] = {}
    """Every event class by its tag, without the categories."""

    def __init_subclass__(cls, *, category: bool = False) -> None:
        super().__init_subclass__()
        if not category:
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
