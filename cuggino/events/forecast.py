"""The forecast of a run or watch: the duration and cost of earlier ones."""

from collections.abc import Callable
from typing import Literal, TypeAlias

from cuggino.events.supervision import SupervisionEvent

RunLoop: TypeAlias = Literal["run", "item", "deliver", "loop"]
"""What is compared with its like: a coding run, that of an item of a watch, or of another loop."""


class Forecast(SupervisionEvent):
    """The duration and cost of the latest comparable runs of the project.

    Emitted at the start of each process of a run or watch, once there are three such runs.
    """

    loop: RunLoop
    """The loop of those runs; for a watch `item`, as the figures are those of one item."""
    runs: int
    """The number of runs compared, the latest ten at most."""
    duration: float
    """The median, in seconds that processes worked, waits included."""
    worst_duration: float
    cost_usd: float | None = None
    """The median, in US dollars; None if fewer than three of the runs have a cost."""
    worst_cost_usd: float | None = None
    cost_estimated: bool = False
    """True if a part of one of the costs is an estimate."""
    items: int = 0
    """For a watch, the items in its backlog at the start."""
    slots: int = 1
    """For a watch, the items that may be at work at once."""

    @property
    def total_duration(self) -> float:
        """Return the seconds that the items of the backlog usually take together."""
        return self.duration * -(-self.items // max(self.slots, 1))

    @property
    def total_cost_usd(self) -> float | None:
        """Return the US dollars that the items of the backlog usually cost together."""
        return None if self.cost_usd is None else self.cost_usd * self.items

    def words(self, duration: Callable[[float], str], money: Callable[[float], str]) -> str:
        """Return the forecast as a sentence, with durations and amounts in the view's format."""

        def both(seconds: float, usd: float | None, join: str) -> str:
            return duration(seconds) + ("" if usd is None else f"{join}{money(usd)}")

        is_item = self.loop == "item"
        usual = both(self.duration, self.cost_usd, " and costs ")
        worst = both(self.worst_duration, self.worst_cost_usd, " and ")
        noun = "items" if is_item else "runs"
        text = f"usually takes {usual}; at most {worst} in the last {self.runs} {noun}"
        if is_item:
            text = f"an item {text}"
        if self.items > 1:
            total = both(self.total_duration, self.total_cost_usd, " and ")
            text += f"; for {self.items} items about {total}"
        return text
