"""The conversation: what is asked, which replies count, and what happens when a service fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, throw

from cuggino import events as ev
from cuggino.chat import ChatStore, Post, Reply, conversation, reachable, split
from cuggino.chat.conversations import MOST_REFUSALS
from cuggino.errors import ChatError
from cuggino.operators import Flow, emit
from cuggino.testing import Marbles
from tests.chat.drawn import DATABASE, LINKS, DrawnChannel, DrawnInbox, codes
from tests.vectors import each, rows

CODE, OTHER = "aaaaaaaa", "bbbbbbbb"
RUNS = ev.IterationStart(iteration=1, max_iterations=2)
ASKED = ev.ChatAsked(channel="drawn", question="db.md", title="Which database?")


@pytest.fixture(autouse=True)
def known_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the codes of questions known."""
    monkeypatch.setattr("cuggino.chat.conversations.new_code", codes(CODE, OTHER))


def answered(text: str, sender: str = "") -> ev.ChatAnswered:
    """Return the event of an answer about the database."""
    return ev.ChatAnswered(channel="drawn", question="db.md", sender=sender, text=text)


def refused(reason: str, sender: str = "") -> ev.ChatRefused:
    """Return the event of a message that was not accepted."""
    return ev.ChatRefused(channel="drawn", sender=sender, reason=reason)


NO_CODE = refused("no open question has this code; reply to one, or begin with its code")
SETTLED = refused("this question is settled already")


def drawn(**events: Any) -> Marbles:
    """Return marbles: q asks about the database, p about both, 0 about nothing; Q: it was asked."""
    usual: dict[str, Any] = {
        "q": (DATABASE,),
        "p": (DATABASE, LINKS),
        "0": (),
        "Q": ASKED,
        "N": NO_CODE,
        "L": ev.ChatAsked(channel="drawn", question="links.md", title="How long?"),
        "X": ev.NotificationFailed(message="down"),
        "S": SETTLED,
    }
    return Marbles(**(usual | events))


