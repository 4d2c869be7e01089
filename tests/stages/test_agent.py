"""One agent session as a stage, drawn in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, just, operators as ops, throw

from cuggino import errors, events as ev
from cuggino.agents.base import SpawnOptions
from cuggino.events import AgentMessage, Done, LlmMarkerEvent, MessageDelta, Note, SessionEnded
from cuggino.operators import Flow, marker_tags
from cuggino.stages import Evidence, Supervision, agent_stage
from cuggino.testing import InMemoryAgent, Marbles


@pytest.fixture
def t() -> Marbles:
    return drawn()


DONE = ev.Done(content="all")
NOTE = ev.Note(content="mind")
TAGS = marker_tags(ev.Note, ev.Progress, ev.Done)


def drawn(**events: Any) -> Marbles:
    """The marks of this file: capital letters are what comes out of the stage."""
    return Marbles(
        **{
            "a": ev.AgentMessage(text="hi"),
            "t": ev.ToolCall(name="Bash"),
            "p": ev.PingEvent(timestamp=0),
            "n": ev.AgentMessage(text="<NOTE>mind</NOTE>"),
            "d": ev.AgentMessage(text="<DONE>all</DONE>"),
            "e": ev.AgentMessage(text="<PROGRESS>more</PROGRESS>"),
            "b": ev.AgentMessage(text="so:\n<DONE>all</DONE> bye"),
            "s": ev.SessionEnded(outcome="completed", cost_usd=0.5, session_id="s-2"),
            "$": ev.StageCost(phase="implementing", cost_usd=0.5, total_cost=0.5),
            "€": ev.StageCost(phase="implementing", cost_usd=1.0, total_cost=1.0),
            "f": ev.SessionEnded(outcome="failed"),
            "N": NOTE,
            "D": DONE,
            "M": ev.AgentNudged(no_marker=True),
            "A": ev.AgentReplaced(no_marker=True),
            "S": ev.AgentMessage(text="so:"),
            **events,
        }
    )


class Session:
    """An agent stage over drawn sessions, with its inputs and outputs."""

    def __init__(
        self,
        *streams: Observable[Any],
        can_resume: bool = False,
        linger: float = 5,
        facts: ev.LlmTerminalMarkerEvent | None = None,
        supervision: Supervision | None = None,
    ) -> None:
        def files() -> Flow[ev.LlmTerminalMarkerEvent | None]:
            yield from ()
            return facts

        self.agent = InMemoryAgent({"implementing": streams}, can_resume=can_resume)
        self.markers: list[ev.LlmMarkerEvent] = []
        self.stream = agent_stage(
            self.agent,
            SpawnOptions(
                prompt="Do it.",
                system_prompt="You are.",
                cwd=Path(),
                role="implementing",
                session_id="s-1",
                env={"A": "b"},
            ),
            phase="implementing",
            tags=TAGS,
            on_marker=self.markers.append,
            linger=linger,
            supervision=supervision,
            evidence=Evidence(facts=files, left=lambda: just("+1")),
        )

    def error(self, t: Marbles) -> errors.CugginoError:
        """The error that the stage ends with."""
        _, kind, value = t.record(self.stream)[-1]
        assert "error" == kind
        assert isinstance(value, errors.CugginoError)
        return value


class TestEnding:
    def test_the_terminal_marker_comes_last(self, t: Marbles) -> None:
        """The agent's events pass, its result too, and the marker ends the stage."""
        agent = t.cold("-a-t-d-s|")
        t.check(Session(agent).stream, "-a-t---s($D|)")
        t.check_subscriptions(agent, "^-------!")

    def test_text_around_the_marker(self, t: Marbles) -> None:
        """Text before the marker is shown; what comes after it is not."""
        t.check(Session(t.cold("b-a-s|")).stream, "S---s($D|)")

    def test_a_marker_over_several_messages(self) -> None:
        """An agent that emits each line as a message without an id is understood."""
        t = drawn(
            x=ev.AgentMessage(text="<DONE>"),
            y=ev.AgentMessage(text="all"),
            z=ev.AgentMessage(text="</DONE>"),
        )
        t.check(Session(t.cold("a-x-p-y-z|")).stream, "a---p----(D|)")

    def test_an_agent_that_stays_is_ended(self, t: Marbles) -> None:
        """After the linger time the agent's processes are ended, then the marker is emitted."""
        order: list[str] = []
        agent = t.cold("a-d-a-t-a-a-a")
        released = agent.pipe(ops.finally_action(lambda: order.append("released")))

        def note(event: ev.Event) -> None:
            order.append(event.tag)

        stream = Session(released).stream.pipe(ops.do_action(note))
        t.check(stream, "a------(D|)")
        assert ["AgentMessage", "released", "Done"] == order
        t.check_subscriptions(agent, "^------!")

    def test_the_first_of_the_same_markers_counts(self) -> None:
        """The same terminal marker again is not seen, nor given to `on_marker`."""
        t = drawn(z=ev.AgentMessage(text="<DONE>again</DONE>"))
        session = Session(t.cold("d-z|"))
        t.check(session.stream, "---(D|)")
        assert [DONE] == session.markers

    def test_a_session_that_is_told_something_after_the_marker_goes_on(self) -> None:
        """A person's message voids the marker: the session ends with the one after it."""
        t = drawn(
            w=ev.Steered(text="also B", to="session"), z=ev.AgentMessage(text="<DONE>B</DONE>")
        )
        later = ev.Done(content="B")
        session = Session(t.cold("-d-w-t-------z-s|"))
        t.events["Z"] = later
        t.check(session.stream, "---w-t---------s($Z|)")
        assert [later] == session.markers
        t = drawn(w=ev.Steered(text="also B", to="session"))
        session = Session(t.cold("-e-d-w-a-s|"), t.cold("|"))
        error = session.error(t)
        assert "ended without emitting a marker" in error.message

    def test_a_failure_after_the_marker_is_not_seen(self) -> None:
        """An agent that fails after its terminal marker has done its work."""
        t = drawn(error=errors.AgentFailed("crashed", reason="crash"))
        t.check(Session(t.cold("d-f#")).stream, "--f(D|)")

    def test_disposal_ends_the_agent(self) -> None:
        """Disposed while the agent works or lingers, the agent is released at once."""
        t = drawn()
        agent = t.cold("a----d----")
        t.check(Session(agent).stream, "a", dispose_at=3)
        t.check_subscriptions(agent, "^--!")
        t = drawn()
        agent = t.cold("a-d-------")
        t.check(Session(agent).stream, "a", dispose_at=4)
        t.check_subscriptions(agent, "^---!")

    def test_it_is_cold(self, t: Marbles) -> None:
        """Without a subscription no agent is spawned; the options go to it as they are."""
        session = Session(t.cold("d|"))
        assert [] == session.agent.spawned
        t.record(session.stream)
        assert [("Do it.", "You are.", "s-1", {"A": "b"})] == [
            (o.prompt, o.system_prompt, o.session_id, o.env) for o in session.agent.spawned
        ]


