"""The guard of sessions of the Agent Client Protocol, against a program that does as it likes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents import is_guarded
from cuggino.agents.acp import AcpAgent, agent
from cuggino.errors import AgentFailed, GuardNotLive
from cuggino.events import AgentMessage, GuardDenied, ToolCall, ToolResult
from cuggino.sandbox import Boundary, Engine, RoleView, probe, role_view
from tests.agents.acp.program import OPTIONS
from tests.agents.acp.scripts import Session, Stage, asked, begun, called, done, say, shell, stop

WRITE_SPEC = "echo no > .specs/task.md"
SPEC = "There is a file.\n"
COMPLETED = {"status": "completed"}


def spec(stage: Stage) -> str:
    return (stage.project / ".specs" / "task.md").read_text()


def assert_not_live(session: Session, why: str) -> None:
    assert isinstance(session.error, GuardNotLive), session.error
    assert why in session.error.message
    assert "failed" == session.ended.outcome


def test_level(stage: Stage) -> None:
    """The guard is weaker than that of an agent whose calls are all seen."""
    agent = stage.agent()
    assert "asked" == agent.capabilities.guard
    assert is_guarded(agent, "implementing")


def test_verdicts(stage: Stage) -> None:
    """An allowed call is allowed once, a denied one rejected and reported with its reason."""
    turn = [shell("c1", "echo yes > new.txt"), shell("c2", WRITE_SPEC), stop()]
    session = stage.guarded(turn, [say("Over.")])
    assert session.error is None
    assert ["once", "no"] == session.answers
    assert ("yes\n", SPEC) == ((stage.project / "new.txt").read_text(), spec(stage))
    (denial,) = session.of(GuardDenied)
    assert ("Bash", "c2", "> .specs/task.md") == (denial.tool, denial.tool_use_id, denial.part)
    results = {result.name: result for result in session.of(ToolResult)}
    assert [False, True] == [results[name].is_error for name in ("c1", "c2")]
    assert denial.reason == results["c2"].output


def test_reasons(stage: Stage) -> None:
    """After a turn with denials the agent is prompted once more, with the reasons."""
    session = stage.guarded([shell("c1", WRITE_SPEC), stop()], [say("Over.")])
    (denial,) = session.of(GuardDenied)
    first, second = session.prompts
    assert "go" == first
    assert denial.reason in second
    assert "did not run" in second
    assert (["Over."], 2) == (
        [event.text for event in session.of(AgentMessage)],
        session.ended.num_turns,
    )


def test_turn_that_was_cancelled(stage: Stage) -> None:
    """A program that cancels its turn after a denial is prompted as well."""
    session = stage.guarded([shell("c1", WRITE_SPEC), stop("cancelled")], [say("Over.")])
    assert session.error is None
    assert len(session.prompts) == 2


def test_endless_denials(stage: Stage) -> None:
    """An agent that repeats denied calls is not prompted indefinitely."""
    turns = [[shell(f"c{number}", WRITE_SPEC), stop()] for number in range(9)]
    session = stage.guarded(*turns)
    assert isinstance(session.error, AgentFailed)
    assert "repeated denied calls" in session.error.message
    assert len(session.prompts) == 6


@pytest.mark.parametrize(
    "options",
    [
        [OPTIONS[0], OPTIONS[2]],
        [OPTIONS[2]],
        [],
        [OPTIONS[1], {**OPTIONS[1], "optionId": "two"}, OPTIONS[2]],
        [{"optionId": "once", "kind": "sometimes"}, {"kind": "allow_once"}, OPTIONS[2]],
    ],
    ids=["always", "reject", "none", "choice", "odd"],
)
def test_options(stage: Stage, options: list[Any]) -> None:
    """Only a single "allow once" is ever chosen; without it the call is denied."""
    asks = shell("c1", "echo yes > new.txt", options=options)
    session = stage.guarded([asks, stop()], [say("Over.")])
    assert session.answers == ["no" if OPTIONS[2] in options else "cancelled"]
    assert not (stage.project / "new.txt").exists()
    assert ["c1"] == [event.tool_use_id for event in session.of(GuardDenied)]


@pytest.mark.parametrize(
    "call",
    [
        {"toolCallId": "c1"},
        {"toolCallId": "c1", "kind": "execute", "title": "ls"},
        called("c1", command=["ls"]),
        called("c1", command="ls", stdin="x"),
        called("c1", command="ls", cwd="a", directory="b"),
        called("c1", "other", path="a"),
        called("c1", "switch_mode", mode="yolo"),
        called("c1", "new kind", path="a"),
        called("c1", "edit", content="x"),
        called("c1", "delete"),
        {**called("c1", "edit", path="a.txt"), "locations": [{"path": ".specs/task.md"}]},
        {**called("c1", "edit"), "content": [{"type": "diff", "path": ".specs/task.md"}]},
        called("c1", "move", source="a.txt", destination=".specs/task.md"),
        called("c1", command="echo no > task.md", cwd=".specs"),
    ],
)
def test_unjudgeable(stage: Stage, call: dict[str, Any]) -> None:
    """A call whose effect is not known is denied, and so is one with a forbidden part."""
    session = stage.guarded([asked(call, "echo no > no.txt"), stop()], [say("Over.")])
    assert session.error is None
    assert ["no"] == session.answers
    assert ["c1"] == [event.tool_use_id for event in session.of(GuardDenied)]
    assert ["c1"] == [event.id for event in session.of(ToolCall)]
    assert not (stage.project / "no.txt").exists()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (called("c1", command="ls", description="d", timeout=5, cwd="."), "Bash"),
        (called("c1", "edit", file_path="a.txt", content="x"), "Write"),
        (called("c1", "edit", path="a.txt", old_string="x"), "Edit"),
        (called("c1", "move", source="a.txt", destination="b.txt"), "MultiEdit"),
        (called("c1", "read", path="/etc/hosts"), "Read"),
        (called("c1", "search", pattern="x"), "Grep"),
        (called("c1", "fetch", url="https://x.example"), "WebFetch"),
    ],
)
def test_judged(stage: Stage, call: dict[str, Any], expected: str) -> None:
    """Calls of known kinds are allowed under the names of Claude Code's tools."""
    session = stage.guarded([asked(call), say("Over.")])
    assert session.error is None
    assert ["once"] == session.answers
    assert [expected] == [event.name for event in session.of(ToolCall)]


