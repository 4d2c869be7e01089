"""The state of a run: one fold over its events, from which every view is made.

state = RunState()
for entry in read_journal(path).entries:
state = state.add(entry.event, at=entry.at, stage=entry.stage)
"""

from cuggino.runs.state.delivery import DeliverableCourse, DeliveredSession, Delivery
from cuggino.runs.state.publishing import with_state
from cuggino.runs.state.run import RunState
from cuggino.runs.state.steps import LASTING
from cuggino.runs.state.values import (
    AGENT_KINDS,
    ItemEnd,
    ItemPlace,
    ItemState,
    Job,
    KeptWork,
    Landing,
    LandingEnd,
    Process,
    Question,
    RunningTool,
    RunStatus,
    SlotUse,
    StageKind,
    StageTry,
    StateWord,
    Wait,
    WatchedItem,
    later,
)
from cuggino.runs.state.watched import Watched, delay_text

__all__ = [
    "AGENT_KINDS",
    "LASTING",
    "DeliverableCourse",
    "DeliveredSession",
    "Delivery",
    "ItemEnd",
    "ItemPlace",
    "ItemState",
    "Job",
    "KeptWork",
    "Landing",
    "LandingEnd",
    "Process",
    "Question",
    "RunState",
    "RunStatus",
    "RunningTool",
    "SlotUse",
    "StageKind",
    "StageTry",
    "StateWord",
    "Wait",
    "Watched",
    "WatchedItem",
    "delay_text",
    "later",
    "with_state",
]
