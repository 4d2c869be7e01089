"""Events of the loop. Like all events, they are frozen and compared by value."""

from cuggino.events import Event, LlmTerminalMarkerEvent


class Prepared(LlmTerminalMarkerEvent):
    """An agent has written the test; the marker is `<PREPARED>the test's subject</PREPARED>`."""


class Cut(LlmTerminalMarkerEvent):
    """The policy has ended a session; `content` is the reason. Agents cannot emit it."""


class Attempt(Event):
    """An agent starts to work on the failing test."""

    number: int
    of: int


class TestsRestored(Event):
    """An agent changed the tests it had to make pass; they are restored."""

    __test__ = False  # not a test class for pytest
    files: tuple[str, ...]


class Ended(Event):
    """The last event of the loop: whether the wish came true, and the reason if not."""

    green: bool
    reason: str = ""
    attempts: int
    cost_usd: float
