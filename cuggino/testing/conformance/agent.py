"""Rules for the input and the events of a session: prompts, sessions, text, markers, tools."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

import reactivex as rx
from reactivex.subject import Subject

from cuggino.errors import AgentFailed
from cuggino.events import (
    AgentMessage,
    Event,
    MessageDelta,
    Note,
    PingEvent,
    SessionEnded,
    Steered,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolResult,
    UsageUpdate,
)
from cuggino.operators import extract_markers, marker_tags
from cuggino.testing.conformance.acts import (
    Call,
    CannotPlay,
    Delegate,
    Meanwhile,
    Outcome,
    Run,
    Say,
    Think,
    Write,
)
from cuggino.testing.conformance.arena import PlayArena
from cuggino.testing.conformance.rules import (
    LONG,
    Rules,
    capabilities,
    has,
    hold_until,
    needs,
    nothing_left,
    requests_of,
    rule,
    same,
    succeeded,
)

ODD = """/do it -- "quoted" 'words', $HOME, `code`, @file, %s, {braces}, \\n, <tag>, ü, 漢字, 👍🏽 .
--second-line=of it
Last line"""
"""A prompt that begins like a slash command and holds characters that are often interpreted."""

ODD_SYSTEM = f"--system {ODD}\nof the system"

WORDS = tuple(f"word {number}" for number in range(26))
"""The contents of the markers of `MARKED`, in order."""

# Each begins one character later than the one before, for pieces of any length.
MARKED = "".join(f"{'x' * (7 + n % 5)} <NOTE>{word}</NOTE>\n" for n, word in enumerate(WORDS))
"""Text with markers, the last message of the model."""

VALUE = "it's 'here'"
"""The value of the variable `CONFORMANCE` in the environment of the session."""

COMMANDS = (
    "echo \"$CONFORMANCE\" > env.txt; pwd -P > pwd.txt; printf '%s\\n' \"a 'quoted' word\"",
    "echo two",
    "echo three",
    "echo some words; exit 3",
)
WORK = (
    (Say(LONG), Run(COMMANDS[0])),
    (Run(COMMANDS[1]), Run(COMMANDS[2])),
    Write("new.txt", "new\n"),
    Run(COMMANDS[3]),
    Say(MARKED),
)
"""The turns of the usual session, whose calls are 0, 1 and 2, 3, 4."""

AGAIN = "It was plum."
"""The answer of the model when the usual session is resumed."""

_ASKING = ("askuser", "askhuman", "askquestion", "requestuserinput", "userquestion")
_EDITS = ("Write", "Edit", "MultiEdit")
_UNKNOWN_LINES = (
    '{"type": "brand.new", "data": {"deep": [1, {"text": "<NOTE>no</NOTE>"}]}}',
    '{"type": 7}',
    '{"kind": null}',
    "[]",
    "{ this is no JSON",
    "",
)

_SERVER = """
import json, sys

TOOL = {
    "name": "put",
    "description": "Creates a file.",
    "inputSchema": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    },
}

for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    given, method = asked.get("params") or {}, asked.get("method")
    with open(sys.argv[1], "a") as log:
        print(method, file=log)
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if method == "initialize":
        answer["result"] = {
            "protocolVersion": given.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "files", "version": "1"},
        }
    elif method == "tools/list":
        answer["result"] = {"tools": [TOOL]}
    elif method == "tools/call":
        with open(given["arguments"]["path"], "w") as file:
            file.write("put")
        answer["result"] = {"content": [{"type": "text", "text": "it is put"}]}
    elif method == "ping":
        answer["result"] = {}
    else:
        answer["error"] = {"code": -32601, "message": "unknown method"}
    print(json.dumps(answer), flush=True)
