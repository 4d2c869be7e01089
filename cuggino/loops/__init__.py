"""The loops, each a durable flow of stages: coding, watch, deliver and plan_build, in one frame."""

from cuggino._lazy import lazy

NAMES = {
    "coding.options": "LoopRunOptions",
    "coding.service": "LoopService",
    "deliver.options": "DeliverRunOptions",
    "deliver.service": "DeliverService",
    "frame.companions": "Companion",
    "frame.options": "RunOptions",
    "frame.control": "Control ItemControl",
    "frame.interruption": "Interruption",
    "frame.resuming": "latest_run_of resumed_options",
    "frame.services": "Services",
    "plan_build.options": "PlanBuildOptions",
    "plan_build.service": "PlanBuildService",
    "watch.attempt": "attempt",
    "watch.options": "WatchRunOptions",
    "watch.pieces": "attempt_item land_item",
    "watch.placement": "Placed Placement Returned Work",
    "watch.places": "Landing",
    "watch.recorded": "items_of_issues",
    "watch.service": "WatchService",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
