"""Rules for the enforcement of a policy: denied calls do not run, even if the guard breaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cuggino.errors import GuardNotLive
from cuggino.events import GuardDenied, ToolCall, ToolResult
from cuggino.guard import Level, PermissionSet, role_policy
from cuggino.testing.conformance.acts import (
    Call,
    Delegate,
    Edit,
    Meanwhile,
    Outcome,
    Read,
    Run,
    Say,
    Turn,
    Write,
)
from cuggino.testing.conformance.agent import tool_server
from cuggino.testing.conformance.arena import GuardFault, PlayArena
from cuggino.testing.conformance.rules import (
    Rules,
    capabilities,
    has,
    hold_until,
    needs,
    rule,
    same,
    succeeded,
)

SPEC = "There is a file.\n"
"""The protected file `.specs/task.md` of every project."""

ALLOWED, DENIED = Run("echo yes > new.txt"), Run("echo no > .specs/task.md")


class GuardConformance(Rules):
    """Rules for an agent that judges every tool call by a policy.

    They are skipped for an agent that does not claim it.
    """

    @rule
    def test_commands(self, arena: PlayArena) -> None:
        """An allowed command runs, a denied one does not; model and subscriber get the reason."""
        place = project(arena)
        denied = Run("echo x > .specs/task.md; echo y > y.txt")
        outcome = succeeded(guarded(arena, place, [(ALLOWED, denied)]))
        _assert_files(place, outcome, **{"new.txt": "yes\n", "y.txt": None})
        (denial,) = _denials(outcome, "Bash")
        same("> .specs/task.md", denial.part, outcome)
        assert ".specs" in denial.reason, f"the reason does not name the place: {denial}"
        results = {result.name: result.is_error for result in outcome.of(ToolResult)}
        calls = {call.id: call.id == denial.tool_use_id for call in outcome.of(ToolCall)}
        same(calls, results, outcome)
        same([False, True], sorted(calls.values()), outcome)

    @rule
    def test_files(self, arena: PlayArena) -> None:
        """File tools change the sources, but neither the specifications nor `.cuggino`."""
        place = project(arena)
        outcome = succeeded(
            guarded(
                arena,
                place,
                [
                    (Read("app.py"), Read(".specs/task.md")),
                    (Edit("app.py", "old = 1", "new = 1"), Write("more.py", "more\n")),
                    Edit(".specs/task.md", "There is a file.", "There is no file."),
                    Write(".cuggino/lock", "more\n"),
                ],
            )
        )
        kept = {"app.py": "new = 1\n", "more.py": "more\n", ".cuggino/lock": None}
        _assert_files(place, outcome, **kept)
        _denials(outcome, "Edit", "Write")

    @rule
    def test_ids(self, arena: PlayArena) -> None:
        """A denial carries the id of its call, whose result is an error."""
        place = project(arena)
        outcome = succeeded(guarded(arena, place, [ALLOWED, DENIED, Run("exit 4")]))
        *_, last = outcome.of(ToolCall)
        denied = [event.tool_use_id for event in outcome.of(GuardDenied)]
        errors = [result.name for result in outcome.of(ToolResult) if result.is_error]
        same([*denied, last.id], errors, outcome)

    @rule
    def test_sub_agent(self, arena: PlayArena) -> None:
        """The calls of a sub-agent are judged."""
        place = project(arena)
        outcome = succeeded(guarded(arena, place, [Delegate([(ALLOWED, DENIED)])]))
        _assert_files(place, outcome, **{"new.txt": "yes\n"})
        _denials(outcome, "Bash", reported=False)

    @rule
    def test_mcp_tool(self, arena: PlayArena) -> None:
        """A tool of an MCP server is judged by the paths that it is given."""
        needs(capabilities(arena).mcp, "MCP")
        place = project(arena)
        calls = [
            Call("files", "put", {"path": str(place / name)})
            for name in ("put.txt", ".specs/task.md")
        ]
        servers = tool_server(arena.folder / "asked.log")
        outcome = succeeded(guarded(arena, place, [calls], mcp_servers=servers))
        _assert_files(place, outcome, **{"put.txt": "put"})
        _denials(outcome, "mcp__files__put")

    @rule
    def test_planning(self, arena: PlayArena) -> None:
        """A planning agent writes its plan and nothing else, with any tool."""
        place = project(arena)
        plan = ".cuggino/wip/plan.md"
        (place / plan).parent.mkdir(parents=True)
        turns: list[Turn] = [Write(plan, "# Plan\n"), Write("app2.py", "x\n"), Run("touch x.txt")]
        policy = role_policy("planning", project=place, level="roles", plan=Path(plan))
        outcome = succeeded(guarded(arena, place, turns, guard=policy))
        _assert_files(place, outcome, **{plan: "# Plan\n", "app2.py": None, "x.txt": None})
        _denials(outcome, "Write", "Bash")

    @rule
    def test_verifying(self, arena: PlayArena) -> None:
        """A verifying agent reads the project alone and writes nothing."""
        place = project(arena)
        outside = arena.folder / "outside.txt"
        outside.write_text("not yours\n", encoding="utf-8")
        turns: list[Turn] = [(Read("app.py"), Read(str(outside))), Write("new.txt", "new\n")]
        outcome = succeeded(guarded(arena, place, turns, role="verify", level="full"))
        _assert_files(place, outcome, **{"new.txt": None})
        seen = _conversation(outcome)
        assert "old = 1" in seen, f"it cannot read the project: {outcome}"
        assert "not yours" not in seen, f"it reads other folders: {outcome}"
        assert outcome.of(GuardDenied), f"no call is denied: {outcome}"
        errors = [result.is_error for result in outcome.of(ToolResult)]
        assert sorted(errors) == [False, True, True], f"2 of 3 calls fail: {outcome}"

    @rule
    def test_listed_programs(self, arena: PlayArena) -> None:
        """At the level `full` only listed programs run, wherever in the command they stand."""
        place = project(arena)
        commands = ("echo yes > a.txt && git status", "echo no > b.txt; nmap x", "ls $(nmap x)")
        turn = [Run(command) for command in commands]
        outcome = succeeded(guarded(arena, place, [turn], level="full"))
        _assert_files(place, outcome, **{"a.txt": "yes\n", "b.txt": None})
        for denial in _denials(outcome, "Bash", "Bash"):
            assert "nmap" in denial.reason, f"the reason does not name the program: {denial}"

    @rule
    def test_resumed_session(self, arena: PlayArena) -> None:
        """A session that began without a policy is guarded when it is resumed with one."""
        needs(capabilities(arena).resume, "resume")
        place = project(arena)
        first = succeeded(arena.session([Run("echo 1 > one.txt"), Say("Over.")], cwd=place))
        name = first.ended.session_id
        outcome = succeeded(guarded(arena, place, [(ALLOWED, DENIED)], resume_session_id=name))
        _assert_files(place, outcome, **{"one.txt": "1\n", "new.txt": "yes\n"})
        _denials(outcome, "Bash")

    @rule
    def test_settings_of_the_project(self, arena: PlayArena) -> None:
        """Settings in the project do not switch the guard off."""
        for number, files in enumerate(_hostile(arena)):
            place = project(arena, f"project {number}")
            _write(place, files)
            outcome = guarded(arena, place, [(ALLOWED, DENIED)])
            _assert_enforced(place, outcome, files)

    @rule
    def test_settings_during_the_session(self, arena: PlayArena) -> None:
        """Settings that appear in the project during a session do not switch the guard off."""
        for number, files in enumerate(_hostile(arena)):
            place = project(arena, f"project {number}")
            appear = Meanwhile(partial(_write, place, files))
            # Programs look for changed settings while a command runs.
            turns: list[Turn] = [(appear, Run("sleep 1.5")), (ALLOWED, DENIED)]
            outcome = guarded(arena, place, turns)
            _assert_enforced(place, outcome, files)

    @rule
    def test_rewriting_hook(self, arena: PlayArena) -> None:
        """A command that a hook of the user replaces is judged, or ends the session."""
        place = project(arena)
        arena.rewriting_hook(DENIED.command)
        outcome = _ending(arena, place, [Run("echo yes")], Run("echo more > more.txt"))
        _assert_files(place, outcome)
        if outcome.error is None:
            assert outcome.of(GuardDenied), f"the call was not judged: {outcome}"
            return
        assert isinstance(outcome.error, GuardNotLive), f"another error: {outcome}"
        same("failed", outcome.ended.outcome, outcome)
        _assert_files(place, outcome, **{"more.txt": None})

    @rule
    def test_startup_files(self, arena: PlayArena) -> None:
        """Commands run in the shell that the guard parses, without startup files of the user."""
        place = project(arena)
        startup = arena.folder / "startup.sh"
        startup.write_text(f"touch '{arena.folder}/started'\n", encoding="utf-8")
        arena.ambient.update({"BASH_ENV": str(startup), "SHELL": "/bin/sh"})
        turn = (Run("echo ${BASH_VERSION:+bash} > shell.txt"), DENIED)
        outcome = succeeded(guarded(arena, place, [turn]))
        _assert_files(place, outcome, **{"shell.txt": "bash\n"})
        _denials(outcome, "Bash")
        assert not (arena.folder / "started").exists(), f"a startup file has run: {outcome}"

    @rule
    def test_check(self, arena: PlayArena) -> None:
        """The guard can be checked without a session."""
        agent = arena.agent
        needs(capabilities(arena).guard in ("calls", "asked"), "a guard that judges calls")
        agent.check_guard(role_policy("implementing", project=arena.folder, level="roles"))

    @rule
    def test_broken_at_the_start(self, arena: PlayArena) -> None:
        """With a broken guard, no tool runs, and the session fails with `GuardNotLive`."""
        for number, fault in enumerate(_faults(arena, "at the start")):
            place = project(arena, f"project {number}")
            with arena.break_guard("at the start", fault):
                outcome = guarded(arena, place, [ALLOWED, Write("file.txt", "no\n")])
            error = outcome.error
            assert isinstance(error, GuardNotLive), f"{fault}: it is not noticed: {outcome}"
            _assert_files(place, outcome, **{"new.txt": None, "file.txt": None})
            done = [result for result in outcome.of(ToolResult) if not result.is_error]
            same([], done, outcome)

    @rule
    def test_broken_later(self, arena: PlayArena) -> None:
        """Once the guard fails, no tool runs, and model and subscriber are informed."""
        for number, fault in enumerate(_faults(arena, "later")):
            place = project(arena, f"project {number}")
            with arena.break_guard("later", fault) as break_now:
                turns: list[Turn] = [
                    Run("echo one > one.txt"),
                    (Meanwhile(break_now), Run("echo two > two.txt"), Write("two.txt", "2\n")),
                    Run("echo three > three.txt"),
                ]
                outcome = guarded(arena, place, turns)
            assert outcome.error is None, f"{fault}: {outcome}"
            _assert_files(
                place, outcome, **{"one.txt": "one\n", "two.txt": None, "three.txt": None}
            )
            errors = sorted(result.is_error for result in outcome.of(ToolResult))
            assert errors == [False, True, True, True], f"{fault}: {errors} in {outcome}"
            denials = outcome.of(GuardDenied)
            assert len(denials) == 3, f"{fault}: {len(denials)} calls are denied: {outcome}"

    @rule
    def test_not_asked(self, arena: PlayArena) -> None:
        """A tool that was used without being judged ends the session."""
        for number, fault in enumerate(_faults(arena, "unasked")):
            place = project(arena, f"project {number}")
            with arena.break_guard("unasked", fault) as break_now:
                outcome = _ending(
                    arena,
                    place,
                    [(Meanwhile(break_now), Run("ls")), Run("ls -a")],
                    Run("touch more.txt"),
                )
            error = outcome.error
            assert isinstance(error, GuardNotLive), f"{fault}: it is not noticed: {outcome}"
            assert "without its verdict" in error.message, f"{fault}: {error}"
            same("failed", outcome.ended.outcome, outcome)
            _assert_files(place, outcome, **{"more.txt": None})


def project(arena: PlayArena, name: str = "project") -> Path:
    """Create a project with a specification and a source file."""
    needs(capabilities(arena).guard in ("calls", "asked"), "a guard that judges calls")
    place = arena.folder / name
    _write(place, {".specs/task.md": SPEC, "app.py": "old = 1\n"})
    return place


def guarded(
    arena: PlayArena,
    place: Path,
    turns: Sequence[Turn],
    *,
    role: PermissionSet = "implementing",
    level: Level = "roles",
    **options: Any,
) -> Outcome:
    """Run a session in the project, by default with the policy of that role."""
    policy = role_policy(role, project=place, level=level)
    return arena.session([*turns, Say("Over.")], **{"cwd": place, "guard": policy, **options})


def _ending(arena: PlayArena, place: Path, turns: Sequence[Turn], last: Run) -> Outcome:
    """Run a guarded session whose last call comes once it has ended, or a call was denied."""

    def is_noticed() -> bool:
        denied = any(isinstance(event, GuardDenied) for event in running.events)
        return denied or running.has_ended

    policy = role_policy("implementing", project=place, level="roles")
    whole = [*turns, (hold_until(is_noticed, arena), last), Say("Over.")]
    with arena.start(whole, cwd=place, guard=policy) as running:
        return running.outcome()


def _hostile(arena: PlayArena) -> Sequence[Mapping[str, str]]:
    found = arena.hostile_settings()
    needs(bool(found), "settings that a project might contain")
    return found


def _faults(arena: PlayArena, when: GuardFault) -> Sequence[str]:
    found = arena.guard_faults(when)
    needs(bool(found), f"a guard that can be broken {when}")
    return found


def _write(place: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _assert_files(place: Path, outcome: Outcome, **expected: str | None) -> None:
    """Assert these texts, None for a missing file, and an unchanged specification."""
    for name, text in {".specs/task.md": SPEC, **expected}.items():
        file = place / name
        found = file.read_text(encoding="utf-8") if file.exists() else None
        assert text == found, f"{name} should be {text!r} and is {found!r}: {outcome}"


def _assert_enforced(place: Path, outcome: Outcome, files: object) -> None:
    assert outcome.error is None, f"the session failed with {files}: {outcome}"
    _assert_files(place, outcome, **{"new.txt": "yes\n", "hostile.txt": None})
    _denials(outcome, "Bash")


def _denials(outcome: Outcome, *tools: str, reported: bool = True) -> list[GuardDenied]:
    """Assert a denial of each of these tools, whose reason the model was given."""
    found = outcome.of(GuardDenied)
    same([_kind(tool) for tool in tools], [_kind(denial.tool) for denial in found], outcome)
    for denial in found if reported and outcome.requests is not None else ():
        has(denial.reason, _conversation(outcome), "the reason of the denial")
    return found


def _kind(tool: str) -> str:
    """Return one name for all tools that write files."""
    return "Write" if tool in ("Edit", "MultiEdit") else tool


def _conversation(outcome: Outcome) -> str:
    return outcome.requests[-1].text if outcome.requests else ""