"""


def tool_server(log: Path) -> Mapping[str, object]:
    """Return `SpawnOptions.mcp_servers` with the server `files`, whose tool `put` creates a file.

    It appends each method that it is asked for to the log.
    """
    command = {"command": sys.executable, "args": ["-I", "-c", _SERVER, str(log)]}
    return {"files": {**command, "alwaysLoad": True}}


@dataclass(frozen=True, slots=True)
class LongSession:
    """A session with long prompts."""

    prompt: str
    system_prompt: str
    outcome: Outcome
    left: str
    """Leaked resources as text; empty for none."""


class AgentConformance(Rules):
    """Rules for the input and the events of a session.

    Each rule is a method that takes a new `PlayArena`; its docstring is the rule. A rule for
    what the agent does not claim (see `Capabilities`) or the arena cannot play is skipped with the
    reason. Rules that only inspect a session share it within a subclass. Needs a POSIX system.
    """

    @rule
    def test_is_an_agent(self, arena: PlayArena) -> None:
        """It has a name and a version, and declares its sandbox."""
        agent, claimed = arena.agent, capabilities(arena)
        assert agent.name.strip(), "it has no name"
        version = agent.check()
        assert version.strip() and version == agent.check(), f"its version is {version!r}"
        unavailable = agent.sandbox_unavailable()
        assert claimed.sandbox or unavailable, f"it has a sandbox that is not declared: {claimed}"

    @rule
    def test_prompt(self, arena: PlayArena) -> None:
        """A prompt reaches the model unchanged, with all its characters."""
        has(ODD, requests_of(work(self, arena))[0].text, "the prompt")

    @rule
    def test_long_prompt(self, arena: PlayArena) -> None:
        """A prompt of 300 kB reaches the model whole."""
        played = long_session(self, arena)
        has(played.prompt, requests_of(played.outcome)[0].text, "the prompt")

    @rule
    def test_system_prompt(self, arena: PlayArena) -> None:
        """A system prompt reaches the model unchanged, as a system prompt."""
        has(ODD_SYSTEM, requests_of(work(self, arena))[0].system, "the system prompt")

    @rule
    def test_long_system_prompt(self, arena: PlayArena) -> None:
        """A system prompt of 300 kB reaches the model whole."""
        played = long_session(self, arena)
        has(played.system_prompt, requests_of(played.outcome)[0].system, "the system prompt")

    @rule
    def test_model(self, arena: PlayArena) -> None:
        """The requested model is used."""
        needs(arena.other_model is not None, "a choice of models")
        used = requests_of(long_session(self, arena).outcome)[0].model
        assert used and str(arena.other_model).endswith(used), (
            f"{arena.other_model} was asked for, {used!r} was used"
        )

    @rule
    def test_environment(self, arena: PlayArena) -> None:
        """The variables of a session reach the commands of its tools."""
        outcome = work(self, arena)
        same(f"{VALUE}\n", outcome.files.get("env.txt"), outcome)

    @rule
    def test_working_directory(self, arena: PlayArena) -> None:
        """The commands and files of a session are those of its working directory."""
        outcome = work(self, arena)
        where = outcome.files.get("pwd.txt", "")
        assert where.endswith("/a folder\n"), f"the commands of its tools run in {where!r}"
        same("new\n", outcome.files.get("new.txt"), outcome)

    @rule
    def test_asks_nobody(self, arena: PlayArena) -> None:
        """The model has no tool that asks a person, as no one would answer."""
        outcome = work(self, arena)
        offered = {name for request in requests_of(outcome) for name in request.tools}
        asking = [
            name
            for name in sorted(offered - arena.harmless_tools)
            if any(word in name.lower().replace("_", "") for word in _ASKING)
        ]
        same([], asking, outcome)

    @rule
    def test_mcp_server(self, arena: PlayArena) -> None:
        """A session starts its MCP servers and asks for their tools."""
        needs(capabilities(arena).mcp, "MCP")
        log = arena.folder / "asked.log"

        def asked() -> list[str]:
            return log.read_text(encoding="utf-8").split() if log.exists() else []

        # Its tools may be offered at once or found by a search.
        started = hold_until(lambda: "tools/list" in asked(), arena)
        turns = ((started, Run("echo one")), Say("Over."))
        outcome = succeeded(arena.session(turns, mcp_servers=tool_server(log)))
        assert "tools/list" in asked(), f"it was asked {asked()} in {outcome}"

    @rule
    def test_mcp_tool(self, arena: PlayArena) -> None:
        """The model can call a tool of an MCP server, which is reported as `mcp__server__tool`."""
        needs(capabilities(arena).mcp, "MCP")
        put = Call("files", "put", {"path": str(arena.folder / "put.txt")})
        servers = tool_server(arena.folder / "asked.log")
        outcome = succeeded(arena.session([put, Say("Over.")], mcp_servers=servers))
        same("put", outcome.files.get("put.txt"), outcome)
        same(["mcp__files__put"], [call.name for call in outcome.of(ToolCall)], outcome)
        same([False], [result.is_error for result in outcome.of(ToolResult)], outcome)

    @rule
    def test_sub_agent(self, arena: PlayArena) -> None:
        """A sub-agent works before the session goes on, and its usage counts."""
        outcome = succeeded(arena.session([Delegate([Run("echo sub > sub.txt")]), Say("Over.")]))
        same("sub\n", outcome.files.get("sub.txt"), outcome)
        assert "Task" in [call.name for call in outcome.of(ToolCall)], f"it is hidden: {outcome}"
        own = [m.text for m in outcome.of(AgentMessage) if m.parent_tool_use_id is None]
        same(["Over."], own, outcome)
        _assert_usage(outcome, capabilities(arena).cost)

    @rule
    def test_needs_permission(self, arena: PlayArena) -> None:
        """Without `dangerously_skip_permissions` nothing is written, and nothing waits."""
        outcome = arena.session(
            [Run("echo no > run.txt"), Write("write.txt", "no\n"), Say("Over.")],
            dangerously_skip_permissions=False,
        )
        written = {"run.txt", "write.txt"} & outcome.files.keys()
        assert not written, f"it has written {', '.join(sorted(written))}: {outcome}"
        same(1, len(outcome.of(SessionEnded)), outcome)

    @rule
    def test_resume(self, arena: PlayArena) -> None:
        """A session resumed by its id keeps the id, and the model knows the conversation."""
        needs(capabilities(arena).resume, "resume")
        first, again = work(self, arena), resumed(self, arena)
        same(first.ended.session_id, again.ended.session_id, again)
        same([AGAIN], [message.text for message in again.of(AgentMessage)], again)
        if again.requests is not None:
            for text in (ODD, LONG, "Which word?"):
                has(text, again.requests[0].text, "the earlier conversation")

    @rule
    def test_resume_unknown_session(self, arena: PlayArena) -> None:
        """Resuming an unknown session is a `bad_request` before anything else happens."""
        needs(capabilities(arena).resume, "resume")
        outcome = arena.session([Say("Over.")], resume_session_id=arena.unknown_session)
        error = outcome.error
        assert isinstance(error, AgentFailed), f"it was not refused: {outcome}"
        same("bad_request", error.reason, outcome)
        assert error.hint, f"it gives no hint: {error}"
        rest = [e for e in outcome.events if not isinstance(e, SystemMessage | PingEvent)]
        assert all(isinstance(e, SessionEnded) for e in rest), f"something happened: {outcome}"
        same(0, len(outcome.requests or ()), outcome)

    @rule
    def test_message(self, arena: PlayArena) -> None:
        """A person's message reaches the model unchanged, and is announced before the answer."""
        messages, send = _person(arena, ODD)
        turns = ((Meanwhile(send), Write("new.txt", "new\n")), Say("One."), Say("Two."))
        outcome = succeeded(arena.session(turns, messages=messages))
        if not capabilities(arena).messages:
            same([], outcome.of(Steered), outcome)
            return
        same([Steered(text=ODD, to="session")], outcome.of(Steered), outcome)
        tags = [e.tag for e in outcome.events if isinstance(e, Steered | ToolCall | AgentMessage)]
        assert tags[0] == "ToolCall", f"it was announced before the model had it: {outcome}"
        assert tags[-1] == "AgentMessage", f"it was announced after the answer: {outcome}"
        _assert_announced(outcome, ODD)
        has(ODD, requests_of(outcome)[-1].text, "the message")

    @rule
    def test_message_during_the_last_answer(self, arena: PlayArena) -> None:
        """A message is announced if, and only if, the model gets it; each answer is counted."""
        messages, send = _person(arena, "Use tabs.")
        turns = ((Meanwhile(send), Say("One.")), Say("Two."))
        outcome = succeeded(arena.session(turns, messages=messages))
        assert len(outcome.of(Steered)) <= 1, f"it was announced twice: {outcome}"
        _assert_announced(outcome, "Use tabs.")
        if outcome.of(Steered):
            _assert_usage(outcome, capabilities(arena).cost)

    @rule
    def test_no_messages(self, arena: PlayArena) -> None:
        """A session that gets no messages is like one that cannot get any."""
        quiet, open_ = (
            succeeded(arena.session((Say("One."),), messages=messages))
            for messages in (None, rx.never())
        )
        same(_kinds(quiet), _kinds(open_), open_)

    @rule
    def test_usage(self, arena: PlayArena) -> None:
        """Tokens and dollars are reported as claimed, and never decrease."""
        _assert_usage(work(self, arena), capabilities(arena).cost)

    @rule
    def test_usage_of_a_resumed_session(self, arena: PlayArena) -> None:
        """A resumed session reports its own tokens and dollars, without the earlier ones."""
        claimed = capabilities(arena)
        needs(claimed.resume and claimed.cost != "none", "resume and cost")
        first, again = work(self, arena), resumed(self, arena)
        _assert_usage(again, claimed.cost)
        if first.ended.cost_usd is not None and again.ended.cost_usd is not None:
            less = again.ended.cost_usd < first.ended.cost_usd
            assert less, f"one answer cost {again.ended.cost_usd}, five {first.ended.cost_usd}"

    @rule
    def test_session_ended_is_last(self, arena: PlayArena) -> None:
        """`SessionEnded` comes once and last, then the stream completes, with no process left."""
        outcome = work(self, arena)
        tags = [event.tag for event in outcome.events]
        same(1, tags.count("SessionEnded"), outcome)
        same("SessionEnded", tags[-1], outcome)
        same((), outcome.left, outcome)
        ended = outcome.ended
        assert ended.duration is None or ended.duration >= 0, f"a negative duration: {ended}"
        assert ended.num_turns is None or ended.num_turns >= 1, f"no turns: {ended}"

    @rule
    def test_leaves_nothing(self, arena: PlayArena) -> None:
        """A session leaves no process, thread, open file or temporary file."""
        left = long_session(self, arena).left
        assert not left, left

    @rule
    def test_start(self, arena: PlayArena) -> None:
        """The first event, besides pings, is a `SystemMessage`."""
        outcome = work(self, arena)
        events = [event for event in outcome.events if not isinstance(event, PingEvent)]
        assert isinstance(events[0], SystemMessage), f"the start is not reported: {outcome}"

    @rule
    def test_order(self, arena: PlayArena) -> None:
        """Text, calls and results come in the order in which they happened."""
        outcome = work(self, arena)
        kinds = {AgentMessage: "t", ToolCall: "c", ToolResult: "r"}
        order = "".join(kinds.get(type(event), "") for event in outcome.events)
        # Two calls of one answer may run concurrently or one after the other.
        order = order.replace("ttt", "t").replace("tt", "t").replace("ccrr", "crcr")
        same("tcrcrcrcrcrt", order, outcome)

    @rule
    def test_text(self, arena: PlayArena) -> None:
        """The text of the model arrives unchanged, each message with its own id."""
        outcome = work(self, arena)
        found: dict[str | None, str] = {}
        for message in outcome.of(AgentMessage):
            same(None, message.parent_tool_use_id, outcome)
            key = message.message_id or f"part {len(found)}"
            found[key] = found.get(key, "") + message.text
        same([LONG, MARKED.rstrip()], [text.rstrip() for text in found.values()], outcome)

    @rule
    def test_markers(self, arena: PlayArena) -> None:
        """A marker is read once, however it is split on its way."""
        outcome = work(self, arena)
        found: list[Event] = []
        source: rx.Observable[Event] = rx.from_iterable(outcome.events)
        source.pipe(extract_markers(marker_tags(Note))).subscribe(found.append)
        notes = [event.content for event in found if isinstance(event, Note)]
        same(list(WORDS), notes, outcome)

    @rule
    def test_deltas(self, arena: PlayArena) -> None:
        """Deltas precede their message, share its id and add up to its text; or there are none."""
        outcome = work(self, arena)
        deltas = outcome.of(MessageDelta)
        if not capabilities(arena).deltas:
            same([], deltas, outcome)
            return
        # Their number depends on timing: those that come at once may be one.
        assert deltas, f"deltas are claimed, and there is none: {outcome}"
        begun: dict[str | None, str] = {}
        for event in outcome.events:
            if isinstance(event, MessageDelta):
                begun[event.message_id] = begun.get(event.message_id, "") + event.text
            elif isinstance(event, AgentMessage):
                same(event.text, begun.pop(event.message_id, None), outcome)
        same({}, begun, outcome)

    @rule
    def test_reasoning(self, arena: PlayArena) -> None:
        """Reasoning is never reported as text."""
        outcome = succeeded(arena.session([[Think("Hm <NOTE>no</NOTE>."), Say("Over.")]]))
        same(["Over."], [message.text for message in outcome.of(AgentMessage)], outcome)
        written = "".join(delta.text for delta in outcome.of(MessageDelta))
        assert written in ("", "Over."), f"reasoning is reported as text: {written!r}"
        for thought in outcome.of(Thinking):
            same("Hm <NOTE>no</NOTE>.", thought.text, outcome)

    @rule
    def test_tool_names(self, arena: PlayArena) -> None:
        """A command is a `Bash` with its `command`, a new file a `Write` with its `file_path`."""
        outcome = work(self, arena)
        calls = _calls(outcome)
        commands = [*calls[:3], calls[4]]
        same(["Bash"] * 4, [call.name for call in commands], outcome)
        for call, command in zip(commands, COMMANDS, strict=True):
            same(command, _input(call).get("command"), outcome)
        write = calls[3]
        assert write.name in _EDITS, f"a file was written by {write.name}, not one of {_EDITS}"
        place = PurePath(str(_input(write).get("file_path")))
        same("new.txt", place.name, outcome)

    @rule
    def test_results(self, arena: PlayArena) -> None:
        """Each call has its own id and is followed by one result of that name."""
        outcome = work(self, arena)
        calls = _calls(outcome)
        ids = [call.id for call in calls]
        same(len(calls), len({*ids} - {""}), outcome)
        found = outcome.of(ToolResult)
        same(sorted(ids), sorted(result.name for result in found), outcome)
        results = {result.name: result for result in found}
        places = {id(event): place for place, event in enumerate(outcome.events)}
        for call in calls:
            result = results[call.id]
            assert places[id(call)] < places[id(result)], f"{result} comes before {call}"

    @rule
    def test_outputs(self, arena: PlayArena) -> None:
        """A result holds the output of its tool, also when the tool failed."""
        outcome = work(self, arena)
        outputs = ("a 'quoted' word", "two", "three", "", "some words")
        for call, output in zip(_calls(outcome), outputs, strict=True):
            for result in _results(outcome, call):
                assert output in result.output, f"{call} gave {output!r}: {result}"

    @rule
    def test_failed_command(self, arena: PlayArena) -> None:
        """A result is an error when its command exits with a code other than 0, and only then."""
        outcome = work(self, arena)
        *well, last = _calls(outcome)
        for result in (result for call in well for result in _results(outcome, call)):
            assert not result.is_error, f"a result is an error although nothing failed: {result}"
        for result in _results(outcome, last):
            assert result.is_error, f"{last} failed, but its result is not an error: {result}"

    @rule
    def test_unknown_output(self, arena: PlayArena) -> None:
        """Lines of the program that are unknown or empty do no harm."""
        for line in _UNKNOWN_LINES:
            arena.inject(line)
        outcome = succeeded(arena.session([Say("Over.")]))
        same(["Over."], [message.text for message in outcome.of(AgentMessage)], outcome)
        same(1, len(outcome.of(SessionEnded)), outcome)


