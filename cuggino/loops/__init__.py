"""The loops, each a durable flow of stages: coding, watch, deliver and plan_build, in one frame."""

from cuggino.loops.coding.roles import ROLE_MARKERS
from cuggino.loops.coding.service import LoopService
from cuggino.loops.deliver.service import DeliverService
from cuggino.loops.frame.options import (
    DeliverRunOptions,
    LoopRunOptions,
    PlanBuildOptions,
    RunOptions,
    WatchRunOptions,
)
from cuggino.loops.frame.resuming import resumed_options
from cuggino.loops.frame.services import Services
from cuggino.loops.plan_build.service import PlanBuildService
from cuggino.loops.watch.service import WatchService

__all__ = [
    "ROLE_MARKERS",
    "DeliverRunOptions",
    "DeliverService",
    "LoopRunOptions",
    "LoopService",
    "PlanBuildOptions",
    "PlanBuildService",
    "RunOptions",
    "Services",
    "WatchRunOptions",
    "WatchService",
    "resumed_options",
]
