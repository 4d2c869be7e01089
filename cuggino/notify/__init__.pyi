"""Public names of `cuggino.notify`; written by `python -m tests.stubs`."""

from cuggino.notify.apprise import (
    AppriseNotifier,
)
from cuggino.notify.command import (
    CommandNotifier,
)
from cuggino.notify.messages import (
    Message,
    message_for,
)
from cuggino.notify.notifier import (
    Notifier,
    SeveralNotifiers,
    SilentNotifier,
    make_notifier,
    rings,
)
from cuggino.notify.operator import (
    with_notifications,
)

__all__ = [
    "AppriseNotifier",
    "CommandNotifier",
    "Message",
    "Notifier",
    "SeveralNotifiers",
    "SilentNotifier",
    "make_notifier",
    "message_for",
    "rings",
    "with_notifications",
]
