"""Notifications for a person when the watch needs one.

    events = runtime.watch().pipe(with_notifications(make_notifier(config)))

Apprise URLs contain passwords and tokens: messages and errors show only their scheme.
"""

from cuggino._lazy import lazy

NAMES = {
    "apprise": "AppriseNotifier",
    "notifier": "Notifier SilentNotifier make_notifier rings",
    "operator": "message_for with_notifications",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
