"""Notifications for a person: the end of a run or a night, and matters that cannot wait.

    loop = LoopService(services).run(options).pipe(with_notifications(make_notifier(config)))

The loops of `Runtime` send notifications automatically, as configured by `notify`.

Apprise URLs contain passwords and tokens: messages and errors show only their scheme.
"""

from cuggino._lazy import lazy

NAMES = {
    "apprise": "AppriseNotifier",
    "command": "CommandNotifier",
    "messages": "Message message_for",
    "notifier": "Notifier SeveralNotifiers SilentNotifier make_notifier rings",
    "operator": "with_notifications",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
