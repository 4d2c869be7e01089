"""What the loop says, beside what its agents say. Like all events: frozen, compared by value."""

from cuggino.events import Event, LlmTerminalMarkerEvent


class Prepared(LlmTerminalMarkerEvent):
    """An agent has written the test; it says so with `<PREPARED>what is tested</PREPARED>`."""


class Cut(LlmTerminalMarkerEvent):
    """The policy has ended a session; `content` is why. No agent can say it."""


class Attempt(Event):
    """An agent begins to work on the failing test."""

    number: int
    of: int


class TestsRestored(Event):
    """An agent had changed the tests it was to make pass; they are again as they were."""

    __test__ = False  # for pytest: no class of tests
    files: tuple[str, ...]


class Ended(Event):
    """The last event of the loop: whether the wish came true, and if not, why."""

    green: bool
    reason: str = ""
    attempts: int
    cost_usd: float