def test_joined(stage: Stage) -> None:
    """A request that names only the id of a call is judged by what was reported before."""
    call = called("c1", command=WRITE_SPEC)
    session = stage.guarded(
        [begun(call), asked({"toolCallId": "c1"}, WRITE_SPEC), stop()], [say("Over.")]
    )
    assert (["no"], SPEC) == (session.answers, spec(stage))


def test_foreign_request(stage: Stage) -> None:
    """A request of another session is canceled."""
    session = stage.guarded([shell("c1", "echo no > no.txt", session="s2"), say("Over.")])
    assert ["cancelled"] == session.answers
    assert not (stage.project / "no.txt").exists()


ODD: dict[str, Any] = {"title": 3, "content": 3, "locations": 3, "_meta": 3}
EARLY = {"toolCallId": "c1", "kind": "execute", "status": "in_progress"}
WRITES = called("c1", command=WRITE_SPEC)
UNASKED: dict[str, list[Any]] = {
    "run": [begun(WRITES), {"run": WRITE_SPEC}, done("c1"), shell("c2", "echo 2 > 2.txt")],
    "failed": [begun(WRITES), done("c1", failed=True)],
    "no result": [begun(WRITES)],
    "reported late": [begun(EARLY), done("c1", rawInput={"command": WRITE_SPEC})],
    "no title": [begun({"content": [3, {"type": "diff"}], **WRITES, "title": None} | COMPLETED)],
    "odd fields": [begun({**WRITES, **ODD, **COMPLETED})],
    "an unknown tool": [begun(called("c1", "other", path="a")), done("c1")],
    # Another input than the one that was allowed; an id that was allowed once.
    "another input": [
        {"ask": called("c1", command="ls"), "allowed": [done("c1", rawInput=WRITES["rawInput"])]}
    ],
    "the same id again": [shell("c1", "ls"), begun(WRITES), done("c1")],
}


@pytest.mark.parametrize("how", UNASKED)
def test_unasked(stage: Stage, how: str) -> None:
    """A forbidden call that was never asked about ends the session, however it is reported."""
    session = stage.guarded([*UNASKED[how], say("Over.")])
    assert_not_live(session, "without its verdict")
    assert not (stage.project / "2.txt").exists()
    if how == "the same id again":
        commands = [{"command": "ls"}, {"command": WRITE_SPEC}]
        assert commands == [event.input for event in session.of(ToolCall)]


def test_unasked_that_is_allowed(stage: Stage) -> None:
    """An allowed call does not end the session, nor is a program that exits taken for one."""
    run = [begun(called("c1", command="echo 1 > 1.txt")), done("c1")]
    assert stage.guarded([*run, say("Over.")]).error is None
    exits = stage.guarded([begun(WRITES), {"exit": 0}, say("Over.")])
    assert isinstance(exits.error, AgentFailed)


def test_despite_verdict(stage: Stage) -> None:
    """A denied call that is reported as completed ends the session."""
    asks = {"ask": WRITES, "denied": [done("c1")]}
    assert_not_live(stage.guarded([asks, say("Over.")]), "despite its verdict")


