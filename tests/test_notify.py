"""Notifications: which events need a person, how often, and their effect on the watch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from reactivex import (
    Observable,
    concat,
    empty,
    from_iterable,
    never,
    operators as ops,
    throw,
    timer,
)

from cuggino import events as ev, run
from cuggino.agents.cassettes import without_secrets
from cuggino.config import OCCASIONS, Config, Occasion
from cuggino.errors import CugginoError, Interrupted
from cuggino.notify import (
    AppriseNotifier,
    CommandNotifier,
    SeveralNotifiers,
    SilentNotifier,
    make_notifier,
    message_for,
    rings,
    with_notifications,
)
from cuggino.notify.night import Night
from cuggino.notify.operator import next_time
from cuggino.testing import Marbles, no_leaks
from tests.limits import LIMIT

LIMIT_TITLE = "Usage limit reached"


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


def sent_about(*events: ev.Event, **options: Any) -> list[tuple[str, str]]:
    """Return the notifications about the events of a run that then ends."""
    notifier = DrawnNotifier()
    Marbles().record(from_iterable(events).pipe(with_notifications(notifier, **options)))
    return notifier.sent


def at(hour: int) -> ev.RateLimited:
    """Return a usage limit that is reached and resets at that hour."""
    resets_at = datetime(2030, 1, 2, hour, tzinfo=UTC)
    return ev.RateLimited(status="rejected", limit="five_hour", resets_at=resets_at)


def drawn(**events: Any) -> Marbles:
    """Return marbles: S, B and P need a person, p and c do not; X is a failed notification."""
    return Marbles(
        S=ev.WatchSpecIssueWaiting(),
        B=ev.WatchBacklogWaiting(),
        P=ev.WatchItemParked(filename="a.md", reason="no network"),
        p=ev.WatchProcessingItem(filename="a.md"),
        c=ev.WatchItemCompleted(filename="a.md"),
        X=ev.NotificationFailed(message="no network"),
        error=CugginoError("no network"),
        **events,
    )


ALL = OCCASIONS

RUN = [ev.IterationStart(iteration=1, max_iterations=2)]


def cost(usd: float) -> ev.SessionEnded:
    """Return the end of a session that cost so much."""
    return ev.SessionEnded(outcome="completed", duration=1.0, cost_usd=usd)


def commit(name: str, message: str) -> ev.CommitPerformed:
    """Return a commit."""
    return ev.CommitPerformed(iteration=1, commit_hash=name, message=message)


class TestMessages:
    @pytest.mark.parametrize(
        ("event", "occasion", "title", "body"),
        [
            (
                ev.WatchSpecIssueWaiting(),
                "spec_issue",
                "Spec issue detected, waiting for resolution...",
                "cuggino issues",
            ),
            (
                ev.WatchItemParked(filename="a.md", reason="no use"),
                "parked",
                "Parked: a: no use",
                "in .cuggino/parked/ now",
            ),
            (ev.WatchItemCompleted(filename="a.md"), "item", "Completed: a", ""),
            (
                ev.WatchItemCompleted(filename="a.md", checked=False),
                "item",
                "Completed, unchecked: a",
                "",
            ),
            (at(3), "quota", f"{LIMIT_TITLE} (five_hour), resets 2030-01-02 03:00 UTC", ""),
            (ev.RateLimited(status="rejected"), "quota", LIMIT_TITLE, ""),
            (
                ev.QuotaWaiting(remaining=60.0),
                "quota",
                "Waiting for the usage limit, 1m 0s left",
                "",
            ),
            (
                ev.QuotaWaiting(remaining=60.0, message="20 % are kept", planned=True),
                "quota",
                "Waiting, 1m 0s left: 20 % are kept",
                "",
            ),
            (
                ev.RateLimited(status="rejected", limit="five_hour", overage=True),
                "quota",
                "Usage limit reached (five_hour), extra usage is paid for",
                "",
            ),
            (
                ev.BudgetWarning(budget="cost", spent=8.0, limit=10.0),
                "budget",
                "80% of the cost spent: $8.00 of $10.00",
                "",
            ),
            (
                ev.BudgetWarning(budget="cost", spent=8.0, limit=10.0, estimated=True),
                "budget",
                "80% of the cost spent: ~$8.00 of $10.00",
                "",
            ),
            (
                ev.WatchItemRetry(
                    filename="a.md",
                    message="run `claude`",
                    attempt=1,
                    max_attempts=3,
                    retry_in=1.0,
                    login=True,
                ),
                "login",
                "Log in to continue (tried again every 1s, or when the watch is restarted): "
                "run `claude`",
                "",
            ),
        ],
    )
    def test_events_that_need_a_person(
        self, event: ev.Event, occasion: str, title: str, body: str
    ) -> None:
        """Each has an occasion, a title, and a body with advice or information."""
        message = message_for(event)
        assert message is not None
        assert {occasion} == message.occasions
        assert title == message.title
        assert body in message.body

    @pytest.mark.parametrize(
        "event",
        [
            ev.RateLimited(status="allowed_warning"),
            ev.QuotaUsed(window="five_hour", used=0.9),
            ev.WatchProcessingItem(filename="a.md"),
            ev.LoopSpecIssue(iteration=1, content="x", filename="x.md"),
            ev.IterationStart(iteration=1, max_iterations=2),
            ev.NotificationFailed(message="x"),
        ],
    )
    def test_events_without_a_notification(self, event: ev.Event) -> None:
        """Progress and an approaching limit send no notification."""
        assert message_for(event) is None

    def test_text_is_inert(self) -> None:
        """Control characters and markup are removed, and a long text is cut."""
        reason = "<b>@everyone</b> [log in](http://evil.example) `x` *y*" + "x" * 10_000
        parked = ev.WatchItemParked(filename="a\x1b[2J\n@here.md", reason=reason)
        ((title, body),) = sent_about(parked, project="shop\x07", on=["parked"])
        hostile = "‹b›@\u2060everyone‹/b› (log in)(http:\u2060//evil.example) 'x' ∗y∗"
        assert title.startswith("cuggino (shop): Parked: a(2J")
        assert body.startswith(f"Parked: a(2J\n@\u2060here: {hostile}")
        assert 1500 == len(body)


class TestEnds:
    def test_a_run(self) -> None:
        """The end of a run is sent with focus, cost and commits."""
        t, notifier = Marbles(), DrawnNotifier()
        events = [
            *RUN,
            cost(1.5),
            commit("abc1234", "Add login\n\nmore"),
            ev.LoopApproved(iteration=1),
        ]
        run = from_iterable(events).pipe(
            with_notifications(notifier, project="shop", subject="Login page")
        )
        seen = [event for _, kind, event in t.record(run) if kind == "next"]
        assert events == seen
        title, body = notifier.sent[0]
        assert "cuggino (shop): Approved: Login page" == title
        assert ["1 commit", "abc1234 Add login", "Cost: $1.50, 0 s"] == body.splitlines()

    def test_an_estimated_cost(self) -> None:
        """A cost with an estimate is marked."""
        estimate = cost(0.5).model_copy(update={"cost_estimated": True})
        ((_, body),) = sent_about(*RUN, cost(1.5), estimate, ev.LoopApproved(iteration=1))
        assert "Cost: ~$2.00, 0 s" in body

    def test_a_spec_issue(self) -> None:
        """The end names what waits for a person."""
        issue = ev.LoopSpecIssue(iteration=1, content="How?", filename="001.md")
        ((title, body),) = sent_about(*RUN, issue, on=["spec_issue"])
        assert "cuggino: A spec issue waits for you" == title
        assert "Waits for you: How? (cuggino issues)" in body

    @pytest.mark.parametrize(
        ("result", "title"),
        [
            (
                ev.DeliverEnded(reason="all_blocked", passed=1, total=3, blocked=2),
                "Everything left is blocked",
            ),
            (ev.PlanBuildEnded(reason="complete"), "Approved"),
            (ev.DeliverEnded(reason="failed", error="no disk"), "Failed"),
        ],
    )
    def test_other_loops(self, result: ev.Event, title: str) -> None:
        """Every loop's result is sent."""
        assert [f"cuggino: {title}"] == [sent for sent, _ in sent_about(*RUN, result)]

    @pytest.mark.parametrize("on", [["failed"], ["end"]])
    def test_an_error(self, on: list[Occasion]) -> None:
        """An error ends a run, too; its reason and advice are sent."""
        t, notifier = drawn(a=RUN[0]), DrawnNotifier()
        t.check(t.cold("a-#").pipe(with_notifications(notifier, on=on)), "a-#")
        assert "cuggino: Failed" == notifier.sent[0][0]
        assert notifier.sent[0][1].startswith("no network\n")

    def test_nothing_is_sent_before_the_begin(self) -> None:
        """An error before anything happened is not sent: a person has just started the run."""
        t, notifier = drawn(), DrawnNotifier()
        t.check(t.cold("--#").pipe(with_notifications(notifier)), "--#")
        assert [] == notifier.sent

    @pytest.mark.parametrize("result", [[], [ev.DeliverEnded(reason="interrupted")]])
    def test_an_interrupted_run(self, result: list[ev.Event]) -> None:
        """Whoever interrupts a run is there."""
        notifier = DrawnNotifier()
        run = concat(from_iterable([*RUN, *result]), throw(Interrupted("interrupted")))
        Marbles().record(run.pipe(with_notifications(notifier, on=ALL)))
        assert [] == notifier.sent

    def test_approved_is_no_failure(self) -> None:
        """With `failed` alone, an approval is not sent."""
        assert [] == sent_about(*RUN, ev.LoopApproved(iteration=1), on=["failed"])

    def test_result_waits(self) -> None:
        """The result comes after its notification, and what follows it after the result."""
        t = drawn(a=RUN[0], R=ev.LoopApproved(iteration=1))
        sending = t.cold("---|")
        run = t.cold("a-R|").pipe(with_notifications(DrawnNotifier(sending)))
        t.check(run, "a----(R|)")

    def test_failure_comes_before_the_result(self) -> None:
        """A result stays the last event."""
        t = drawn(a=RUN[0], R=ev.LoopApproved(iteration=1))
        run = t.cold("a-R#").pipe(with_notifications(DrawnNotifier(t.cold("-#"))))
        t.check(run, "a--(XR#)")

    def test_result_does_not_wait_long(self) -> None:
        """After ten seconds, or an interrupt, the result does not wait any longer."""
        for stop, expected in (("-", "a-----------(R|)"), ("--s", "a---(R|)")):
            t = drawn(a=RUN[0], R=ev.LoopApproved(iteration=1), s=RUN[0])
            run = t.cold("a-R|").pipe(
                with_notifications(DrawnNotifier(never()), interrupt=t.cold(stop))
            )
            t.check(run, expected)


