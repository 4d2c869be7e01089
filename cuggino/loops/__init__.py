"""Stories made of stages: the coding loop, and the watch around it."""

from cuggino.loops.coding import LoopService
from cuggino.loops.options import LoopRunOptions, WatchRunOptions
from cuggino.loops.watch import WatchService

__all__ = ["LoopRunOptions", "LoopService", "WatchRunOptions", "WatchService"]