def test_endless_modes(stage: Stage) -> None:
    """A program that answers with other options than it was asked to set gets no prompt."""
    mode = {"id": "mode", "currentValue": "auto", "options": [{"value": "ask", "name": "Ask"}]}
    model = {**mode, "id": "model", "currentValue": "m", "options": [{"value": "m", "name": "M"}]}
    session = stage.guarded([say("Over.")], script={"mode": mode, "options": [model], "keeps": 1})
    assert_not_live(session, "its mode ask is not in force")
    assert 1 == len(session.sent("session/set_config_option"))


@pytest.mark.parametrize(
    "script",
    [
        {"keeps": True},
        {"errors": {"session/set_config_option": {"code": -32602, "message": "no"}}},
        {"mode": {"id": "mode", "category": "mode", "currentValue": "auto", "options": []}},
        {"session": {"configOptions": []}},
        {"session": {"configOptions": "none"}},
        {"session": {"configOptions": 3}},
        {"mode": {"id": "mode", "category": "mode", "options": 3}},
        {"mode": {"id": ["m"], "category": "mode", "options": [{"value": "ask"}]}},
    ],
    ids=["kept", "error", "not offered", "none", "text", "number", "values", "id"],
)
def test_mode(stage: Stage, script: dict[str, Any]) -> None:
    """Without the mode in which it asks, the program gets no prompt."""
    session = stage.guarded([say("Over.")], script=script)
    assert_not_live(session, "its mode ask")
    assert [] == session.prompts


@pytest.mark.parametrize(
    "step",
    [
        {"update": {"sessionUpdate": "current_mode_update", "currentModeId": "auto"}},
        {
            "update": {
                "sessionUpdate": "config_option_update",
                "configOptions": [{"id": "mode", "currentValue": "auto"}],
            }
        },
        {"send": {"method": "x/mode-update", "params": {"currentModeId": "auto"}}},
    ],
    ids=["mode", "option", "own"],
)
def test_mode_during_the_session(stage: Stage, step: dict[str, Any]) -> None:
    """A session whose mode changes ends."""
    session = stage.guarded([step, shell("c1", "echo no > no.txt"), say("Over.")])
    assert_not_live(session, "changed from ask to auto")
    assert not (stage.project / "no.txt").exists()


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_settings_of_the_project(stage: Stage, kind: str) -> None:
    """Settings of the project that can silence the program end the session before it starts."""
    place = stage.project / ".played" / "settings.json"
    place.parent.mkdir()
    match kind:
        case "file":
            place.write_text("{}")
        case "link":
            place.symlink_to("nowhere")
        case _:
            place.mkdir()
    session = stage.guarded([say("Over.")])
    assert isinstance(session.error, GuardNotLive)
    assert ".played/settings.json can make" in session.error.message
    assert ([], []) == (session.events, session.received)
    with pytest.raises(GuardNotLive, match="stop asking"):
        stage.agent().check_guard(stage.policy())
    assert stage.session([say("Over.")]).error is None


def test_reading_role(stage: Stage) -> None:
    """A role that reads the project alone reads nothing else, asked about or not."""
    outside = called("c1", "read", path=str(stage.folder / "script.json"))
    policy = stage.policy("verify", level="full")
    session = stage.session([asked(outside), stop()], [say("Over.")], guard=policy)
    assert ["no"] == session.answers
    session = stage.session([begun(outside), done("c1"), say("Over.")], guard=policy)
    assert_not_live(session, "Reading outside of the project")
    inside = called("c1", "read", path=".specs/task.md")
    assert stage.session([begun(inside), done("c1"), say("Over.")], guard=policy).error is None


def test_read_only(stage: Stage) -> None:
    """Without permission to work unattended, a session reads."""
    turn = [asked(called("c1", "read", path="a")), shell("c2", "touch no.txt"), stop()]
    session = stage.session(turn, [say("Over.")], dangerously_skip_permissions=False)
    assert ["once", "no"] == session.answers
    assert [] == session.of(GuardDenied)
    assert "read-only" in session.prompts[1]


def test_unguarded(stage: Stage) -> None:
    """Without a policy everything is allowed, once, except for a choice."""
    choice = asked(called("c2", "other"), options=[OPTIONS[1], OPTIONS[1]])
    turn = [shell("c1", WRITE_SPEC), choice, asked(called("c3", "other")), stop()]
    session = stage.session(turn, [say("Over.")])
    assert session.error is None
    assert ["once", "cancelled", "once"] == session.answers
    assert "no\n" == spec(stage)


def view(stage: Stage) -> RoleView:
    return role_view("implementing", project=stage.project, specs=".specs")