class TestMarkers:
    def test_every_marker_is_given_away(self, t: Marbles) -> None:
        """`on_marker` gets notes and the ending, each as it is emitted."""
        session = Session(t.cold("n-n-d|"))
        t.check(session.stream, "N-N--(D|)")
        assert [NOTE, NOTE, DONE] == session.markers

    def test_tags_of_other_roles_are_text(self) -> None:
        """A tag that the role does not have is text."""
        t = drawn(x=ev.AgentMessage(text="<APPROVED>yes</APPROVED>"))
        t.check(Session(t.cold("x-d|")).stream, "x--(D|)")

    def test_a_marker_that_cannot_be_stored(self, t: Marbles) -> None:
        """An error of `on_marker` ends the stage with it, and the agent."""
        agent = t.cold("-n----")
        session = Session(agent)
        failure = errors.StorageError("append marker", "the disk is full")

        def refuse(_marker: ev.LlmMarkerEvent) -> None:
            raise failure

        stream = agent_stage(
            session.agent,
            SpawnOptions(prompt="", cwd=Path(), role="implementing"),
            phase="implementing",
            tags=TAGS,
            on_marker=refuse,
        )
        assert [(1, "error", failure)] == t.record(stream)
        t.check_subscriptions(agent, "^!")


MORE = ev.Progress(content="more")
BOTH = ev.ContradictoryMarkers(
    phase="implementing", counted="PROGRESS", markers=(("DONE", "all"), ("PROGRESS", "more"))
)


INNER = "<PROGRESS>more</PROGRESS>"


