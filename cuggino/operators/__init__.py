"""Observable to Observable: what RxPY's own operators cannot serve.

A loop is written with `flow`; an agent's text becomes markers with `extract_markers`; the others
are the few building blocks both need. Time comes from the scheduler given to `subscribe`.
"""

from cuggino.operators.acquire_release import acquire_release
from cuggino.operators.extract_markers import MarkerTags, extract_markers, marker_tags
from cuggino.operators.flow import Flow, ask, emit, flow, forward
from cuggino.operators.interrupt_when import interrupt_when
from cuggino.operators.mapcat import mapcat
from cuggino.operators.merge_now import merge_now
from cuggino.operators.on_loop import on_loop
from cuggino.operators.scheduler import LoopScheduler, default_scheduler, serial
from cuggino.operators.until_terminal import until_terminal

__all__ = [
    "Flow",
    "LoopScheduler",
    "MarkerTags",
    "acquire_release",
    "ask",
    "default_scheduler",
    "emit",
    "extract_markers",
    "flow",
    "forward",
    "interrupt_when",
    "mapcat",
    "marker_tags",
    "merge_now",
    "on_loop",
    "serial",
    "until_terminal",
]