def work(rules: Rules, arena: PlayArena) -> Outcome:
    """Return the usual session, which succeeded."""

    def resume(place: Path, session_id: str | None) -> Outcome:
        return arena.session(
            [Say(AGAIN)],
            prompt="Which word?",
            cwd=place,
            system_prompt=ODD_SYSTEM,
            resume_session_id=session_id,
        )

    def play() -> Outcome:
        place = arena.folder / "a folder"
        place.mkdir()
        first = arena.session(
            WORK,
            prompt=ODD,
            cwd=place,
            system_prompt=ODD_SYSTEM,
            env={"CONFORMANCE": VALUE},
        )
        if capabilities(arena).resume and first.error is None and first.ended.session_id:
            # Other rules report its failure.
            with suppress(AssertionError, CannotPlay):
                rules.once("resumed", lambda: resume(place, first.ended.session_id))
        return first

    return succeeded(rules.once("work", play))


def resumed(rules: Rules, arena: PlayArena) -> Outcome:
    """Return the usual session resumed by its id, which succeeded."""
    first = work(rules, arena)
    assert first.ended.session_id, f"it has no session id: {first}"
    again: Outcome | None = rules.once("resumed", lambda: None)
    assert again is not None, "the session was not resumed"
    return succeeded(again)


def long_session(rules: Rules, arena: PlayArena) -> LongSession:
    """Return a successful session with long prompts and the other model, if there is one."""

    def play() -> LongSession:
        prompt, system_prompt = long_text("prompt"), long_text("system")
        outcome: Outcome | None = None
        left = ""
        try:
            with nothing_left(arena.patience):
                outcome = arena.session(
                    [Run("echo one"), Say("Over.")],
                    prompt=prompt,
                    system_prompt=system_prompt,
                    model=arena.other_model,
                )
        except AssertionError as error:
            if outcome is None:
                raise
            left = str(error)
        return LongSession(prompt, system_prompt, outcome, left)

    played = rules.once("long", play)
    succeeded(played.outcome)
    return played


