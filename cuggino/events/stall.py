"""Agents that do not progress, or contradict themselves."""

from typing import Literal

from cuggino.events.supervision import SupervisionEvent


class AgentNudged(SupervisionEvent):
    """An agent was silent, took too long, repeated itself or forgot its marker.

    Its session is resumed.
    """

    idle: float | None = None
    """Seconds without an event; None if the stage timed out."""
    tool: str | None = None
    """The running tool, if any, or the one that was called repeatedly."""
    repeated: int | None = None
    """The number of equal calls of the tool in a row; None for another reason."""
    no_marker: bool = False
    """True if the session ended without a marker that ends its stage."""
    polling: bool = False
    """True if it ran the same command with a sleep again and again, and is told to wait
    (`<WAITING>`) instead."""


class AgentReplaced(SupervisionEvent):
    """An agent stalled or forgot its marker, again after a nudge if it got one.

    A new agent starts the stage again, with the last words and the changes of this one.
    """

    idle: float | None = None
    """Seconds without an event; None if the stage timed out."""
    tool: str | None = None
    repeated: int | None = None
    no_marker: bool = False
    """True if the session ended without a marker that ends its stage."""


class StageInferred(SupervisionEvent):
    """No agent of a stage gave its marker, so its files decide how it ended.

    A plan file is a plan, new work is progress, and a review file with findings is a request for
    changes. Emitted before the marker that they stand for.
    """

    phase: str
    """`planning`, `implementing`, `reviewing`."""
    counted: str
    """The tag that counts, such as `PROGRESS`."""


class ApprovalQuestioned(SupervisionEvent):
    """An approval does not count as it is; the reviewer is asked once, in the same session.

    Without a clean answer, or a session to ask, it is a request for changes.
    """

    objections: tuple[str, ...]
    """What contradicts the approval, each as a clause."""


class ContradictoryMarkers(SupervisionEvent):
    """An agent ended its stage in several ways; the most cautious one counts.

    In the order of caution: `SPEC_ISSUE`, `REQUEST_CHANGES`, `WAITING`, `PROGRESS`,
    `PLAN_COMPLETE`, `DONE`, `NO_MORE_WORK`, `APPROVED`. Emitted before the marker that counts.
    """

    phase: str
    """`planning`, `implementing`, `reviewing`."""
    counted: str
    """The tag that counts, such as `REQUEST_CHANGES`."""
    markers: tuple[tuple[str, str], ...]
    """Tag and content of each terminal marker, in the order in which the
    agent wrote them."""


class NoProgress(SupervisionEvent):
    """Agents work, but nothing changes or earlier states return."""

    kind: Literal["unchanged", "oscillating"]
    agents: int
    """Implementing agents in a row."""
    action: Literal["replan", "stop"]
