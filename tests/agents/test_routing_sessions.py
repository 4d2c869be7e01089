"""`RoutedAgent`: sessions resumed by their id."""

from __future__ import annotations

from reactivex.subject import Subject

from cuggino.agents import Capabilities, RoutedAgent
from cuggino.errors import AgentFailed
from cuggino.events import AgentMessage
from cuggino.testing import AgentRun, InMemoryAgent
from tests.agents.routed import Drawn, chain, memory, options, values
from tests.loops.supervised_loop import HOUR, failed, limited


class TestResuming:
    """Sessions resumed by their id."""

    def test_the_owner_resumes_its_session(self) -> None:
        """The owner gets its own id and the new prompt, even if another agent has priority."""
        t = Drawn()
        one = memory(t.agent("#", limited(HOUR)), can_resume=True)
        other = memory(t.cold("s|"), t.cold("s|"), can_resume=True)
        routed = RoutedAgent(chain(one, other))
        values(t, routed.spawn(options(session_id="first")), HOUR + 9)
        values(t, routed.spawn(options(prompt="On.", resume_session_id="own")))
        begun, resumed = other.spawned
        assert begun.session_id not in (None, "first")
        assert ("On.", "own", None) == (
            resumed.prompt,
            resumed.resume_session_id,
            resumed.session_id,
        )

    def test_an_id_is_never_given_to_another(self) -> None:
        """While the owner is on cooldown, the fallback starts over with the first prompt."""
        t = Drawn()
        one = memory(t.agent("-a#", limited(HOUR)), can_resume=True)
        other = memory(t.agent("-b#", failed("crash")), t.cold("s|"), can_resume=True)
        routed = RoutedAgent(chain(one, other))
        values(t, routed.spawn(options(session_id="first")))
        # To the caller, the session has continued with the other agent.
        values(t, routed.spawn(options(prompt="On.", resume_session_id="first")))
        begun, resumed = other.spawned
        assert "first" != begun.session_id
        assert begun.session_id == resumed.resume_session_id
        assert 1 == len(one.spawned)

    def test_the_owner_meets_a_limit(self) -> None:
        """A session that cannot be resumed starts over with its complete original prompt."""
        t = Drawn()
        one = memory(t.cold("s|"), t.agent("#", limited(HOUR)), can_resume=True)
        other = memory(t.cold("s|"), can_resume=True)
        routed = RoutedAgent(chain(one, other))
        values(t, routed.spawn(options(session_id="first", system_prompt="You are.")))
        values(t, routed.spawn(options(prompt="On.", resume_session_id="own")))
        (anew,) = other.spawned
        assert ("Do it.", "You are.", None) == (
            anew.prompt,
            anew.system_prompt,
            anew.resume_session_id,
        )
        assert anew.session_id not in (None, "first", "own")

    def test_the_owner_is_on_cooldown(self) -> None:
        """The same happens if the owner's limit is already known."""
        t = Drawn()
        one = memory(t.cold("s|"), t.agent("#", limited(HOUR)), can_resume=True)
        other = memory(t.cold("s|"), t.cold("s|"), can_resume=True)
        routed = RoutedAgent(chain(one, other))
        values(t, routed.spawn(options(session_id="first")))
        values(t, routed.spawn(options(session_id="second", prompt="Else.")))
        values(t, routed.spawn(options(prompt="On.", resume_session_id="first")))
        assert ["Else.", "Do it."] == [spawned.prompt for spawned in other.spawned]
        assert [None, None] == [spawned.resume_session_id for spawned in other.spawned]

    def test_an_owner_without_resume_support(self) -> None:
        """An agent without support for resuming starts over."""
        t = Drawn()
        one = memory(t.cold("s|"), t.cold("s|"))
        routed = RoutedAgent(chain(one, memory(can_resume=True)))
        values(t, routed.spawn(options(session_id="first")))
        values(t, routed.spawn(options(prompt="On.", resume_session_id="first")))
        assert ["Do it.", "Do it."] == [spawned.prompt for spawned in one.spawned]
        assert [None, None] == [spawned.resume_session_id for spawned in one.spawned]

    def test_an_unknown_id(self) -> None:
        """An unknown id is a bad request before any event."""
        t = Drawn()
        one = memory(can_resume=True)
        (error,) = values(t, RoutedAgent(chain(one)).spawn(options(resume_session_id="who")))
        assert isinstance(error, AgentFailed)
        assert ("bad_request", "no agent has the session who") == (error.reason, error.message)
        assert [] == one.spawned

    def test_old_sessions_are_forgotten(self) -> None:
        """Old sessions can no longer be resumed, which bounds memory."""
        t = Drawn()
        spoken = AgentRun([AgentMessage(text="a")])
        one = memory(*[spoken] * 200, can_resume=True)
        routed = RoutedAgent(chain(one))
        for number in range(150):
            values(t, routed.spawn(options(session_id=f"id{number}")))
        assert [AgentMessage(text="a")] == values(
            t, routed.spawn(options(resume_session_id="id149"))
        )
        assert "id149" == one.spawned[-1].resume_session_id
        (error,) = values(t, routed.spawn(options(resume_session_id="id1")))
        assert isinstance(error, AgentFailed)


def test_messages_reach_whoever_works() -> None:
    """A session resumed or restarted by a fallback gets the latest options' messages."""
    t = Drawn()
    one = memory(t.cold("s|"), t.agent("#", limited(HOUR)), can_resume=True)
    other = memory(t.cold("s|"), can_resume=True)
    routed = RoutedAgent(chain(one, other))
    first: Subject[str] = Subject()
    later: Subject[str] = Subject()
    values(t, routed.spawn(options(session_id="first", messages=first)))
    values(t, routed.spawn(options(prompt="On.", resume_session_id="own", messages=later)))
    assert [first, later] == [given.messages for given in one.spawned]
    assert [later] == [given.messages for given in other.spawned]


def test_any_agent_that_takes_messages_is_given_them() -> None:
    """Routed agents claim them if one of them does."""

    class Hears(InMemoryAgent):
        @property
        def capabilities(self) -> Capabilities:
            return Capabilities(messages=True)

    deaf, hears = memory(), Hears({})
    assert not RoutedAgent(chain(deaf, deaf)).capabilities.messages
    assert RoutedAgent(chain(deaf, hears)).capabilities.messages
