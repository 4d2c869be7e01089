"""The root of the event vocabulary: one frozen model, tagged with its class name."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Event(BaseModel):
    """One thing that was said. Frozen, compared by value, tagged with its class name.

    Fields that a newer version added are ignored on reading, so that an older reader keeps
    working. The category of an event is its base class (CUG-023).
    """

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="constants")

    registry: ClassVar[dict[str, type[Event]]] = {}
    """Every event that can be emitted, by its tag; categories are not in it."""

    def __init_subclass__(cls, *, category: bool = False) -> None:
        super().__init_subclass__()
        if not category:
            Event.registry.setdefault(cls.__name__, cls)

    @property
    def tag(self) -> str:
        """The literal `_tag` of the wire format: the name of the class."""
        return type(self).__name__


class UnknownEvent(Event, category=True):
    """An event with a tag that this version does not know; `raw` is the whole JSON object."""

    raw: dict[str, object]

    @property
    def tag(self) -> str:
        """The `_tag` that was read, not the name of this class."""
        return str(self.raw.get("_tag", ""))
