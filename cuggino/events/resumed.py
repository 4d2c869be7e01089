"""The totals of a run, which a resumed run begins with."""

from cuggino.events.supervision import SupervisionEvent
from cuggino.events.usage import Usage


class RunResumed(SupervisionEvent):
    """The first event of a resumed run: its totals so far."""

    run_id: str
    stages: int
    """Finished stages, which are not repeated."""
    rounds: int = 0
    tasks: int = 0
    agents: int = 0
    commits: tuple[tuple[str, str], ...] = ()
    """Abbreviated hash and subject of each commit."""
    cost_usd: float | None = None
    cost_estimated: bool = False
    """True if a part of the cost is an estimate."""
    usage: Usage | None = None
    duration: float = 0.0
    """Seconds that earlier processes worked on it."""
