"""The odds of an implementer, a reviewer and a check, and the cost of a session of each role."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Chance: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Dollars: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
WorkRole: TypeAlias = Literal["planning", "implementing", "reviewing"]


class Odds(BaseModel):
    """The probabilities of failures. The defaults are round figures, measured nowhere."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    right: Chance = 0.6
    """An implementer's session repairs all that is wrong."""
    breaks: Chance = 0.1
    """It leaves something new that is wrong."""
    admits: Chance = 0.5
    """It reports that work is left, if something is wrong; otherwise, that all is done."""
    forgets: Chance = 0.05
    """It ends without a report. So does the answer to a reminder."""
    approves_wrong: Chance = 0.2
    """A reviewer approves work with something wrong in it."""
    rejects_right: Chance = 0.1
    """A reviewer rejects work with nothing wrong in it."""
    flakes: Chance = 0.02
    """The check fails without a reason."""
    covers: Chance = 0.7
    """The check finds a given thing that is wrong."""
    planning: Dollars = 0.15
    """US dollars of a planner's session."""
    implementing: Dollars = 0.6
    """US dollars of an implementer's session."""
    reviewing: Dollars = 0.25
    """US dollars of a reviewer's session."""

    def cost(self, role: WorkRole) -> float:
        """Return the US dollars of a session of the role."""
        match role:
            case "planning":
                return self.planning
            case "implementing":
                return self.implementing
            case "reviewing":
                return self.reviewing