class TestContradictions:
    """The most cautious of different terminal markers counts, and an event has all of them."""

    @pytest.mark.parametrize(
        ("diagram", "expected"),
        [
            ("y-s|", "--s($CP|)"),
            ("x-s|", "--s($CP|)"),
            ("n-s|", "--s($EP|)"),
            ("u-s|", "--s($EP|)"),
            ("d-e-s|", "----s($CP|)"),
            ("d-a-e--", "-----(CP|)"),
            ("d-s-e|", "--s--($CP|)"),
            ("d-e-#", "----(CP|)"),
        ],
    )
    def test_progress_counts_before_done(self, diagram: str, expected: str) -> None:
        """In one message or two, in the linger time, and if the session then fails."""
        t = drawn(
            y=ev.AgentMessage(text="<DONE>all</DONE>\n\n<PROGRESS>more</PROGRESS>"),
            x=ev.AgentMessage(text="<DONE>all</DONE> <PROGRESS>more</PROGRESS>"),
            n=ev.AgentMessage(text=f"<DONE>\n{INNER}\n</DONE>"),
            u=ev.AgentMessage(text=f"<DONE>\n{INNER}</DONE>"),
            C=BOTH,
            E=BOTH.model_copy(update={"markers": (("DONE", INNER), ("PROGRESS", "more"))}),
            P=MORE,
            error=errors.AgentFailed("crashed", reason="crash"),
        )
        session = Session(t.cold(diagram))
        t.check(session.stream, expected)
        assert [MORE] == session.markers

    def test_a_marker_of_the_session_before(self) -> None:
        """A marker that failed to count before a reminder contradicts nothing."""
        t = drawn(x=ev.AgentMessage(text="not <PROGRESS>more</PROGRESS> yet"))
        session = Session(t.cold("x|"), t.cold("d|"), can_resume=True)
        t.check(session.stream, "xM(D|)")


class TestAfterAFailure:
    """A marker after a result that is an error counts for nothing."""

    def test_it_is_text(self) -> None:
        """The session fails with its error; a note is text as well."""
        t = drawn(
            error=errors.AgentFailed("crashed", reason="crash"),
            D=ev.AgentMessage(text="<DONE>all</DONE>"),
            N=ev.AgentMessage(text="<NOTE>mind</NOTE>"),
        )
        session = Session(t.cold("f-n-d#"))
        assert "crashed" in session.error(t).message
        t.check(Session(t.cold("f-n-d")).stream, "f-N-D")
        assert [] == session.markers

    def test_one_before_it_counts(self) -> None:
        """An agent that fails after its terminal marker has done its work."""
        t = drawn(error=errors.AgentFailed("crashed", reason="crash"))
        t.check(Session(t.cold("d-f-e#")).stream, "--f--(D|)")


class TestWhereAMarkerCounts:
    """In the midst of a line it is text, and the agent is asked for it."""

    @pytest.mark.parametrize(
        "text",
        [
            "I will not respond with <DONE>all</DONE> yet, 9 tasks remain",
            "Then:\n\n    <DONE>all</DONE>",
            "> <DONE>all</DONE>",
            '{"answer": "<DONE>all</DONE>"}',
            '<p title="<DONE>all</DONE>">',
            "<!--\n<DONE>all</DONE>\n-->",
        ],
    )
    def test_a_quoted_marker(self, text: str) -> None:
        """The reminder explains where a marker counts, and the answer to it counts."""
        t = drawn(q=ev.AgentMessage(text=text))
        session = Session(t.cold("q-s|"), t.cold("d-s|"), can_resume=True)
        t.check(session.stream, "q-sM-s(€D|)")
        assert "at the very beginning of a line" in session.agent.spawned[1].prompt
        assert [DONE] == session.markers


