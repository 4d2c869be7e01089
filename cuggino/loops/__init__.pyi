"""Public names of `cuggino.loops`; written by `python -m tests.stubs`."""

from cuggino.loops.coding.options import (
    LoopRunOptions,
)
from cuggino.loops.coding.roles import (
    ROLE_MARKERS,
)
from cuggino.loops.coding.service import (
    LoopService,
)
from cuggino.loops.deliver.options import (
    DeliverRunOptions,
)
from cuggino.loops.deliver.service import (
    DeliverService,
)
from cuggino.loops.frame.options import (
    RunOptions,
)
from cuggino.loops.frame.resuming import (
    resumed_options,
)
from cuggino.loops.frame.services import (
    Services,
)
from cuggino.loops.plan_build.options import (
    PlanBuildOptions,
)
from cuggino.loops.plan_build.service import (
    PlanBuildService,
)
from cuggino.loops.watch.options import (
    WatchRunOptions,
)
from cuggino.loops.watch.service import (
    WatchService,
)

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
