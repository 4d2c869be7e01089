"""Spans and metrics of runs, from lists of events."""

from __future__ import annotations

from typing import Any

import pytest
from reactivex import from_iterable

from cuggino import events as ev
from cuggino.errors import AgentFailed, CugginoError, Interrupted, LoopError, QuotaExceeded
from cuggino.telemetry import AgentIdentity
from cuggino.telemetry.agents import MOST_OPEN_TOOLS
from cuggino.telemetry.texts import CONTENT_LIMIT
from cuggino.testing import Marbles
from tests.telemetry.exported import Exported, exported, needs_otel

pytestmark = needs_otel

USAGE = ev.Usage(input_tokens=100, output_tokens=20, cache_read_tokens=30, cache_creation_tokens=4)


def drawn(**more: Any) -> dict[str, Any]:
    """Return the events of a coding run, by letter."""
    return {
        "1": ev.IterationStart(iteration=1, max_iterations=3),
        "I": ev.ImplementingStart(iteration=1),
        "R": ev.ReviewingStart(iteration=1),
        "k": ev.CheckCommandStarted(iteration=1, command="make test TOKEN=tuttifrutti-42"),
        "K": ev.CheckCommandOutput(iteration=1, output="a secret", exit_code=1),
        "m": ev.AgentMessage(text="My password is tuttifrutti-42."),
        "t": ev.ToolCall(name="Bash", input={"command": "echo tuttifrutti-42"}, id="x"),
        "r": ev.ToolResult(name="x", output="tuttifrutti-42"),
        "f": ev.ToolResult(name="x", output="no", is_error=True),
        "g": ev.GuardDenied(tool="Bash", tool_use_id="x", part="rm -rf /", reason="no"),
        "u": ev.UsageUpdate(usage=USAGE),
        "e": ev.SessionEnded(
            outcome="completed", cost_usd=0.5, usage=USAGE, num_turns=3, session_id="s1"
        ),
        "c": ev.StageCost(phase="implementing", cost_usd=0.5),
        "D": ev.Done(content="all of it"),
        "A": ev.Approved(content="fine"),
        "C": ev.CommitPerformed(iteration=1, commit_hash="abc1234", message="Do it"),
        "z": ev.LoopApproved(iteration=1, checked=True),
        **more,
    }


def test_a_run() -> None:
    """A run holds stages, a stage its check and its agent, an agent its tool calls."""
    memory = exported("-1-Ik-K-mt--r-ecDCRm-eAz|", drawn())
    assert [
        ("invoke_workflow cuggino", "", 0, 24),
        ("implementing", "invoke_workflow cuggino", 3, 16),
        ("check", "implementing", 4, 6),
        ("invoke_agent unknown", "implementing", 6, 14),
        ("execute_tool Bash", "invoke_agent unknown", 9, 12),
        ("reviewing", "invoke_workflow cuggino", 18, 22),
        ("invoke_agent unknown", "reviewing", 18, 21),
    ] == [span.times for span in memory.spans]
    root, implementing, check, agent, tool, *_ = memory.spans
    assert {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "cuggino",
        "cuggino.run.resumed": False,
        "cuggino.run.exit_code": 0,
        "cuggino.run.outcome": "approved",
        "cuggino.run.checked": True,
        "cuggino.cost_usd": 1.0,
    } == root.attributes
    assert ("commit",) == root.events
    assert {
        "cuggino.stage": "implementing",
        "cuggino.iteration": 1,
        "cuggino.cost_usd": 0.5,
        "cuggino.stage.outcome": "Done",
    } == implementing.attributes
    assert {
        "cuggino.stage": "check",
        "process.exit.code": 1,
        "error.type": "exit_code",
    } == check.attributes
    assert {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "unknown",
        "gen_ai.agent.name": "unknown",
        "cuggino.role": "implementing",
        "gen_ai.conversation.id": "s1",
        "cuggino.session.turns": 3,
        "cuggino.cost_usd": 0.5,
        "gen_ai.usage.input_tokens": 134,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 30,
        "gen_ai.usage.cache_creation.input_tokens": 4,
    } == agent.attributes
    assert {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "Bash",
        "gen_ai.tool.call.id": "x",
    } == tool.attributes