class TestAskedOnceMore:
    def test_an_agent_without_marker_is_asked_in_its_session(self, t: Marbles) -> None:
        """It is asked for one of its terminal markers, in the session that it reported."""
        first, second = t.cold("a--s|"), t.cold("a-d-s|")
        session = Session(first, second, can_resume=True)
        t.check(session.stream, "a--s(Ma)---s(€D|)")
        t.check_subscriptions(first, "^---!")
        t.check_subscriptions(second, "----^----!")
        reminder = session.agent.spawned[1]
        assert (None, "s-2") == (reminder.session_id, reminder.resume_session_id)
        assert ("implementing", {"A": "b"}) == (reminder.role, reminder.env)
        assert "<PROGRESS>...</PROGRESS>, <DONE>...</DONE>." in reminder.prompt
        assert "NOTE" not in reminder.prompt

    def test_without_a_reported_session_its_own_id_is_resumed(self, t: Marbles) -> None:
        """An agent that reported no session id is resumed by the id it was started with."""
        session = Session(t.cold("a|"), t.cold("d|"), can_resume=True)
        t.check(session.stream, "aM(D|)")
        assert "s-1" == session.agent.spawned[1].resume_session_id

    def test_it_is_asked_only_once(self, t: Marbles) -> None:
        """Silent again it is replaced by an agent that gets its words and its work."""
        session = Session(t.cold("a|"), t.cold("t|"), t.cold("-d|"), can_resume=True)
        t.check(session.stream, "a(Mt)A-(D|)")
        _, _, fresh = session.agent.spawned
        assert fresh.resume_session_id is None
        assert fresh.session_id not in (None, "s-1")
        assert fresh.prompt.startswith("Do it.\n\nAnother agent worked on this before you")
        assert "Its last words:\n\n> hi" in fresh.prompt
        assert "What is not committed now:\n\n```diff\n+1\n```" in fresh.prompt

    def test_the_files_decide_at_last(self) -> None:
        """If the fresh agent forgets it too, the files of the stage say how it ended."""
        t = drawn(
            I=ev.StageInferred(phase="implementing", counted="PROGRESS"),
            P=ev.Progress(content="work"),
        )
        sessions = [t.cold("a|"), t.cold("a|"), t.cold("as|")]
        session = Session(*sessions, can_resume=True, facts=ev.Progress(content="work"))
        t.check(session.stream, "a(Ma)(Aa)s(I$P|)")
        assert [ev.Progress(content="work")] == session.markers

    def test_the_files_decide_although_the_last_agent_fails(self) -> None:
        """A fresh agent that fails says nothing about the work of the first."""
        t = drawn(
            error=errors.AgentFailed("crashed", reason="crash"),
            I=ev.StageInferred(phase="implementing", counted="PROGRESS"),
            P=ev.Progress(content="work"),
        )
        session = Session(t.cold("a|"), t.cold("#"), facts=ev.Progress(content="work"))
        t.check(session.stream, "a(AIP|)")
        t = drawn(error=errors.QuotaExceeded("limit"))
        session = Session(t.cold("a|"), t.cold("#"), facts=ev.Progress(content="work"))
        assert 12 == session.error(t).code

    def test_without_facts_it_is_an_error(self, t: Marbles) -> None:
        """The stage fails once the reminder and the fresh agent are used up."""
        session = Session(t.cold("a|"), t.cold("a|"), t.cold("t|"), can_resume=True)
        assert "(last event: ToolCall)" in session.error(t).message
        assert 3 == len(session.agent.spawned)

    def test_an_agent_that_cannot_resume_is_replaced(self, t: Marbles) -> None:
        """If sessions cannot be resumed, a fresh agent takes over at once."""
        session = Session(t.cold("a|"), t.cold("d|"))
        t.check(session.stream, "aA(D|)")

    def test_a_fresh_agent_is_reminded_if_the_first_was_not(self) -> None:
        """Each remedy is used once, whatever it was needed for first."""
        t = drawn(R=ev.AgentReplaced(idle=3.0))
        supervision = Supervision(idle_timeout=3)
        sessions = [t.cold("a---"), t.cold("----"), t.cold("a|"), t.cold("d|")]
        session = Session(*sessions, can_resume=True, supervision=supervision)
        t.events["N"] = ev.AgentNudged(idle=3.0)
        t.check(session.stream, "a--N--(Ra)M(D|)")

    def test_an_agent_that_failed_is_not_asked(self) -> None:
        """A failed session is an error at once."""
        t = drawn(error=errors.AgentFailed("overloaded", reason="overloaded"))
        session = Session(t.cold("a#"), t.cold("d|"), can_resume=True)
        session.error(t)
        assert 1 == len(session.agent.spawned)

    def test_disposal_while_it_is_asked(self, t: Marbles) -> None:
        """Disposed in the second session, that one is released."""
        second = t.cold("-----")
        t.check(Session(t.cold("a|"), second, can_resume=True).stream, "aM", dispose_at=4)
        t.check_subscriptions(second, "-^--!")


