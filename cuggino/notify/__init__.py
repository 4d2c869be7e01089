"""Notifications for a person: the end of a run or a night, and matters that cannot wait.

    loop = LoopService(services).run(loop_options)
    notifying = loop.pipe(with_notifications(make_notifier(config)))

The loops of `Runtime` send notifications automatically, as configured by `notify`.

Apprise URLs contain passwords and tokens: messages and errors show only their scheme.
"""

from cuggino.notify.apprise import AppriseNotifier
from cuggino.notify.command import CommandNotifier
from cuggino.notify.messages import Message, message_for, plain
from cuggino.notify.notifier import Notifier, SeveralNotifiers, SilentNotifier, make_notifier, rings
from cuggino.notify.operator import with_notifications

__all__ = [
    "AppriseNotifier",
    "CommandNotifier",
    "Message",
    "Notifier",
    "SeveralNotifiers",
    "SilentNotifier",
    "make_notifier",
    "message_for",
    "plain",
    "rings",
    "with_notifications",
]
