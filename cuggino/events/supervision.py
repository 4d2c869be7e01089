"""The category of the events of supervision."""

from cuggino.events.base import Event, category_guard


class SupervisionEvent(Event, category=True):
    """Category: a limit, retry, wait or fallback took effect, or is about to."""


is_supervision_event = category_guard(SupervisionEvent)
