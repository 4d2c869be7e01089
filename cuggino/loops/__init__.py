"""The loops, each a durable flow of stages: coding, watch, deliver and plan_build, in one frame."""

from cuggino._lazy import lazy

NAMES = {
    "coding.options": "LoopRunOptions",
    "coding.roles": "ROLE_MARKERS",
    "coding.service": "LoopService",
    "deliver.options": "DeliverRunOptions",
    "deliver.service": "DeliverService",
    "frame.options": "RunOptions",
    "frame.resuming": "resumed_options",
    "frame.services": "Services",
    "plan_build.options": "PlanBuildOptions",
    "plan_build.service": "PlanBuildService",
    "watch.options": "WatchRunOptions",
    "watch.service": "WatchService",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