class TestErrors:
    @pytest.mark.parametrize(
        ("diagram", "words"),
        [
            ("|", "Agent stream ended without emitting any marker"),
            ("-p-s|", "Agent stream ended without emitting any marker"),
            ("a|", "Agent stream ended without emitting a marker (last event: AgentMessage)"),
            ("a-t-p|", "Agent stream ended without emitting a marker (last event: ToolCall)"),
            ("a-t-s|", "Agent stream ended without emitting a marker (last event: ToolCall)"),
            (
                "x-y|",
                "Agent stream ended without emitting a marker (last event: AgentMessage); its text "
                "has <DONE> where it does not count: the tag must begin a line, and all parts of a "
                "message need the same message_id",
            ),
            ("a-n|", "Non-terminal marker received from implementing agent (got: Note)"),
        ],
    )
    def test_words_for_a_missing_marker(self, diagram: str, words: str) -> None:
        """The error names the phase and the last event, pings and results aside (CUG-034)."""
        t = drawn(x=ev.AgentMessage(text="<DO"), y=ev.AgentMessage(text="NE>all</DONE>"))
        error = Session(t.cold(diagram), t.cold(diagram)).error(t)
        assert isinstance(error, errors.LoopError)
        assert f"Loop error in implementing phase: {words}" == error.message
        assert ("implementing", None, 1) == (error.phase, error.cause, error.code)

    @pytest.mark.parametrize(
        ("cause", "code"),
        [
            (errors.AgentFailed("bad key", reason="auth", hint="log in"), 1),
            (errors.QuotaExceeded("usage limit reached"), 12),
            (errors.BudgetExceeded("spent"), 13),
        ],
    )
    def test_a_failed_session_is_the_cause(self, cause: errors.LlmSessionError, code: int) -> None:
        """The session's error is the cause of the phase's, with its words, hint and exit code."""
        t = drawn(error=cause)
        error = Session(t.cold("a-f#")).error(t)
        assert isinstance(error, errors.LoopError)
        assert f"Loop error in implementing phase: {cause.message}" == error.message
        assert (cause, cause, cause.hint, code) == (
            error.cause,
            error.__cause__,
            error.hint,
            error.code,
        )

    def test_another_error_passes(self) -> None:
        """An error that is not the session's own is not taken for the phase's."""
        failure = ZeroDivisionError()
        assert [(0, "error", failure)] == drawn().record(Session(throw(failure)).stream)


# -- an agent whose messages come in deltas, as a stage


NOTE, DONE = Note(content="mind"), Done(content="all")
SAID = "so <NOTE>mind</NOTE> and\n<DONE>all</DONE> bye"


def delta(text: str, message_id: str = "m") -> MessageDelta:
    return MessageDelta(text=text, message_id=message_id)


def written(**events: Any) -> Marbles:
    """The marks of this file: capital letters are what comes out of the stage."""
    return Marbles(
        **{
            "1": delta("so <NOTE>mi"),
            "2": delta("nd</NOTE> and\n<DONE>all</DONE> by"),
            "3": delta("e"),
            "m": AgentMessage(text=SAID, message_id="m"),
            "d": AgentMessage(text="<DONE>all</DONE>", message_id="n"),
            "s": SessionEnded(outcome="completed"),
            "A": delta("so"),
            "S": AgentMessage(text="so", message_id="m"),
            "N": NOTE,
            "B": delta("and"),
            "T": AgentMessage(text="and", message_id="m"),
            "D": DONE,
            **events,
        }
    )


def stage(stream: Observable[Any], told: list[LlmMarkerEvent]) -> Observable[Any]:
    return agent_stage(
        InMemoryAgent({"implementing": [stream]}),
        SpawnOptions(prompt="Do it.", cwd=Path(), role="implementing"),
        phase="implementing",
        tags=marker_tags(Note, Done),
        on_marker=told.append,
        linger=5,
    )


def test_a_note_comes_while_its_message_is_written() -> None:
    """A note is emitted when complete; a terminal marker when its message is complete."""
    t = written()
    told: list[LlmMarkerEvent] = []
    t.check(stage(t.cold("1-2-------------3-m-s|"), told), "A-(SNB)---------------T-s(D|)")
    assert [NOTE, DONE] == told


def test_a_last_word_that_is_taken_back() -> None:
    """A discarded message does not count: its replacement ends the stage."""
    t = written()
    told: list[LlmMarkerEvent] = []
    t.check(stage(t.cold("1-2------------d-s|"), told), "A-(SNB)--------------s(D|)")
    assert [NOTE, DONE] == told
