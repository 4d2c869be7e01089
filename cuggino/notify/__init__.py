"""Notifications for a person when the watch needs one.

    events = runtime.watch().pipe(with_notifications(make_notifier(config)))

Apprise URLs contain passwords and tokens: messages and errors show only their scheme.
"""

from cuggino.notify.apprise import AppriseNotifier
from cuggino.notify.notifier import Notifier, SilentNotifier, make_notifier, rings
from cuggino.notify.operator import message_for, with_notifications

__all__ = [
    "AppriseNotifier",
    "Notifier",
    "SilentNotifier",
    "make_notifier",
    "message_for",
    "rings",
    "with_notifications",
]