SLOTS = (("Login", 1), ("Export", 2))
START = datetime(2030, 1, 1, tzinfo=UTC)


def night(*names: str) -> list[ev.Event]:
    """Return the events of a watch that works on these items."""
    each = [
        [
            ev.WatchProcessingItem(filename=f"{name}.md", title=name.title()),
            cost(0.5),
            commit(f"c0{number}", f"Add {name}"),
            ev.LoopApproved(iteration=1),
            ev.WatchItemCompleted(filename=f"{name}.md"),
        ]
        for number, name in enumerate(names)
    ]
    return [event for events in each for event in events]


class TestNights:
    def sent(self, *events: ev.Event, **options: Any) -> list[tuple[str, str]]:
        """Return the notifications about these events of a watch."""
        notifier = DrawnNotifier()
        watch = concat(from_iterable(events), never())
        Marbles().record(watch.pipe(with_notifications(notifier, **options)), until=5)
        return notifier.sent

    def test_one_message_per_night(self) -> None:
        """However many items are done, the night is summed up once, with titles."""
        parked = [
            ev.WatchProcessingItem(filename="x.md", title="Export"),
            ev.WatchItemParked(filename="x.md", reason="no network"),
        ]
        (sent,) = self.sent(*night("login", "search"), *parked, ev.WatchBacklogWaiting())
        assert "cuggino: The backlog is worked through: 2 done, 1 given up" == sent[0]
        assert [
            "Done: Login (c00); Search (c01)",
            "2 commits",
            "c00 Add login",
            "c01 Add search",
            "Given up: Export: no network (cuggino backlog retry x.md)",
            "Cost: $1.00, 0 s",
        ] == sent[1].splitlines()

    def test_in_the_order_of_a_report(self) -> None:
        """What is done comes with its proof, then what waits, was given up, cost, was unusual."""
        events = [
            ev.Forecast(loop="item", runs=3, duration=9, worst_duration=9, cost_usd=0.25, items=2),
            ev.WatchProcessingItem(filename="a.md", title="Login", slot=1),
            ev.CheckCommandStarted(iteration=1, command="make test", on="commit").of_item("a.md"),
            ev.CheckCommandOutput(iteration=1, exit_code=0).of_item("a.md"),
            ev.WatchSentBack(filename="a.md", reason="conflict", returns=1),
            ev.WatchLanded(filename="a.md", commit="abcdef0123456", trunk_was="0"),
            ev.WatchItemCompleted(filename="a.md"),
            ev.WatchProcessingItem(filename="b.md", title="Export", slot=1),
            ev.LoopSpecIssue(iteration=1, content="CSV?", filename="1.md", item="b.md"),
            ev.WatchItemParked(filename="c.md", reason="no network"),
            cost(2),
        ]
        night_ = Night()
        for event in events:
            night_ = night_.add(event, START)
        assert [
            "Done: Login (abcdef0123, `make test` passed)",
            "Waits for you: CSV? (cuggino issues)",
            "Given up: c: no network (cuggino backlog retry c.md)",
            "Cost: $2.00 (usually $0.75), 0 s",
            "Unusual: sent back once",
        ] == night_.facts(START)
        assert "1 done, 1 waiting for you, 1 given up" == night_.counts()

    def test_an_idle_watch_is_silent(self) -> None:
        """A watch that has done nothing since the last summary sends none."""
        idle = ev.WatchBacklogWaiting()
        assert [] == self.sent(idle, idle)
        sent = self.sent(idle, *night("login"), idle, idle, *night("search"), idle)
        assert ["1 done"] * 2 == [title.rpartition(": ")[2] for title, _ in sent]
        assert "Search" not in sent[0][1]
        assert "Login" not in sent[1][1]

    def test_a_spec_issue_is_urgent(self) -> None:
        """It is sent at once; what was done until then is part of the night's summary."""
        issue = [
            ev.WatchProcessingItem(filename="x.md", title="Export"),
            ev.LoopSpecIssue(iteration=1, content="How?", filename="001.md"),
            ev.WatchSpecIssueWaiting(),
        ]
        sent = self.sent(*night("login"), *issue, ev.WatchBacklogWaiting())
        assert "cuggino: Spec issue detected, waiting for resolution..." == sent[0][0]
        assert sent[0][1].startswith("How?\nAnswer with")
        assert "Done: Login" in sent[1][1]

    def test_a_spec_issue_of_one_slot(self) -> None:
        """It names its item, as the others go on; it is settled when that is at work again."""
        begun = [ev.WatchProcessingItem(filename=f"{n}.md", title=n, slot=s) for n, s in SLOTS]
        issue = ev.LoopSpecIssue(iteration=1, content="How?", filename="001.md", item="Export.md")
        sent = self.sent(*begun, issue, ev.WatchItemCompleted(filename="Login.md"))
        assert sent == [
            (
                "cuggino: Spec issue: How?",
                "Item: Export\nAnswer with 'cuggino issues'.\nThe other items continue.",
            )
        ]
        open_ = Night().add(begun[1], START).add(issue, START)
        assert (open_.working, open_.facts(START)[0]) == (
            "",
            "Waits for you: How? (cuggino issues)",
        )
        settled = open_.add(begun[1], START)
        assert (settled.working, settled.state.questions) == ("Export", ())

    def test_a_usage_limit_of_all_slots(self) -> None:
        """All slots reach the same limit, which is sent once."""
        waits = ev.QuotaWaiting(remaining=60, resets_at=at(12).resets_at)
        sent = self.sent(
            *(e.of_item(f"{n}.md") for n in "ab" for e in (at(12), waits)), on=["quota"]
        )
        assert [title for title, _ in sent] == [
            f"cuggino: {LIMIT_TITLE} (five_hour), resets 2030-01-02 12:00 UTC"
        ]

    def test_a_night_of_several_slots(self) -> None:
        """Items at work are named together; a branch that does not follow needs a person."""
        late = ev.WatchFollowDelayed(branch="main", commit="c", reason="you have changed a.py")
        night_ = Night()
        for event in (
            *(ev.WatchProcessingItem(filename=f"{n}.md", title=n, slot=s) for n, s in SLOTS),
            late,
        ):
            night_ = night_.add(event, START)
        assert night_.working == night_.next().working == "Login; Export"
        told = "Waits for you: main does not follow: you have changed a.py"
        assert told in night_.facts(START)
        night_ = night_.add(ev.WatchItemCompleted(filename="Login.md"), START)
        night_ = night_.add(ev.WatchFollowed(branch="main", commit="c"), START)
        assert (night_.working, told in night_.facts(START)) == ("Export", False)

    def test_open_pull_requests(self) -> None:
        """Those that no merge, closing or return has ended are listed, also the next night."""
        begun = [
            event
            for number, name in enumerate(("Login", "Search", "Export", "Bill"), 1)
            for event in (
                ev.WatchProcessingItem(filename=f"{name}.md", title=name, slot=1),
                ev.WatchProposed(
                    filename=f"{name}.md",
                    number=number,
                    url="",
                    branch="b",
                    commit="c",
                    candidate="d",
                ),
            )
        ]
        night_ = Night()
        for event in (
            *begun,
            ev.WatchProposal(filename="Login.md", number=1, state="taken-over"),
            ev.WatchItemRetry(
                filename="Search.md", attempt=1, max_attempts=3, message="forge", retry_in=1
            ),
            ev.WatchSentBack(filename="Export.md", reason="check", returns=1),
            ev.WatchItemCompleted(filename="Bill.md"),
        ):
            night_ = night_.add(event, START)
        told = "Waits for you: Login (pull request #1 taken over); Search (pull request #2)"
        assert ["Done: Bill", told] == night_.facts(START)[:2]
        assert ("", True) == (night_.working, night_.next().has_items)
        assert told == night_.next().facts(START)[0]

    def test_occasions(self) -> None:
        """Each item can be sent, and the night left out."""
        sent = self.sent(*night("login"), ev.WatchBacklogWaiting(), on=["item"])
        assert [("cuggino: Completed: Login", "")] == sent

    def test_the_page(self) -> None:
        """A running page is linked, unlike addresses that agents wrote."""
        sent = self.sent(
            *night("http://x"), ev.WatchBacklogWaiting(), page=lambda: "http://mine/a*b"
        )
        assert sent[0][1].endswith("\nhttp://mine/a*b")
        assert 1 == sent[0][1].count("://")

    def test_secrets(self) -> None:
        """Secrets of the environment are masked in titles and texts."""
        mask = without_secrets({"API_TOKEN": "geheim123"})
        ((title, body),) = self.sent(
            ev.WatchItemParked(filename="geheim123.md", reason="geheim123"),
            mask=mask,
            on=["parked"],
        )
        assert "geheim123" not in title + body
        assert "masked API_TOKEN" in title

    def test_the_morning(self) -> None:
        """A watch that still works sums up at that time, and later only the news."""
        t, notifier = Marbles(), DrawnNotifier()
        now = t.scheduler.now.astimezone()
        soon = (now + timedelta(seconds=60)).replace(second=0, microsecond=0)
        pause = max(1.0, (soon - now).total_seconds() + 1)
        watch = concat(
            from_iterable(
                [*night("login"), ev.WatchProcessingItem(filename="b.md", title="Search")]
            ),
            timer(pause).pipe(ops.map(lambda _: RUN[0])),
            from_iterable([ev.WatchItemCompleted(filename="b.md"), ev.WatchBacklogWaiting()]),
            never(),
        )
        t.record(watch.pipe(with_notifications(notifier, at=f"{soon:%H:%M}")), until=pause + 5)
        first, second = notifier.sent
        assert "cuggino: So far: 1 done" == first[0]
        assert ["At work: Search", "Done: Login (c00)"] == first[1].splitlines()[:2]
        assert "cuggino: The backlog is worked through: 1 done" == second[0]
        assert "Done: Search" in second[1]
        assert "Login" not in second[1]

    @pytest.mark.parametrize(("hour", "day"), [(6, 23), (7, 24), (22, 24)])
    def test_next_time(self, hour: int, day: int) -> None:
        """The next moment is today, or tomorrow if it has passed."""
        local = datetime(2026, 11, 23, hour).astimezone()
        found = next_time("07:00", local.astimezone(UTC))
        assert (day, 7, 0) == (found.day, found.hour, found.minute)


