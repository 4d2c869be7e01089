"""The loops: stories made of stages."""

from cuggino.loops.coding import LoopService
from cuggino.loops.deliver import SPEC_FILE, DeliverService
from cuggino.loops.deliver_setup import setup_warnings
from cuggino.loops.options import DeliverRunOptions, LoopRunOptions, WatchRunOptions
from cuggino.loops.watch import WatchService

__all__ = [
    "SPEC_FILE",
    "DeliverRunOptions",
    "DeliverService",
    "LoopRunOptions",
    "LoopService",
    "WatchRunOptions",
    "WatchService",
    "setup_warnings",
]
