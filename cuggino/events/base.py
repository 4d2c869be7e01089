"""The base of all events: one frozen model, tagged with its class name.

Modules with models do not postpone the evaluation of annotations: pydantic would compile each.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypeIs


class Event(BaseModel):
    """Base of all events. Frozen, compared by value, tagged with its class name.

    Unknown fields, written by a newer version, are ignored. Its category is its base class.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="constants")

    item: str | None = Field(default=None, exclude=True)
    """The file name of the backlog item that an event of a watch with several slots is about.

    Left out of the line of JSON when it is None."""

    registry: ClassVar[dict[str, type[Any]]] = {}
    """The event classes defined so far by tag, without the categories.

    Their type is not named, as pydantic would evaluate the name anew for each class."""

    def __init_subclass__(cls, *, category: bool = False) -> None:
        super().__init_subclass__()
        if not category:
            Event.registry.setdefault(cls.__name__, cls)

    @property
    def tag(self) -> str:
        """Return the `_tag` of the wire format: the name of the class."""
        return type(self).__name__

    def of_item(self, item: str) -> Self:
        """Return the event as one of this item; the same event if it has an item already."""
        if self.item is not None:
            return self
        return self.model_copy(update={"item": item})

    def __str__(self) -> str:
        return repr(self)  # so that `print` names the class

    def __repr_args__(self) -> Any:
        return [
            pair
            for pair in super().__repr_args__()
            if pair != ("item", None) or not is_item_shared(type(self))
        ]


def is_item_shared(cls: type[Event]) -> bool:
    """Return whether `item` is the field of every event, not one that the class declares."""
    return cls.model_fields["item"].exclude is True


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