class TestOperator:
    def test_events_pass_at_once(self) -> None:
        """Every event passes unchanged and without delay while a notification is sent."""
        t = drawn()
        sending = t.cold("---|")
        source = "-p-P--c-S------"
        operator = with_notifications(DrawnNotifier(sending), on=ALL)
        t.check(t.cold(source).pipe(operator), source)
        t.check_subscriptions(sending, "---^--!", "------^--!", "---------^--!")

    def test_failure_is_reported_once(self) -> None:
        """A watch emits one `NotificationFailed`; later notifications are still tried."""
        t = drawn()
        notifier = DrawnNotifier(t.cold("-#"))
        operator = with_notifications(notifier, on=ALL)
        t.check(t.cold("P---S---P---|").pipe(operator), "PX--S---P---|")
        assert 3 == len(notifier.sent)

    def test_each_subscription_reports_its_failure(self) -> None:
        """A second subscription reports its own failure."""
        t = drawn()
        operator = with_notifications(DrawnNotifier(throw(t.error)), on=ALL)
        watch = t.cold("P--|").pipe(operator)
        for until in (10, 20):
            seen = [event for _, kind, event in t.record(watch, until=until) if kind == "next"]
            assert [t.events["P"], t.events["X"]] == seen

    def test_raising_notifier(self) -> None:
        """An exception of the notifier itself is a failed notification."""

        class Broken:
            def notify(self, title: str, body: str) -> Observable[Any]:
                raise ValueError("no network")

        t = drawn()
        t.check(t.cold("S--S-|").pipe(with_notifications(Broken())), "(SX)--S-|")

    def test_waiting_messages_are_merged(self) -> None:
        """Messages that arrive during a notification are merged into one."""
        t = drawn()
        notifier = DrawnNotifier(t.cold("-----|"))
        operator = with_notifications(notifier, on=ALL)
        t.record(t.cold("P-S-P--------|").pipe(operator))
        assert ["cuggino: Parked: a: no network", "cuggino: 2 messages"] == notifier.titles
        assert "Spec issue detected, waiting for resolution...\nAnswer with" in notifier.sent[1][1]

    def test_waiting_messages_are_limited(self) -> None:
        """Of many waiting messages, twenty are kept and the others are counted."""
        t = drawn()
        notifier = DrawnNotifier(t.cold("-|"))
        t.record(t.cold(f"({'c' * 1001})-----|").pipe(with_notifications(notifier, on=ALL)))
        assert ["cuggino: Completed: a", "cuggino: 1000 messages"] == notifier.titles
        assert 20 == notifier.sent[1][1].count("Completed")
        assert notifier.sent[1][1].endswith("\nand 980 more")

    def test_usage_limit_is_sent_once(self) -> None:
        """The same limit is not sent again; a later one is."""
        t = drawn(r=at(3), q=at(8))
        notifier = DrawnNotifier()
        t.record(t.cold("r-r-P-r-q-|").pipe(with_notifications(notifier, on=ALL)))
        assert 3 == len(notifier.sent)
        assert "08:00" in notifier.titles[2]

    @pytest.mark.parametrize("ending", ["|", "#"])
    def test_end_waits_for_the_last_one(self, ending: str) -> None:
        """Completion and error wait for a notification that is being sent."""
        t = drawn()
        operator = with_notifications(DrawnNotifier(t.cold("-----|")), on=["spec_issue"])
        t.check(t.cold(f"S--{ending}").pipe(operator), f"S----{ending}")

    def test_disposal_cancels(self) -> None:
        """Disposal releases the source and the current notification; nothing is sent afterward."""
        t = drawn()
        source, sending = t.cold("S-S-S-S"), t.cold("-" * 9)
        notifier = DrawnNotifier(sending)
        t.check(source.pipe(with_notifications(notifier)), "S-S", dispose_at=3)
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
        watch = t.cold("p-S-S").pipe(with_notifications(notifier))
        seen: list[ev.Event] = []

        def leave(event: ev.Event) -> None:
            seen.append(event)
            if isinstance(event, ev.WatchSpecIssueWaiting):
                subscription.dispose()

        subscription = watch.subscribe(leave, scheduler=t.scheduler)
        t.scheduler.advance_to(9)
        assert [t.events["p"], t.events["S"]] == seen
        assert [] == notifier.sent