def long_text(first: str) -> str:
    """Return 300 kB that begin with a dash, in which a lost or doubled part would be noticed.

    Mostly ordinary words, as a model cannot read as many unusual ones.
    """
    words = "the cousin who can build it for you has a look at all of this and goes on with it"
    lines = [f"{first} {number}: {words}" for number in range(3100)]
    return "--dashes first\n" + "\n".join(lines) + '\n"é" 漢 \\ $X `y` 👍\nthe end'


def _person(arena: PlayArena, text: str) -> tuple[Subject[str], Callable[[], None]]:
    """Return messages, and a function that sends this text while the model is asked."""
    messages: Subject[str] = Subject()

    def send() -> None:
        messages.on_next(text)
        threading.Event().wait(arena.hearing if capabilities(arena).messages else 0.0)

    return messages, send


def _kinds(outcome: Outcome) -> list[str]:
    """Return the tags of the events, without those that depend on the moment."""
    momentary = PingEvent | MessageDelta | UsageUpdate
    return [event.tag for event in outcome.events if not isinstance(event, momentary)]


def _assert_announced(outcome: Outcome, text: str) -> None:
    """Assert that the message was announced if it is in a request, and no sooner."""
    is_asked = [text in request.text for request in requests_of(outcome)]
    assert not is_asked[0], f"it is in the prompt: {outcome}"
    same(any(is_asked), bool(outcome.of(Steered)), outcome)