@pytest.mark.parametrize("engine", ["bubblewrap", "landlock", "none"])
def test_sandbox(stage: Stage, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    """In a sandbox that holds the role, the system decides about what runs unasked."""
    boundary = Boundary(engine=engine)
    monkeypatch.setattr(agent, "probe", lambda *_args, **_options: boundary)
    monkeypatch.setattr(AcpAgent, "enclosure", lambda *_args: None)
    run = [begun(called("c1", command=WRITE_SPEC)), done("c1"), shell("c2", WRITE_SPEC), stop()]
    (stage.project / ".played").mkdir()
    (stage.project / ".played" / "settings.json").write_text("{}")
    session = stage.guarded(run, [say("Over.")], view=view(stage))
    if engine == "bubblewrap":
        assert session.error is None
        assert ["no"] == session.answers
        assert SPEC == spec(stage)
    else:
        assert isinstance(session.error, GuardNotLive)
        assert [] == session.received


@pytest.mark.skipif(
    not probe(Path(__file__).parent).holds("implementing"), reason="nothing confines a role here"
)
def test_confined(stage: Stage) -> None:
    """The real sandbox keeps the whole program from what its role may not write."""
    stage.script = stage.project / "script.json"  # the view has no other files of a test
    writes = f"{WRITE_SPEC}; echo no > {stage.folder}/out.txt; echo yes > new.txt"
    run = [begun(called("c1", command=writes)), {"run": writes}, done("c1"), say("Over.")]
    session = stage.guarded(run, view=view(stage))
    assert session.error is None
    assert SPEC == spec(stage)
    assert not (stage.folder / "out.txt").exists()
    assert "yes\n" == (stage.project / "new.txt").read_text()


def test_sub_agents(stage: Stage) -> None:
    """An unguarded sub-agent is denied; if it starts without asking, the session fails."""
    stage.profile = replace(
        stage.profile, tools={"agent": "Task"}, sub_agents=("general",), mode="ask"
    )

    def starting(name: str, kind: object) -> dict[str, Any]:
        call = {**called(name, "other", prompt="x"), "_meta": {"toolName": "agent"}}
        given: dict[str, Any] = call["rawInput"]
        return {**call, "rawInput": given if kind is None else {**given, "subagent_type": kind}}

    turn = [asked(starting(f"c{n}", kind)) for n, kind in enumerate(["general", None, "claude", 3])]
    session = stage.guarded([*turn, stop()], [say("Over.")])
    assert ["once", "once", "no", "no"] == session.answers
    assert ["c2", "c3"] == [event.tool_use_id for event in session.of(GuardDenied)]
    session = stage.guarded([begun(starting("c1", "claude")), done("c1"), say("Over.")])
    assert_not_live(session, "The sub-agent claude is not guarded: use general")


def test_own_files(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program writes its own files unasked, and none that only look like them."""
    home = stage.folder / "home"
    monkeypatch.setenv("HOME", str(home))
    stage.profile = replace(stage.profile, own_files=(".played/*/plans/*.md",))
    own = home / ".played" / "s1" / "plans"
    own.mkdir(parents=True)
    for path, is_own in (
        (own / "plan.md", True),
        (own / "plan.sh", False),
        (own / ".." / "plans" / "a.md", True),
        (own / ".." / ".." / "plan.md", False),
    ):
        run = [begun(called("c1", "edit", path=str(path), content="x")), done("c1"), say("Over.")]
        assert (stage.guarded(run).error is None) is is_own
    (own / "link.md").symlink_to(stage.project / ".specs" / "task.md")
    run = [begun(called("c1", "edit", path=str(own / "link.md"), content="x")), done("c1")]
    assert_not_live(stage.guarded([*run, say("Over.")]), "without its verdict")


def test_questions_for_a_person(stage: Stage) -> None:
    """A question for a person is denied, a plan is approved."""
    tools = {"ask": "AskUserQuestion", "exit": "ExitPlanMode"}
    stage.profile = replace(stage.profile, tools=tools)
    calls = [{**called(name, "other"), "_meta": {"tool_name": name}} for name in tools]
    session = stage.guarded([*map(asked, calls), stop()], [say("Over.")])
    assert ["no", "once"] == session.answers


def test_background(stage: Stage) -> None:
    """A sub-agent that would outlive the turn is refused, with a policy or without."""
    stage.profile = replace(stage.profile, tools={"agent": "Task"}, foreground="later")
    turn = []
    for number, given in enumerate([{}, {"later": True}, {"later": False}]):
        call = called(f"c{number}", "other", **given)
        turn.append(asked({**call, "_meta": {"toolName": "agent"}}))
    for policy in (None, stage.policy()):
        session = stage.session([*turn, stop()], [say("Over.")], guard=policy)
        assert ["no", "no", "once"] == session.answers[-3:]
        assert "Give later: false" in session.prompts[-1]
