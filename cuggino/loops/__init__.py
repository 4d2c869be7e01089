"""Stories made of stages: the coding loop."""

from cuggino.loops.coding import LoopService
from cuggino.loops.options import LoopRunOptions

__all__ = ["LoopRunOptions", "LoopService"]