def test_an_estimated_cost() -> None:
    """An estimate is marked on the session, its stage, the run, and the measured cost."""
    given = {"outcome": "completed", "cost_usd": 0.5, "cost_estimated": True, "model": "gpt-5.5"}
    cost = ev.StageCost(phase="implementing", cost_usd=0.5, cost_estimated=True)
    memory = exported("-Imece-eD|", drawn(e=ev.SessionEnded.model_validate(given), c=cost))
    agent = memory.span("invoke_agent unknown").attributes
    assert "gpt-5.5" == agent["gen_ai.response.model"]
    for name in ("invoke_agent unknown", "implementing", "invoke_workflow cuggino"):
        assert memory.span(name).attributes["cuggino.cost_estimated"] is True, name
    ((known, _),) = memory.metrics["cuggino.cost"]
    assert known["cuggino.cost_estimated"] is True
    exact = exported("-ImecD|", drawn())
    assert not any("cuggino.cost_estimated" in span.attributes for span in exact.spans)


def test_no_contents_unless_asked_for() -> None:
    """Prompts, texts, tool inputs, outputs and commands are nowhere in the export."""
    memory = exported("-IkKmtgrecDz|", drawn())
    written = repr([(span.attributes, span.events) for span in memory.spans])
    assert "execute_tool" in written
    for secret in ("tuttifrutti", "password", "rm -rf", "a secret", "all of it", "make test"):
        assert secret not in written


def test_contents_without_secrets() -> None:
    """If asked for, tool calls and the last message are exported, masked and cut."""
    long = ev.ToolResult(name="x", output="tuttifrutti-42 " + "long " * CONTENT_LIMIT)
    memory = exported("-ItLmez|", drawn(L=long), content=True)
    tool = memory.span("execute_tool Bash").attributes
    assert '{"command":"echo ⟦masked MY_API_TOKEN⟧"}' == tool["gen_ai.tool.call.arguments"]
    result = tool["gen_ai.tool.call.result"]
    assert result.startswith("⟦masked MY_API_TOKEN⟧ long ")
    assert CONTENT_LIMIT == len(result)
    said = memory.span("invoke_agent unknown").attributes["gen_ai.output.messages"]
    assert "My password is" in said
    assert "tuttifrutti" not in said


def test_metrics() -> None:
    """Each session adds its duration, its tokens by type, and its cost."""
    metrics = exported("-Im--ecDRm-eAz|", drawn()).metrics
    known = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "unknown",
        "gen_ai.agent.name": "unknown",
    }
    assert {
        "gen_ai.client.operation.duration": [(known, 7.0)],
        "cuggino.cost": [(known, 1.0)],
        "gen_ai.client.token.usage": [
            ({**known, "gen_ai.token.type": "input"}, 268),
            ({**known, "gen_ai.token.type": "output"}, 40),
        ],
    } == metrics


def test_failed_denied_and_unanswered_tools() -> None:
    """A failed tool call is an error, a denied one is marked, one without a result ends with the
    session."""
    other = ev.ToolCall(name="Read", id="y")
    memory = exported("-Itgf-o--ez|", drawn(o=other))
    failed, unanswered = memory.span("execute_tool Bash"), memory.span("execute_tool Read")
    assert (2, 4) == (failed.begin, failed.end)
    assert "tool_error" == failed.attributes["error.type"]
    assert failed.attributes["cuggino.guard.denied"]
    assert (6, 9) == (unanswered.begin, unanswered.end)
    assert "unanswered" == unanswered.attributes["error.type"]


def test_open_tools_are_bounded() -> None:
    """Of too many tool calls without a result, the oldest is ended."""
    calls = [ev.ToolCall(name="Read", id=str(number)) for number in range(MOST_OPEN_TOOLS + 1)]
    memory = Exported()
    marbles = Marbles(I=ev.ImplementingStart(iteration=1), t=calls[0], e=drawn()["e"])

    marbles.record(from_iterable(calls).pipe(memory.operator()), until=1)
    tools = [span for span in memory.spans if span.name == "execute_tool Read"]
    assert len(calls) == len(tools)


def test_a_session_that_is_retried() -> None:
    """A retry ends the session as an error, and the wait belongs to no session."""
    retry = ev.AgentRetry(reason="overloaded", message="x", attempt=1, max_retries=3, retry_in=4)
    memory = exported("-Imtu-y---m-ecDz|", drawn(y=retry))
    first, second = [span for span in memory.spans if span.name.startswith("invoke_agent")]
    assert (1, 6, 10, 12) == (first.begin, first.end, second.begin, second.end)
    assert "overloaded" == first.attributes["error.type"]
    assert 134 == first.attributes["gen_ai.usage.input_tokens"]
    assert "error.type" not in second.attributes
    assert ("AgentRetry",) == memory.span("implementing").events