def _assert_usage(outcome: Outcome, cost: str) -> None:
    ended = outcome.ended
    if cost != "dollars":
        same(None, ended.cost_usd, outcome)
    if cost == "none":
        same(None, ended.usage, outcome)
        return
    if cost == "dollars":
        assert ended.cost_usd is not None and ended.cost_usd > 0, f"it reports no dollars: {ended}"
    usage = ended.usage
    assert usage is not None, f"it reports no tokens: {ended}"
    if outcome.usage is not None:
        read = usage.input_tokens + usage.cache_read_tokens + usage.cache_creation_tokens
        expected = (outcome.usage.input_tokens, outcome.usage.output_tokens)
        same(expected, (read, usage.output_tokens), outcome)
    counts = [update.usage.output_tokens for update in outcome.of(UsageUpdate)]
    same(sorted(counts), counts, outcome)
    assert not counts or counts[-1] <= usage.output_tokens, f"{counts}, and at the end {usage}"


def _calls(outcome: Outcome) -> list[ToolCall]:
    """Return the calls in the order of `WORK`; those of one answer may come in another."""
    calls = outcome.of(ToolCall)
    assert len(calls) == 5, f"5 calls were made, {len(calls)} are reported: {outcome}"
    first, *both, write, last = calls
    if _input(both[0]).get("command") == COMMANDS[2]:
        both.reverse()
    return [first, *both, write, last]


def _results(outcome: Outcome, call: ToolCall) -> list[ToolResult]:
    """Return the results of the call; that there is one is another rule."""
    return [result for result in outcome.of(ToolResult) if result.name == call.id]


def _input(call: ToolCall) -> dict[str, object]:
    return dict(call.input) if isinstance(call.input, dict) else {}
