"""Calling a person: what is said when the watch needs one, and the ways that it is sent.

    events = runtime.watch().pipe(with_notifications(make_notifier(config)))

Apprise URLs hold passwords and tokens: no message and no error shows more of one than its scheme.
"""

from cuggino.notify.apprise import AppriseNotifier
from cuggino.notify.messages import message_for
from cuggino.notify.notifier import Notifier, SilentNotifier
from cuggino.notify.operator import with_notifications
from cuggino.notify.ways import make_notifier, rings

__all__ = [
    "AppriseNotifier",
    "Notifier",
    "SilentNotifier",
    "make_notifier",
    "message_for",
    "rings",
    "with_notifications",
]