def test_an_agent_that_lingers() -> None:
    """An agent that is ended after its verdict has not failed."""
    agent = exported("-Imu-Dz|", drawn()).span("invoke_agent unknown")
    assert (1.0, 5.0) == (agent.begin, agent.end)
    assert 134 == agent.attributes["gen_ai.usage.input_tokens"]
    assert "error.type" not in agent.attributes


def test_a_nudge_and_a_usage_limit() -> None:
    """Each is one event of the stage, however long a wait; the wait belongs to no session."""
    wait, lifted = ev.QuotaWaiting(remaining=60), ev.QuotaLifted(waited=120)
    memory = exported("-Im-n-mqqqlm-ecDz|", drawn(n=ev.AgentNudged(), q=wait, l=lifted))
    assert ("AgentNudged", "QuotaWaiting", "QuotaLifted") == memory.span("implementing").events
    assert [(1, 4, "nudged"), (4, 7, "quota"), (11, 13, None)] == [
        (span.begin, span.end, span.attributes.get("error.type")) for span in memory.spans[2:]
    ]


def test_agents_of_roles_and_fallbacks() -> None:
    """A session has the agent of its role; after a fallback, that one."""
    back = ev.AgentFellBack(
        role="implementing", from_agent="claude", to_agent="codex", reason="quota", message="x"
    )
    memory, marbles = Exported(), Marbles(**drawn(b=back))
    agents = {"implementing": AgentIdentity(name="claude", model="opus")}

    def agent_of(role: str) -> AgentIdentity:
        return agents.get(role, AgentIdentity(name="scripted:/home/me/secret.toml"))

    stream = marbles.cold("-Im-bm-ecDRm-eAz|")
    marbles.record(stream.pipe(memory.operator(agent_of=agent_of)))
    names = ("gen_ai.agent.name", "gen_ai.provider.name", "gen_ai.request.model", "cuggino.role")
    seen = [span.attributes for span in memory.spans if span.name.startswith("invoke_agent")]
    assert [
        ("claude", "anthropic", "opus", "implementing"),
        ("codex", "openai", None, "implementing"),
        ("scripted", "scripted", None, "reviewing"),
    ] == [tuple(attributes.get(name) for name in names) for attributes in seen]


def test_items_of_a_watch() -> None:
    """The stages of an item are in its span, which has its name and its outcome."""
    events = drawn(
        p=ev.WatchProcessingItem(filename="001-login.md"),
        P=ev.WatchProcessingItem(filename="002-search.md"),
        W=ev.WatchItemCompleted(filename="001-login.md"),
        X=ev.WatchItemParked(filename="002-search.md", reason="tuttifrutti-42"),
    )
    memory = exported("-pIm-ecDzWPIm-eX|", events)
    assert [
        ("invoke_workflow cuggino", "", 0, 16),
        ("item", "invoke_workflow cuggino", 1, 9),
        ("implementing", "item", 2, 7),
        ("invoke_agent unknown", "implementing", 2, 5),
        ("item", "invoke_workflow cuggino", 10, 15),
        ("implementing", "item", 11, 15),
        ("invoke_agent unknown", "implementing", 11, 14),
    ] == [span.times for span in memory.spans]
    first, second = [span.attributes for span in memory.spans if span.name == "item"]
    assert {"cuggino.item": "001-login.md", "cuggino.item.outcome": "completed"} == first
    assert {
        "cuggino.item": "002-search.md",
        "cuggino.item.outcome": "parked",
        "error.type": "failed",
    } == second
    assert "ended" == memory.spans[0].attributes["cuggino.run.outcome"]


def test_a_deliver_run() -> None:
    """A session is a stage with its instruction, its number and its model."""
    events = drawn(
        S=ev.DeliverSessionStarted(session=1, instruction="coding", model="opus"),
        E=ev.DeliverSessionEnded(session=1, outcome="execution_error"),
        z=ev.DeliverEnded(reason="all_blocked"),
    )
    memory = exported("-Sm-eEz|", events)
    stage = memory.span("coding")
    assert {
        "cuggino.stage": "coding",
        "cuggino.session": 1,
        "cuggino.stage.outcome": "execution_error",
        "error.type": "execution_error",
    } == stage.attributes
    assert "opus" == memory.span("invoke_agent unknown").attributes["gen_ai.request.model"]
    root = memory.span("invoke_workflow cuggino").attributes
    assert ("blocked", 15) == (root["cuggino.run.outcome"], root["cuggino.run.exit_code"])


