"""Public names of `cuggino.notify`; written by `python -m tests.stubs`."""

from cuggino.notify.apprise import (
    AppriseNotifier,
)
from cuggino.notify.notifier import (
    Notifier,
    SilentNotifier,
    make_notifier,
    rings,
)
from cuggino.notify.operator import (
    message_for,
    with_notifications,
)

__all__ = [
    "AppriseNotifier",
    "Notifier",
    "SilentNotifier",
    "make_notifier",
    "message_for",
    "rings",
    "with_notifications",
]
