"""The end of a run: its outcome, its exit code, and whether it can be resumed."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from cuggino.events.base import Event

RunOutcome = Literal[
    "approved",
    "planned",
    "spec_issue",
    "max_iterations",
    "quota",
    "budget",
    "stalled",
    "blocked",
    "failed",
    "interrupted",
]
"""The outcome of a run of any loop. `approved`: its goal is reached. `planned`: a plan/build loop
with `plan_only` has planned. `blocked`: only blocked work is left."""

EndState = Literal[
    "approved",
    "spec_issue",
    "max_iterations",
    "stalled",
    "ended",
    "failed",
    "quota",
    "budget",
    "interrupted",
]
"""The outcome of a run as its journal records it; `planned` and `blocked` are `ended` there."""

KnownState: TypeAlias = EndState | Literal["unfinished"]
"""The state of a journal; `unfinished` while its process works, or after it was killed."""

_RESUMABLE: frozenset[KnownState] = frozenset(
    {"failed", "quota", "budget", "interrupted", "unfinished"}
)

_EXIT_CODES: Mapping[RunOutcome, int] = {
    "approved": 0,
    "planned": 0,
    "failed": 1,
    "spec_issue": 10,
    "max_iterations": 11,
    "quota": 12,
    "budget": 13,
    "stalled": 14,
    "blocked": 15,
    "interrupted": 130,
}


def shown_state(state: str, checked: bool | None, reason: str | None = None) -> str:
    """Return the state that views show.

    It is `unchecked` for an approval that no check decided on. In the deliver loop nobody approves:
    the state is the `reason` of the end if it is about all deliverables, such as `all_passed`.
    """
    if reason is not None and reason.startswith("all_") and state in ("approved", "ended"):
        return reason
    return "unchecked" if state == "approved" and checked is False else state


def exit_code_of(state: EndState) -> int:
    """Return the exit code of a run that has ended in this state."""
    return 0 if state == "ended" else _EXIT_CODES[state]


def is_resumable(state: KnownState) -> bool:
    """Return whether another process can resume a run in this state."""
    return state in _RESUMABLE


class RunResult(Event, category=True):
    """Category: the last event of a run.

    Only the fields of the subclasses are serialized, none of these properties.
    """

    if TYPE_CHECKING:
        # `LoopStalled.message` is a field, which could not replace a property at run time.
        @property
        def message(self) -> str:
            """The cause of the outcome, for a person; "" without one."""

    @property
    @abstractmethod
    def outcome(self) -> RunOutcome:
        """The outcome, in the words that all loops share."""

    @property
    def state(self) -> EndState:
        """The outcome as the journal records it."""
        outcome = self.outcome
        return "ended" if outcome == "planned" or outcome == "blocked" else outcome

    @property
    def is_resumable(self) -> bool:
        """True if another process can resume the run."""
        return is_resumable(self.state)

    @property
    def exit_code(self) -> int:
        """The exit code of a command with this result.

        A run that failed by an error ends with the exit code of that error instead.
        """
        return _EXIT_CODES[self.outcome]