def test_a_plan_build_run() -> None:
    """Its phases are stages; a check without a result ends with its stage."""
    events = drawn(
        p=ev.PlanBuildPhaseStarted(phase="plan", iteration=1),
        b=ev.PlanBuildPhaseStarted(phase="verify", iteration=1),
        E=ev.PlanBuildSessionEnded(iteration=1, phase="plan", outcome="completed"),
        z=ev.PlanBuildEnded(reason="complete"),
    )
    memory = exported("-pm-eEbk--z|", events)
    assert [
        ("invoke_workflow cuggino", "", 0, 11),
        ("plan", "invoke_workflow cuggino", 1, 5),
        ("invoke_agent unknown", "plan", 1, 4),
        ("verify", "invoke_workflow cuggino", 6, 10),
        ("check", "verify", 7, 10),
    ] == [span.times for span in memory.spans]


@pytest.mark.parametrize(
    ("error", "outcome", "name"),
    [
        (CugginoError("tuttifrutti-42"), "failed", "CugginoError"),
        (
            LoopError("reviewing", "x", cause=AgentFailed("tuttifrutti-42", reason="auth")),
            "failed",
            "AgentFailed",
        ),
        (QuotaExceeded("x"), "quota", "QuotaExceeded"),
        (Interrupted("x"), "interrupted", None),
    ],
)
def test_a_run_that_fails(error: Exception, outcome: str, name: str | None) -> None:
    """Everything that is open ends with it, and the run names the error, not its message."""
    memory, marbles = Exported(), Marbles(error=error, **drawn())
    marbles.record(marbles.cold("-Imt--#").pipe(memory.operator()))
    assert [6.0] * 4 == [span.end for span in memory.spans]
    root, stage, agent, tool = [span.attributes for span in memory.spans]
    assert (outcome, name) == (root["cuggino.run.outcome"], root.get("error.type"))
    assert "error.type" not in stage
    assert ("cut_off", "unanswered") == (agent["error.type"], tool["error.type"])
    assert "tuttifrutti" not in repr([span.attributes for span in memory.spans])


def test_odd_texts() -> None:
    """Names that UTF-8 cannot encode, or that are very long, can be exported."""
    tools = drawn(o=ev.ToolCall(name="\ud800" + "n" * 1000, id="\udfff"))
    memory = exported("-Io-ez|", tools)
    (tool,) = [span for span in memory.spans if span.name.startswith("execute_tool")]
    assert tool.name.startswith("execute_tool ?nnn")
    assert 113 == len(tool.name)
    assert "?" == tool.attributes["gen_ai.tool.call.id"]


def test_items_in_slots() -> None:
    """Each item has its own stages and sessions; its landing is a stage with the check in it."""
    landing = {
        "L": ev.WatchLanding(filename="1.md", commit="c", trunk="b"),
        "l": ev.WatchLanded(filename="1.md", commit="m", trunk_was="b"),
        "k": ev.CheckCommandStarted(iteration=0, command="make"),
        "K": ev.CheckCommandOutput(iteration=0, exit_code=0),
    }
    one, two = (
        {
            letters[0]: ev.WatchProcessingItem(filename=f"{slot}.md", slot=slot),
            letters[1]: ev.ImplementingStart(iteration=1, item=f"{slot}.md"),
            letters[2]: ev.AgentMessage(text="hi", item=f"{slot}.md"),
            letters[3]: ev.SessionEnded(outcome="completed", cost_usd=cost, item=f"{slot}.md"),
            letters[4]: ev.LoopApproved(iteration=1, item=f"{slot}.md"),
            letters[5]: ev.WatchItemCompleted(filename=f"{slot}.md"),
        }
        for slot, letters, cost in ((1, "abcdef", 0.5), (2, "ABCDEF", 0.25))
    )
    memory = exported("aAbBcCdDeE--LkKlfF--|", one | two | landing)
    assert [span.times for span in memory.spans] == [
        ("invoke_workflow cuggino", "", 0, 20),
        ("item", "invoke_workflow cuggino", 0, 16),
        ("item", "invoke_workflow cuggino", 1, 17),
        ("implementing", "item", 2, 8),
        ("invoke_agent unknown", "implementing", 2, 6),
        ("implementing", "item", 3, 9),
        ("invoke_agent unknown", "implementing", 3, 7),
        ("landing", "item", 12, 15),
        ("check", "landing", 13, 14),
    ]
    root, first, second, *_ = memory.spans
    assert root.attributes["cuggino.cost_usd"] == 0.75
    assert "cuggino.run.exit_code" not in root.attributes
    assert (first.attributes["cuggino.item"], first.attributes["cuggino.slot"]) == ("1.md", 1)
    assert second.attributes["cuggino.item.outcome"] == "completed"
    assert memory.span("landing").attributes["cuggino.stage.outcome"] == "landed"