class TestCommand:
    def test_input_and_variables(self, tmp_path: Path) -> None:
        """Title and text are the input and two variables, never part of the command."""
        command = 'cat >input; printf "%s|%s" "$CUGGINO_TITLE" "$CUGGINO_BODY" >variables'
        title, body = "cuggino: $(touch evil) --help", "line 1\n'; touch evil; '"
        with no_leaks():
            run(CommandNotifier(command, cwd=tmp_path).notify(title, body))
        assert f"{title}\n\n{body}\n" == (tmp_path / "input").read_text()
        assert f"{title}|{body}" == (tmp_path / "variables").read_text()
        assert not (tmp_path / "evil").exists()

    @pytest.mark.parametrize(
        ("command", "message"),
        [
            ("echo geheim; exit 3", "the notify command exited with 3"),
            (f"sleep {LIMIT}", "the notify command did not end within 0.2 s"),
        ],
    )
    def test_failure(self, command: str, message: str, tmp_path: Path) -> None:
        """A failure is reported without the command or its output, and nothing is left."""
        notifier = CommandNotifier(command, cwd=tmp_path, timeout=0.2 if "sleep" in command else 30)
        with no_leaks(), pytest.raises(CugginoError) as caught:
            run(notifier.notify("title", "body"))
        assert message == caught.value.message

    def test_several(self) -> None:
        """One that fails does not hold up the others, and is reported after them."""
        t = Marbles(error=CugginoError("no network"))
        good = DrawnNotifier(t.cold("---|"))
        both = SeveralNotifiers(DrawnNotifier(t.cold("-#")), good)
        seen = t.record(both.notify("title", "body"))
        assert [(3, "error")] == [(round(at), kind) for at, kind, _ in seen]
        assert "no network" == str(seen[0][2])
        assert ["title"] == good.titles


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
            ({"on": ["end"]}, True, SilentNotifier),
            ({"to": "none", "command": "true"}, False, CommandNotifier),
            ({"to": ["json://127.0.0.1:9/"], "command": "true"}, False, SeveralNotifiers),
        ],
    )
    def test_configuration(self, notify: Any, bell: bool, kind: type) -> None:
        """The bell rings if requested; a command needs no Apprise."""
        config = Config(notify=notify)
        assert bell == rings(config)
        assert kind is type(make_notifier(config))