class TestReplies:
    @pytest.mark.parametrize(
        ("reply", "event"),
        [
            (Reply(id="1", text=f"{CODE} #2", sender="Ada"), answered("SQLite", "Ada")),
            (Reply(id="1", text=f"{CODE.title()}: both\nof them"), answered("both\nof them")),
            (Reply(id="1", text="yes", quoted=f"begins with {CODE}."), answered("yes")),
            (Reply(id="1", text=f"{CODE} #3"), answered("#3")),
            (Reply(id="1", text=f"{CODE} a\x00b"), answered("ab")),
            (Reply(id="1", text="PostgreSQL", sender="Ada"), None),
            (Reply(id="1", text=f"{OTHER} PostgreSQL"), None),
            (Reply(id="1", text="yes", quoted="begins with cccccccc."), None),
        ],
        ids=["button", "typed", "reply", "no such option", "control", "none", "other", "unknown"],
    )
    def test_only_the_code_counts(self, reply: Reply, event: ev.ChatAnswered | None) -> None:
        """A reply settles the question whose code it has; without one it is refused and told so."""
        expected = event or NO_CODE.model_copy(update={"sender": reply.sender})
        t = drawn(r=reply, A=expected)
        inbox = DrawnInbox(t.cold("q"))
        channel = DrawnChannel(t.cold("--(r|)"))
        t.check(conversation(channel, inbox), "Q-A", until=10)
        told = channel.sent[1]
        assert reply.id == (told.to and told.to.id)
        if event is None:
            assert [] == inbox.answers
            assert told.text.startswith("Not recorded: no open question")
        else:
            ((key, answer),) = inbox.answers
            assert ("db.md", event.text) == (key, answer.text)
            assert (1 if event.text == "SQLite" else None) == answer.option
            assert f"Recorded: Which database?: {event.text}" == told.text

    def test_a_code_counts_once(self) -> None:
        """A second answer to a question is refused, and reaches no inbox."""
        t = drawn(
            a=Reply(id="1", text=f"{CODE} #1"),
            b=Reply(id="2", text=f"{CODE} #2"),
            A=answered("PostgreSQL"),
        )
        inbox, channel = DrawnInbox(t.cold("q")), DrawnChannel(t.cold("-(ab|)"))
        t.check(conversation(channel, inbox), "Q(AS)", until=10)
        assert 1 == len(inbox.answers)
        assert "Not recorded: this question is settled already." == channel.texts[-1]

    def test_a_quick_person(self) -> None:
        """An answer counts before the service has confirmed the question, and once."""
        t = drawn(
            a=Reply(id="1", text=f"{CODE} #1"),
            b=Reply(id="2", text=f"{CODE} #2"),
            A=answered("PostgreSQL"),
        )
        inbox = DrawnInbox(t.cold("q"))
        channel = DrawnChannel(t.cold("-(a|)"), t.cold("---(b|)"), sending=[t.cold("---|")])
        t.check(conversation(channel, inbox), "-A-QS", until=10)
        assert 1 == len(inbox.answers)

    def test_the_same_reply_twice(self) -> None:
        """A reply that a service sends again is ignored; the next call names the last one."""
        t = drawn(a=Reply(id="7", text=f"{CODE} #1"), A=answered("PostgreSQL"))
        channel = DrawnChannel(t.cold("-(aa|)"), t.cold("--(a|)"))
        t.check(conversation(channel, DrawnInbox(t.cold("q"))), "QA", until=20)
        assert ["", "7", "7"] == channel.after

    def test_a_question_settled_elsewhere(self) -> None:
        """An answer to a question that another place has settled is refused."""
        reply = Reply(id="1", text=f"{CODE} #1")
        t = drawn(r=reply)
        t.check(
            conversation(DrawnChannel(t.cold("--(r|)")), DrawnInbox(t.cold("q0"))), "Q-S", until=9
        )

    def test_an_inbox_that_refuses(self) -> None:
        """The person is told why an answer was not taken, and can answer again."""
        t = drawn(r=Reply(id="1", text=f"{CODE} #1"), D=refused("disk full"))
        inbox, channel = DrawnInbox(t.cold("q"), refused="disk full"), DrawnChannel(t.cold("-(r|)"))
        t.check(conversation(channel, inbox), "QD", until=9)
        assert "Not recorded: disk full." == channel.texts[-1]

    def test_a_flood_is_not_answered(self) -> None:
        """After some refusals further ones are ignored, so that a flood causes no other."""
        flood = [Reply(id=str(number), text="spam") for number in range(MOST_REFUSALS + 5)]
        t = drawn(**{chr(0x100 + number): one for number, one in enumerate(flood)})
        replies = t.cold(f"({''.join(chr(0x100 + number) for number in range(len(flood)))}|)")
        channel = DrawnChannel(replies)
        seen = t.record(conversation(channel, DrawnInbox(t.cold("-"))), until=9)
        assert MOST_REFUSALS == len(seen) == len(channel.sent)

    def test_messages_without_a_code(self) -> None:
        """They are for `talk`, if the service knows who writes."""
        t = drawn(
            a=Reply(id="1", text="hello", sender="Ada"), b=Reply(id="2", text="hello"), T="hello"
        )

        def talk(text: str, send: Any) -> Flow[None]:
            yield from emit(text)
            yield from send(Post(text=f"{text} yourself"))

        channel = DrawnChannel(t.cold("-(ab|)"))
        t.check(conversation(channel, DrawnInbox(t.cold("-")), talk=talk), "-(TN)", until=9)
        assert "hello yourself" == channel.texts[0]


class TestQuestions:
    def test_each_is_asked_once(self) -> None:
        """Each open question is sent once, with a code of its own in its buttons and its text."""
        t, channel = drawn(), DrawnChannel()
        t.check(conversation(channel, DrawnInbox(t.cold("q-p")), project="shop"), "Q-L", until=9)
        first, second = channel.sent
        assert first.text.startswith("cuggino (shop) asks:\n\n# Which database?")
        assert [f"{CODE} #1", f"{CODE} #2"] == [one.reply for one in first.buttons]
        assert ["PostgreSQL", "SQLite"] == [one.label for one in first.buttons]
        assert first.text.endswith(f"begins with {CODE}.")
        assert second.text.endswith(f"begins with {OTHER}.")

    def test_secrets_are_masked(self) -> None:
        """Neither question, event nor acknowledgement has a secret; the answer itself stays."""
        t = drawn(r=Reply(id="1", text=f"{CODE} by Postgre"))
        inbox, channel = DrawnInbox(t.cold("q")), DrawnChannel(t.cold("-(r|)"))
        masked = conversation(channel, inbox, mask=lambda text: text.replace("Postgre", "***"))
        events = t.record(masked, until=9)
        posts = [(post.text, [one.label for one in post.buttons]) for post in channel.sent]
        assert "Postgre" not in f"{posts} {events}"
        assert "by Postgre" == inbox.answers[0][1].text

    def test_a_killed_process(self, tmp_path: Path) -> None:
        """The next process asks nothing again, knows the codes, and ignores old replies."""
        kept = ChatStore(tmp_path, project=tmp_path, channel="drawn")
        old = Reply(id="1", text="hello")
        t = drawn(o=old)
        t.record(
            conversation(DrawnChannel(t.cold("-(o|)")), DrawnInbox(t.cold("q")), store=kept),
            until=5,
        )
        t = drawn(o=old, r=Reply(id="2", text=f"{CODE} #1"), A=answered("PostgreSQL"))
        channel = DrawnChannel(t.cold("-(or|)"))
        t.check(conversation(channel, DrawnInbox(t.cold("q")), store=kept), "-A", until=5)
        assert "1" == channel.after[0]
        (file,) = (tmp_path / "chat").iterdir()
        assert 0o600 == file.stat().st_mode & 0o777

    def test_a_broken_store(self, tmp_path: Path) -> None:
        """An unreadable state counts as none: everything is asked again, with new codes."""
        kept = ChatStore(tmp_path, project=tmp_path, channel="drawn")
        kept.save(kept.load().ask(CODE, "db.md"))
        (file,) = (tmp_path / "chat").iterdir()
        file.write_text("{")
        t = drawn()
        t.check(conversation(DrawnChannel(), DrawnInbox(t.cold("q")), store=kept), "Q", until=5)