def test_a_session_without_the_start_of_its_stage() -> None:
    """The agent of a resumed run is in the run, and is done with its verdict."""
    memory = exported("--mu-DC-R|", drawn())
    assert [span.times for span in memory.spans] == [
        ("invoke_workflow cuggino", "", 0, 9),
        ("invoke_agent unknown", "invoke_workflow cuggino", 2, 5),
        ("reviewing", "invoke_workflow cuggino", 8, 9),
    ]
    agent = memory.span("invoke_agent unknown").attributes
    assert (agent["cuggino.role"], agent.get("error.type")) == ("", None)


def test_the_landing_of_an_earlier_process() -> None:
    """A resumed watch lands a candidate in a span of its item."""
    events = {
        "r": ev.RunResumed(run_id="a", stages=3),
        "L": ev.WatchLanding(filename="1.md", commit="c", trunk="b", item="1.md"),
        "l": ev.WatchLanded(filename="1.md", commit="m", trunk_was="b", item="1.md"),
        "i": ev.ControlIgnored(source="steer", reason="1.md has ended", item="1.md"),
        "f": ev.WatchItemCompleted(filename="1.md", item="1.md"),
    }
    memory = exported("r-L-lif|", events)
    assert [span.times for span in memory.spans] == [
        ("invoke_workflow cuggino", "", 0, 7),
        ("item", "invoke_workflow cuggino", 2, 6),
        ("landing", "item", 2, 4),
    ]
    item = memory.span("item")
    assert ("completed", ("ControlIgnored",)) == (
        item.attributes["cuggino.item.outcome"],
        item.events,
    )


def test_an_item_waits_for_a_person() -> None:
    """Its span ends with the spec issue, as nobody works on it."""
    events = {
        "p": ev.WatchProcessingItem(filename="1.md", slot=1, item="1.md"),
        "z": ev.LoopSpecIssue(iteration=1, filename="q.md", content="which?", item="1.md"),
        "P": ev.WatchProcessingItem(filename="2.md"),
        "Z": ev.LoopSpecIssue(iteration=1, filename="q.md", content="which?"),
        "w": ev.WatchSpecIssueWaiting(),
    }
    for diagram in ("p-z---|", "P-Zw---|"):
        memory = exported(diagram, events)
        root, item = memory.spans
        assert item.attributes["cuggino.item.outcome"] == "spec_issue", diagram
        assert item.end < root.end, diagram


def test_an_item_is_sent_back() -> None:
    """Its landing has failed with the reason, and the next attempt is a separate item."""
    events = {
        "p": ev.WatchProcessingItem(filename="1.md", slot=1),
        "C": ev.WatchCandidate(filename="1.md", slot=1, commit="c", base="b", attempt=1),
        "L": ev.WatchLanding(filename="1.md", commit="c", trunk="b"),
        "s": ev.WatchSentBack(filename="1.md", reason="conflict", returns=1),
    }
    memory = exported("p-C-L-s--p-|", events)
    assert [span.times for span in memory.spans] == [
        ("invoke_workflow cuggino", "", 0, 11),
        ("item", "invoke_workflow cuggino", 0, 6),
        ("landing", "item", 4, 6),
        ("item", "invoke_workflow cuggino", 9, 11),
    ]
    assert memory.span("landing").attributes["error.type"] == "conflict"
    assert memory.spans[1].attributes["cuggino.item.outcome"] == "sent_back"


def test_an_item_goes_on_elsewhere() -> None:
    """Its span names the worker; the stage on a lost one has failed, and the item goes on."""
    events = {
        "p": ev.WatchProcessingItem(filename="1.md", slot=1),
        "w": ev.WatchPlaced(filename="1.md", slot=1, worker="w1\ud800"),
        "i": ev.ImplementingStart(iteration=1, item="1.md"),
        "g": ev.WatchPlaceGone(filename="1.md", slot=1, worker="w1", reason="killed"),
        "W": ev.WatchPlaced(filename="1.md", slot=1, worker="w2"),
        "f": ev.WatchItemCompleted(filename="1.md"),
    }
    memory = exported("pwi-gWi-f|", events)
    assert [span.times for span in memory.spans] == [
        ("invoke_workflow cuggino", "", 0, 9),
        ("item", "invoke_workflow cuggino", 0, 8),
        ("implementing", "item", 2, 4),
        ("implementing", "item", 6, 8),
    ]
    item, lost = memory.spans[1], memory.spans[2]
    assert ("w2", "worker_lost") == (
        item.attributes["cuggino.worker"],
        lost.attributes["error.type"],
    )
    assert "w1?" == exported("pw|", events).spans[1].attributes["cuggino.worker"]
