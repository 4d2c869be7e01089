"""The loops: stories made of stages."""

from cuggino.loops.coding import LoopService
from cuggino.loops.deliver import DeliverService
from cuggino.loops.options import (
    DeliverRunOptions,
    LoopRunOptions,
    PlanBuildOptions,
    WatchRunOptions,
)
from cuggino.loops.plan_build import PlanBuildService
from cuggino.loops.watch import WatchService

__all__ = [
    "DeliverRunOptions",
    "DeliverService",
    "LoopRunOptions",
    "LoopService",
    "PlanBuildOptions",
    "PlanBuildService",
    "WatchRunOptions",
    "WatchService",
]