class TestFailures:
    def test_sending_is_repeated(self) -> None:
        """A post is repeated by the schedule, with the same code; that is reported once."""
        t = drawn()
        down: list[Observable[Any]] = [throw(ChatError("down"))] * 3
        channel = DrawnChannel(sending=down)
        t.check(conversation(channel, DrawnInbox(t.cold("q"))), f"X{'-' * 13}Q", until=60)
        assert 4 == len(channel.sent)
        assert 1 == len({post.text for post in channel.sent})

    def test_a_named_delay(self) -> None:
        """A delay that the service names is kept to."""
        t = drawn()
        channel = DrawnChannel(sending=[throw(ChatError("down", retry_in=5))])
        t.check(conversation(channel, DrawnInbox(t.cold("q"))), "X----Q", until=60)

    def test_listening_is_repeated(self) -> None:
        """An answer arrives after an outage of two seconds, then four, whatever it raises."""
        t = drawn(r=Reply(id="1", text=f"{CODE} #1"), A=answered("PostgreSQL"))
        channel = DrawnChannel(throw(ValueError("down")), throw(ChatError("down")), t.cold("(r|)"))
        t.check(conversation(channel, DrawnInbox(t.cold("q"))), "(XQ)-----A", until=60)

    def test_a_permanent_failure(self) -> None:
        """A service that refuses the token ends the conversation, and not the run."""
        no = ChatError("unauthorized", transient=False, hint="check it")
        t = drawn(Y=ev.NotificationFailed(message="unauthorized; check it"))
        channel = DrawnChannel(throw(no), sending=[throw(no)])
        t.check(conversation(channel, DrawnInbox(t.cold("q|"))), "(Y|)")
        t = drawn(Y=ev.NotificationFailed(message="unauthorized; check it"), a=RUNS)
        channel = DrawnChannel(throw(no), sending=[throw(no)])
        source = t.cold("-a-|")
        t.check(source.pipe(reachable(channel, inbox=DrawnInbox(t.cold("q")))), "Ya-|")

    def test_unreadable_questions(self) -> None:
        """An inbox that fails ends the conversation, and is reported."""
        t = drawn()
        t.error = OSError("down")
        t.check(conversation(DrawnChannel(), DrawnInbox(t.cold("--#"))), "--(X|)")


class TestReachable:
    def test_reports(self) -> None:
        """Reports go to the channel; a spec issue is one only without questions."""
        waiting = ev.WatchSpecIssueWaiting()
        parked = ev.WatchItemParked(filename="a.md", reason="no use")
        for has_inbox in (True, False):
            t = drawn(w=waiting, k=parked)
            channel = DrawnChannel()
            inbox = DrawnInbox(t.cold("-")) if has_inbox else None
            on = reachable(channel, inbox=inbox, project="shop", on=["spec_issue", "parked"])
            t.check(t.cold("w-k-|").pipe(on), "w-k-|")
            titles = [post.text.splitlines()[0] for post in channel.sent]
            assert "cuggino (shop): Parked: a: no use" == titles[-1]
            assert (1 if has_inbox else 2) == len(titles)

    def test_it_ends_with_the_source(self) -> None:
        """Questions and replies are released when the source ends or is disposed."""
        for end in ({}, {"dispose_at": 2}):
            t = drawn(a=RUNS)
            questions, replies = t.cold("q"), t.cold("-")
            on = reachable(DrawnChannel(replies), inbox=DrawnInbox(questions))
            t.record(t.cold("-a-|").pipe(on), **end)  # type: ignore[arg-type]  # a table
            t.check_released()


@each("case", [row for row in rows("session_and_telegram") if row.get("fn") == "telegram_split"])
def test_split(case: dict[str, Any]) -> None:
    """Long texts are cut between paragraphs, else between lines, else anywhere."""
    assert case["expected"] == split(case["text"], case["limit"])
