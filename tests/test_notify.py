"""Notifications: which events need a person, how often, and their effect on the watch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from reactivex import Observable, empty, never, of, throw

from cuggino.config import Config
from cuggino.errors import CugginoError
from cuggino.events import (
    Event,
    IterationStart,
    LoopSpecIssue,
    NotificationFailed,
    RateLimited,
    WatchBacklogWaiting,
    WatchItemCompleted,
    WatchItemParked,
    WatchProcessingItem,
    WatchSpecIssueWaiting,
)
from cuggino.notify import (
    AppriseNotifier,
    SilentNotifier,
    make_notifier,
    message_for,
    rings,
    with_notifications,
)
from cuggino.testing import Marbles


class DrawnNotifier:
    """Each notification plays the next stream, then repeats the last one."""

    def __init__(self, *streams: Observable[Any]) -> None:
        self._streams = list(streams) or [empty()]
        self.sent: list[tuple[str, str]] = []

    @property
    def titles(self) -> list[str]:
        return [title for title, _ in self.sent]

    def notify(self, title: str, body: str) -> Observable[Any]:
        self.sent.append((title, body))
        return self._streams.pop(0) if len(self._streams) > 1 else self._streams[0]


def at(hour: int) -> RateLimited:
    """Return a usage limit that is reached and resets at that hour."""
    resets_at = datetime(2030, 1, 2, hour, tzinfo=UTC)
    return RateLimited(status="rejected", limit="five_hour", resets_at=resets_at)


def drawn(**events: Any) -> Marbles:
    """Return marbles: S, B and P need a person, p and c do not; X is a failed notification."""
    return Marbles(
        S=WatchSpecIssueWaiting(),
        B=WatchBacklogWaiting(),
        P=WatchItemParked(filename="a.md", reason="no network"),
        p=WatchProcessingItem(filename="a.md"),
        c=WatchItemCompleted(filename="a.md"),
        X=NotificationFailed(message="no network"),
        error=CugginoError("no network"),
        **events,
    )


class TestMessages:
    @pytest.mark.parametrize(
        ("event", "title", "body"),
        [
            (WatchSpecIssueWaiting(), "A spec issue waits for you", ".cuggino/spec-issues/"),
            (WatchBacklogWaiting(), "The backlog is empty", "next item"),
            (WatchItemParked(filename="a.md", reason="no use"), "Parked: a.md", "no use\n"),
            (at(3), "The agent's usage limit is reached", "five_hour. It resets at 2030-01-02 03"),
            (RateLimited(status="rejected"), "The agent's usage limit is reached", "Wait."),
        ],
    )
    def test_events_that_need_a_person(self, event: Event, title: str, body: str) -> None:
        """Each has a title, and a body with advice or information."""
        message = message_for(event)
        assert message is not None
        assert title == message[0]
        assert body in message[1]

    @pytest.mark.parametrize(
        "event",
        [
            RateLimited(status="allowed_warning"),
            WatchProcessingItem(filename="a.md"),
            WatchItemCompleted(filename="a.md"),
            LoopSpecIssue(iteration=1, content="x", filename="x.md"),
            IterationStart(iteration=1, max_iterations=2),
            NotificationFailed(message="x"),
        ],
    )
    def test_events_without_a_notification(self, event: Event) -> None:
        """Progress and an approaching limit send no notification."""
        assert message_for(event) is None

    def test_text_is_sanitized(self) -> None:
        """Control characters are removed, and a long text is cut."""
        parked = WatchItemParked(filename="a\x1b[2J\n.md", reason="x" * 10_000)
        notifier = DrawnNotifier()
        drawn().record(of(parked).pipe(with_notifications(notifier, project="shop\x07")))
        title, body = notifier.sent[0]
        assert "cuggino (shop): Parked: a[2J\n.md" == title
        assert 500 == len(body)


class TestOperator:
    def test_events_pass_at_once(self) -> None:
        """Every event passes unchanged and without delay while a notification is sent."""
        t = drawn()
        sending = t.cold("---|")
        source = "-p-B--c-S---|"
        t.check(t.cold(source).pipe(with_notifications(DrawnNotifier(sending))), source)
        t.check_subscriptions(sending, "---^--!", "--------^--!")

    def test_failure_is_reported_once(self) -> None:
        """A watch emits one `NotificationFailed`; later notifications are still tried."""
        t = drawn()
        notifier = DrawnNotifier(t.cold("-#"))
        t.check(t.cold("B---S---P---|").pipe(with_notifications(notifier)), "BX--S---P---|")
        assert 3 == len(notifier.sent)

    def test_each_subscription_reports_its_failure(self) -> None:
        """A second subscription reports its own failure."""
        t = drawn()
        watch = t.cold("B--|").pipe(with_notifications(DrawnNotifier(throw(t.error))))
        for until in (10, 20):
            seen = [event for _, kind, event in t.record(watch, until=until) if kind == "next"]
            assert [t.events["B"], t.events["X"]] == seen

    def test_raising_notifier(self) -> None:
        """An exception of the notifier itself is a failed notification."""

        class Broken:
            def notify(self, title: str, body: str) -> Observable[Any]:
                raise ValueError("no network")

        t = drawn()
        t.check(t.cold("B--S-|").pipe(with_notifications(Broken())), "(BX)--S-|")

    def test_waiting_messages_are_merged(self) -> None:
        """Messages that arrive during a notification are merged into one."""
        t = drawn()
        notifier = DrawnNotifier(t.cold("-----|"))
        t.record(t.cold("B-S-P--------|").pipe(with_notifications(notifier)))
        assert [
            (
                "cuggino: 2 messages",
                "A spec issue waits for you\nParked: a.md",
            )
        ] == notifier.sent[1:]

    def test_waiting_messages_are_limited(self) -> None:
        """Of many waiting messages, twenty are kept and the others are counted."""
        t = drawn()
        notifier = DrawnNotifier(t.cold("-|"))
        t.record(t.cold(f"({'P' * 1001})-----|").pipe(with_notifications(notifier)))
        assert ["cuggino: Parked: a.md", "cuggino: 1000 messages"] == notifier.titles
        assert 20 == notifier.sent[1][1].count("Parked")
        assert notifier.sent[1][1].endswith("\nand 980 more")

    def test_usage_limit_is_sent_once(self) -> None:
        """The same limit is not sent again; a later one is."""
        t = drawn(r=at(3), q=at(8))
        notifier = DrawnNotifier()
        t.record(t.cold("r-r-B-r-q-|").pipe(with_notifications(notifier)))
        assert 3 == len(notifier.sent)
        assert "08:00" in notifier.sent[2][1]

    @pytest.mark.parametrize("ending", ["|", "#"])
    def test_end_is_not_delayed(self, ending: str) -> None:
        """Completion and error pass at once and cancel the current notification."""
        t = drawn()
        sending = t.cold("-" * 9)
        source = f"B--{ending}"
        t.check(t.cold(source).pipe(with_notifications(DrawnNotifier(sending))), source)
        t.check_subscriptions(sending, "^--!")

    def test_disposal_cancels(self) -> None:
        """Disposal releases the source and the current notification; nothing is sent afterward."""
        t = drawn()
        source, sending = t.cold("B-S-S-S"), t.cold("-" * 9)
        notifier = DrawnNotifier(sending)
        t.check(source.pipe(with_notifications(notifier)), "B-S", dispose_at=3)
        t.check_subscriptions(source, "^--!")
        t.check_subscriptions(sending, "^--!")
        assert 1 == len(notifier.sent)

    def test_silent_notifier(self) -> None:
        """The silent notifier leaves the stream unchanged."""
        t = drawn()
        t.check(t.cold("BSP#").pipe(with_notifications(SilentNotifier())), "BSP#")

    def test_unsubscribing_at_the_event(self) -> None:
        """A subscriber that leaves during the event gets no notification for it."""
        t = drawn()
        notifier = DrawnNotifier(never())
        watch = t.cold("p-B-S").pipe(with_notifications(notifier))
        seen: list[Event] = []

        def leave(event: Event) -> None:
            seen.append(event)
            if isinstance(event, WatchBacklogWaiting):
                subscription.dispose()

        subscription = watch.subscribe(leave, scheduler=t.scheduler)
        t.scheduler.advance_to(9)
        assert [t.events["p"], t.events["B"]] == seen
        assert [] == notifier.sent


class TestWays:
    @pytest.mark.parametrize(
        ("notify", "bell", "kind"),
        [
            ("bell", True, SilentNotifier),
            ("none", False, SilentNotifier),
            ([], False, SilentNotifier),
            (["bell"], True, SilentNotifier),
            ("json://127.0.0.1:9/", False, AppriseNotifier),
            (["json://127.0.0.1:9/", "bell"], True, AppriseNotifier),
        ],
    )
    def test_configuration(self, notify: str | list[str], bell: bool, kind: type) -> None:
        """The bell rings if requested; only URLs need Apprise."""
        config = Config(notify=notify)
        assert bell == rings(config)
        assert kind is type(make_notifier(config))
