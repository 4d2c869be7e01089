"""Observable to Observable: what RxPY's own operators cannot serve.

A loop is written with `flow`; an agent's text becomes markers with `extract_markers`. The policies
(`idle_timeout`, `stage_timeout`, `retry_session`, `wait_for_quota`, `within_budget`) go around any
stream of events, in the order in which they are composed. The others are the few building blocks
that these need. Time comes from the scheduler given to `subscribe`.
"""

from cuggino.operators.acquire_release import acquire_release
from cuggino.operators.alongside import alongside
from cuggino.operators.extract_markers import MarkerTags, extract_markers, marker_tags
from cuggino.operators.flow import Flow, Recorded, Recorder, ask, emit, flow, forward
from cuggino.operators.idle_timeout import idle_timeout
from cuggino.operators.interrupt_when import interrupt_when
from cuggino.operators.mapcat import mapcat
from cuggino.operators.merge_now import merge_now
from cuggino.operators.on_loop import on_loop
from cuggino.operators.quota_gate import QuotaGate
from cuggino.operators.remedies import Remedies
from cuggino.operators.retry_session import is_outage, is_transient, retry_session
from cuggino.operators.scheduler import LoopScheduler, default_scheduler, serial
from cuggino.operators.stage_timeout import stage_timeout
from cuggino.operators.until_terminal import until_terminal
from cuggino.operators.wait_for_quota import wait_for_quota
from cuggino.operators.within_budget import Ledger, within_budget

__all__ = [
    "Flow",
    "Ledger",
    "LoopScheduler",
    "MarkerTags",
    "QuotaGate",
    "Recorded",
    "Recorder",
    "Remedies",
    "acquire_release",
    "alongside",
    "ask",
    "default_scheduler",
    "emit",
    "extract_markers",
    "flow",
    "forward",
    "idle_timeout",
    "interrupt_when",
    "is_outage",
    "is_transient",
    "mapcat",
    "marker_tags",
    "merge_now",
    "on_loop",
    "retry_session",
    "serial",
    "stage_timeout",
    "until_terminal",
    "wait_for_quota",
    "within_budget",
]
