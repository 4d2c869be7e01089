"""The loops, each a durable flow of stages: coding, watch, deliver and plan_build, in one frame."""

from cuggino.loops.attempts import AttemptsService
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.coding.service import LoopService
from cuggino.loops.deliver.options import DeliverRunOptions
from cuggino.loops.deliver.service import DeliverService
from cuggino.loops.frame.commands import Commands
from cuggino.loops.frame.companions import Companion
from cuggino.loops.frame.control import Control
from cuggino.loops.frame.durable import durable
from cuggino.loops.frame.interruption import Interruption
from cuggino.loops.frame.options import RunOptions
from cuggino.loops.frame.resuming import latest_run_of, resumed_options
from cuggino.loops.hands.service import HandsService
from cuggino.loops.plan_build.options import PlanBuildOptions
from cuggino.loops.plan_build.service import PlanBuildService
from cuggino.loops.watch.attempt import attempt
from cuggino.loops.watch.options import WatchRunOptions
from cuggino.loops.watch.pieces import attempt_item, land_item
from cuggino.loops.watch.placement import Placed, Placement, Work
from cuggino.loops.watch.places import Landing, PlacesOf
from cuggino.loops.watch.pool import pool
from cuggino.loops.watch.pool_state import Land, Returned, Start
from cuggino.loops.watch.recorded import items_of_issues
from cuggino.loops.watch.service import WatchService
from cuggino.stages import Services

__all__ = [
    "AttemptsService",
    "Commands",
    "Companion",
    "Control",
    "DeliverRunOptions",
    "DeliverService",
    "HandsService",
    "Interruption",
    "Land",
    "Landing",
    "LoopRunOptions",
    "LoopService",
    "Placed",
    "Placement",
    "PlacesOf",
    "PlanBuildOptions",
    "PlanBuildService",
    "Returned",
    "RunOptions",
    "Services",
    "Start",
    "WatchRunOptions",
    "WatchService",
    "Work",
    "attempt",
    "attempt_item",
    "durable",
    "items_of_issues",
    "land_item",
    "latest_run_of",
    "pool",
    "resumed_options",
]
