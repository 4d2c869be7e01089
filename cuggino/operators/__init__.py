"""Operators that RxPY does not have.

A loop is written with `flow`; `extract_markers` turns an agent's text into markers; the policies
(`idle_timeout` to `within_budget`) wrap the stream of an agent's events. The rest are general
building blocks. For everything else take RxPY's own. What the policies share between streams
(`QuotaGate`, `Ledger`, `Remedies`, `Retries`) is in `cuggino.operators.supervision`, the journal of
a flow (`Recorder`) in `cuggino.operators.flow`, and `MarkerTags` in `cuggino.operators.markers`.

All of them keep one contract, beyond the Rx grammar:

- Time comes from the scheduler given to `subscribe`, which is passed on to every source.
- Everything that a stream holds (processes, timers, subscriptions) is released before its
  `on_completed` or `on_error` is called, and when `dispose` returns.
- An exception raised by the subscriber's `on_next` releases everything and reaches the
  subscriber's `on_error`. It is never raised into the source, and never taken for a failure of
  the source: it is not retried, waited for or handled by `catch_tag`.
- What a function given to an operator raises, or a release at the end of a stream, is the stream's
  error. A disposal raises what a release raises, after it has released the rest; one from another
  thread reports it to `threading.excepthook`.
- Nothing is emitted after the end or after disposal.

`managed` makes an operator that keeps it. RxPY's own operators do not, but a chain of them does
when it ends in one of these, as every stream of a loop ends in `on_loop`.
"""

from cuggino.domain import Schedule, parse_duration
from cuggino.operators.acquire_release import Scope, acquire_release, scoped
from cuggino.operators.catch_tag import catch_tag
from cuggino.operators.flow import Flow, ask, emit, flow, forward, pause
from cuggino.operators.interrupt_when import interrupt_when
from cuggino.operators.loop_scheduler import LoopScheduler
from cuggino.operators.managed import managed
from cuggino.operators.markers import extract_markers, marker_tags
from cuggino.operators.merge_at_most import merge_at_most
from cuggino.operators.on_loop import on_loop
from cuggino.operators.only import only
from cuggino.operators.race_until import race_until
from cuggino.operators.repeat_on import repeat_on
from cuggino.operators.state_ref import StateRef
from cuggino.operators.supervision import (
    idle_timeout,
    repetition_limit,
    retry_session,
    stage_timeout,
    wait_for_quota,
    within_budget,
)
from cuggino.operators.until_terminal import until_terminal

__all__ = [
    "Flow",
    "LoopScheduler",
    "Schedule",
    "Scope",
    "StateRef",
    "acquire_release",
    "ask",
    "catch_tag",
    "emit",
    "extract_markers",
    "flow",
    "forward",
    "idle_timeout",
    "interrupt_when",
    "managed",
    "marker_tags",
    "merge_at_most",
    "on_loop",
    "only",
    "parse_duration",
    "pause",
    "race_until",
    "repeat_on",
    "repetition_limit",
    "retry_session",
    "scoped",
    "stage_timeout",
    "until_terminal",
    "wait_for_quota",
    "within_budget",
]
