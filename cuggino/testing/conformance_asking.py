"""The rules for what an agent is asked for: prompts, model, environment, sessions, what it took."""

from __future__ import annotations

from cuggino.agents.protocol import GuardedAgent, LlmAgent, SandboxedAgent
from cuggino.errors import AgentFailed
from cuggino.events import (
    AgentMessage,
    GuardDenied,
    PingEvent,
    SessionEnded,
    SystemMessage,
    ToolResult,
    UsageUpdate,
)
from cuggino.security.roles import role_policy
from cuggino.testing.conformance_acts import Outcome, Run, Say, Write
from cuggino.testing.conformance_arena import Arena
from cuggino.testing.conformance_mcp import servers
from cuggino.testing.conformance_rules import (
    Rules,
    capabilities,
    has,
    needs,
    rule,
    same,
    succeeded,
    told_by,
)
from cuggino.testing.conformance_shared import (
    AGAIN,
    LONG,
    ODD,
    ODD_SYSTEM,
    VALUE,
    long_session,
    resumed,
    work,
)

_SOMEBODY = ("askuser", "askhuman", "askquestion", "requestuserinput", "userquestion")


class AskingRules(Rules):
    """What an agent is asked for."""

    @rule
    def test_it_is_an_agent(self, arena: Arena) -> None:
        """It has a name and a version, and its methods agree with what it claims."""
        agent, claimed = arena.agent, capabilities(arena)
        assert isinstance(agent, LlmAgent), f"{type(agent).__name__} is no LlmAgent"
        assert agent.name.strip(), "it has no name"
        version = agent.check()
        assert version.strip() and version == agent.check(), f"its version is {version!r}"
        assert claimed.resume == agent.can_resume, f"can_resume is {agent.can_resume}: {claimed}"
        sandboxed = isinstance(agent, SandboxedAgent)
        assert claimed.sandbox == sandboxed, f"SandboxedAgent is {sandboxed}: {claimed}"
        guarded = isinstance(agent, GuardedAgent)
        assert guarded or claimed.guard == "none", f"it is no GuardedAgent: {claimed}"

    @rule
    def test_the_prompt_arrives(self, arena: Arena) -> None:
        """A prompt reaches the model as it is, whatever it holds and however it begins."""
        has(ODD, told_by(work(self, arena))[0].text, "the prompt")

    @rule
    def test_a_long_prompt_arrives(self, arena: Arena) -> None:
        """A prompt of 300 kB reaches the model whole."""
        played = long_session(self, arena)
        has(played.prompt, told_by(played.outcome)[0].text, "the prompt")

    @rule
    def test_the_system_prompt_arrives(self, arena: Arena) -> None:
        """A system prompt reaches the model as it is, as a system prompt."""
        has(ODD_SYSTEM, told_by(work(self, arena))[0].system, "the system prompt")

    @rule
    def test_a_long_system_prompt_arrives(self, arena: Arena) -> None:
        """A system prompt of 300 kB reaches the model whole."""
        played = long_session(self, arena)
        has(played.system_prompt, told_by(played.outcome)[0].system, "the system prompt")

    @rule
    def test_the_model_is_the_one_asked_for(self, arena: Arena) -> None:
        """The model that is asked for is the one that is used."""
        needs(arena.other_model is not None, "a choice of models")
        used = told_by(long_session(self, arena).outcome)[0].model
        assert used and str(arena.other_model).endswith(used), (
            f"{arena.other_model} was asked for, {used!r} was used"
        )

    @rule
    def test_the_environment_arrives(self, arena: Arena) -> None:
        """The variables of a session reach the commands of its tools."""
        outcome = work(self, arena)
        same(f"{VALUE}\n", outcome.files.get("env.txt"), outcome)

    @rule
    def test_it_works_in_its_folder(self, arena: Arena) -> None:
        """The commands and files of a session are those of its folder."""
        outcome = work(self, arena)
        where = outcome.files.get("pwd.txt", "")
        assert where.endswith("/a folder\n"), f"the commands of its tools run in {where!r}"
        same("new\n", outcome.files.get("new.txt"), outcome)

    @rule
    def test_nobody_is_asked(self, arena: Arena) -> None:
        """The model is offered no tool that asks a person: nobody is there."""
        outcome = work(self, arena)
        offered = {name for told in told_by(outcome) for name in told.tools}
        asking = [
            name
            for name in sorted(offered - arena.harmless_tools)
            if any(word in name.lower().replace("_", "") for word in _SOMEBODY)
        ]
        same([], asking, outcome)

    @rule
    def test_servers_of_tools_are_started(self, arena: Arena) -> None:
        """A server of tools that a session is given is started, and asked what it has."""
        needs(capabilities(arena).mcp, "MCP")
        log = arena.folder / "asked.log"
        # Whether its tools are offered at once, or found when they are looked for, is not said.
        outcome = succeeded(
            arena.session([Run("echo one"), Say("Over.")], mcp_servers=servers(log))
        )
        asked = outcome.files.get("asked.log", "").split()
        assert "tools/list" in asked, f"it was asked {asked} in {outcome}"

    @rule
    def test_nothing_is_written_without_leave(self, arena: Arena) -> None:
        """Without `dangerously_skip_permissions` nothing is written, and nothing waits."""
        outcome = arena.session(
            [Run("echo no > run.txt"), Write("write.txt", "no\n"), Say("Over.")],
            dangerously_skip_permissions=False,
        )
        written = {"run.txt", "write.txt"} & outcome.files.keys()
        assert not written, f"it has written {', '.join(sorted(written))}: {outcome}"
        same(1, len(outcome.of(SessionEnded)), outcome)

    @rule
    def test_a_policy_is_held(self, arena: Arena) -> None:
        """What a policy denies is not done, the model is told why, and so is who listens; once."""
        needs(capabilities(arena).guard == "calls", "a guard that judges calls")
        place = arena.folder / "inner"
        place.mkdir()
        outcome = succeeded(
            arena.session(
                [Run("echo no > ../denied.txt"), Run("echo yes > yes.txt"), Say("Over.")],
                cwd=place,
                guard=role_policy("implementing", project=place, level="roles"),
            )
        )
        assert not (arena.folder / "denied.txt").exists(), f"what is denied was done: {outcome}"
        same("yes\n", outcome.files.get("yes.txt"), outcome)
        denials = outcome.of(GuardDenied)
        same(1, len(denials), outcome)
        (answer,) = [r for r in outcome.of(ToolResult) if r.name == denials[0].tool_use_id]
        same(True, answer.is_error, outcome)
        if outcome.told is not None:
            has(denials[0].reason, outcome.told[-1].text, "the reason of the denial")

    @rule
    def test_a_session_is_gone_on_with(self, arena: Arena) -> None:
        """A session has an id; resumed by it the model knows what was said, and the id stays."""
        needs(capabilities(arena).resume, "resume")
        first, again = work(self, arena), resumed(self, arena)
        same(first.ended.session_id, again.ended.session_id, again)
        same([AGAIN], [message.text for message in again.of(AgentMessage)], again)
        if again.told is not None:
            for text in (ODD, LONG, "Which word?"):
                has(text, again.told[0].text, "what was said before")

    @rule
    def test_a_session_that_is_not_there(self, arena: Arena) -> None:
        """To resume an unknown session is a `bad_request`, before anything was said or done."""
        needs(capabilities(arena).resume, "resume")
        outcome = arena.session([Say("Over.")], resume_session_id=arena.unknown_session)
        error = outcome.error
        assert isinstance(error, AgentFailed), f"it was not refused: {outcome}"
        same("bad_request", error.reason, outcome)
        said = [e for e in outcome.events if not isinstance(e, SystemMessage | PingEvent)]
        assert all(isinstance(e, SessionEnded) for e in said), f"something was said: {outcome}"
        same(0, len(outcome.told or ()), outcome)

    @rule
    def test_a_session_tells_what_it_took(self, arena: Arena) -> None:
        """Tokens and money are told as far as that is claimed, and never less than before."""
        _assert_taken(work(self, arena), capabilities(arena).cost)

    @rule
    def test_a_resumed_session_tells_what_it_took_itself(self, arena: Arena) -> None:
        """Tokens and money of a session that was gone on with are those it took from then on."""
        claimed = capabilities(arena)
        needs(claimed.resume and claimed.cost != "none", "resume and cost")
        first, again = work(self, arena), resumed(self, arena)
        _assert_taken(again, claimed.cost)
        if first.ended.cost_usd is not None and again.ended.cost_usd is not None:
            less = again.ended.cost_usd < first.ended.cost_usd
            assert less, f"one answer cost {again.ended.cost_usd}, five {first.ended.cost_usd}"


def _assert_taken(outcome: Outcome, cost: str) -> None:
    ended = outcome.ended
    if cost != "dollars":
        same(None, ended.cost_usd, outcome)
    if cost == "none":
        same(None, ended.usage, outcome)
        return
    if cost == "dollars":
        assert ended.cost_usd is not None and ended.cost_usd > 0, f"it tells no dollars: {ended}"
    usage = ended.usage
    assert usage is not None, f"it tells no tokens: {ended}"
    if outcome.taken is not None:
        read = usage.input_tokens + usage.cache_read_tokens + usage.cache_creation_tokens
        expected = (outcome.taken.input_tokens, outcome.taken.output_tokens)
        same(expected, (read, usage.output_tokens), outcome)
    counts = [update.usage.output_tokens for update in outcome.of(UsageUpdate)]
    same(sorted(counts), counts, outcome)
    assert not counts or counts[-1] <= usage.output_tokens, f"{counts}, and in the end {usage}"
