"""The loop: a generator over streams."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cuggino import LlmAgent, SpawnOptions, ask, emit, extract_markers, flow, forward, marker_tags
from cuggino.agents.base import Role
from cuggino.events import (
    CheckCommandOutput,
    Done,
    Event,
    LlmTerminalMarkerEvent,
    SessionEnded,
    SpecIssue,
    is_llm_terminal_marker_event,
)
from cuggino.operators import (
    Flow,
    idle_timeout,
    on_loop,
    retry_session,
    until_terminal,
    wait_for_quota,
)
from cuggino.operators.supervision import QuotaGate
from cuggino.stages import Shell, act, command_stage, fingerprint_stage, shell_lines
from reactivex import Observable, operators as ops

from red_green.events import Attempt, Cut, Ended, Prepared, TestsRestored
from red_green.policy import at_most

NO_TESTS_YET = 5
"""The exit code of pytest without tests."""

ASK_FOR_TEST = """\
Write a test for this wish, and nothing else: {wish}

Write it into the folder {tests}. It must fail as long as the wish has not come true; do not make it
come true. Then answer with <PREPARED>what the test holds</PREPARED>, or, if you cannot know what is
wanted, with <SPEC_ISSUE>your question</SPEC_ISSUE>, at the start of a line.{remark}
"""

ASK_FOR_CODE = """\
Make this wish come true: {wish}

A test for it is in the folder {tests}, and fails. Make it pass, and change nothing in that folder.
Then answer, at the start of a line, with <DONE>what you did</DONE>, or, if the test contradicts the
wish, with <SPEC_ISSUE>your question</SPEC_ISSUE>. This is what `{check}` says:

{output}
"""

PROVED_NOTHING = "\n\nYour last test passed at once, so it proves nothing."


@dataclass(frozen=True, slots=True, kw_only=True)
class RedGreen:
    """Test first. One agent writes a test that fails, others work until it passes.

    The exit code of the check decides whether the test passes, never an agent. A test that passes
    at once is rewritten; one that was changed to make it pass is restored.
    """

    agent: LlmAgent
    cwd: Path
    check: str = "python -m pytest -q"
    """The command whose exit code decides."""
    tests: str = "tests"
    """The folder of the tests, below `cwd`."""
    attempts: int = 5
    """The maximum number of sessions that try to make the test pass."""
    patience: int = 2
    """The maximum number of sessions in a row without a change."""
    commands: int = 40
    """The maximum number of commands of a session."""
    budget: float | None = None
    """US dollars after which no further session starts."""
    idle: float = 900.0
    """Seconds of silence after which an agent is replaced, once a session."""
    shell: Shell = shell_lines

    def run(self, wish: str) -> Observable[Event]:
        """Make the wish come true.

        ::

            CheckCommandOutput { [agent] Prepared CheckCommandOutput }
              { Attempt [agent] Done [TestsRestored] CheckCommandOutput } Ended|

        `Ended` is last, whether the wish came true or not. The loop waits for a usage limit to
        reset. Errors: an agent's failure that persists after three retries.
        """
        return on_loop(flow(lambda: _Run(self, wish).story()))


@dataclass(slots=True)
class _Run:
    """One run: the state that its steps share."""

    loop: RedGreen
    wish: str
    attempts: int = 0
    cost_usd: float = 0.0
    _gate: QuotaGate = field(default_factory=QuotaGate)

    def story(self) -> Flow[None]:
        before = yield from self._check()
        if before.exit_code not in (0, NO_TESTS_YET):
            return (yield from self._end("the check fails before anything was done"))
        red = yield from self._write_a_failing_test()
        if not isinstance(red, CheckCommandOutput):
            return (yield from self._end(red))
        return (yield from self._end((yield from self._make_it_pass(red))))

    def _write_a_failing_test(self) -> Flow[CheckCommandOutput | str]:
        """Return the check's output with the new test, or why there is none."""
        remark = ""
        for _ in range(2):
            ending = yield from self._session("planning", self._ask_for_test(remark), Prepared)
            if not isinstance(ending, Prepared):
                return _why(ending, "wrote no test")
            result = yield from self._check()
            if result.exit_code not in (0, NO_TESTS_YET):
                return result
            remark = PROVED_NOTHING
        return "the test passes without anything being done, so it proves nothing"

    def _make_it_pass(self, red: CheckCommandOutput) -> Flow[str]:
        """Return why the test did not pass, or ""."""
        tests = (yield from ask(act(self._read_tests))) or {}
        state, standstill = (yield from self._state()), 0
        while self.attempts < self.loop.attempts:
            if self.loop.budget is not None and self.cost_usd >= self.loop.budget:
                return f"${self.cost_usd:.2f} of ${self.loop.budget:.2f} are spent"
            self.attempts += 1
            yield from emit(Attempt(number=self.attempts, of=self.loop.attempts))
            ending = yield from self._session("implementing", self._ask_for_code(red), Done)
            restored = yield from ask(act(lambda: self._restore(tests)))
            if restored:
                yield from emit(TestsRestored(files=restored))
            red = yield from self._check()
            if red.exit_code == 0:
                return ""
            if isinstance(ending, SpecIssue):
                return ending.content
            before, state = state, (yield from self._state())
            standstill = standstill + 1 if state == before else 0
            if standstill == self.loop.patience:
                return f"{standstill} sessions in a row changed nothing"
        return f"the test still fails after {self.attempts} attempts"

    def _session(
        self, role: Role, prompt: str, ending: type[LlmTerminalMarkerEvent]
    ) -> Flow[Event | None]:
        """Run a session with its policies; return how it ended."""
        loop = self.loop
        options = SpawnOptions(
            prompt=prompt, cwd=loop.cwd, role=role, dangerously_skip_permissions=True
        )
        tags = marker_tags(ending, SpecIssue)
        alive: Observable[Any] = loop.agent.spawn(options).pipe(idle_timeout(idle=loop.idle))
        retried: Observable[Any] = alive.pipe(retry_session())
        patient: Observable[Event] = retried.pipe(wait_for_quota(gate=self._gate))
        session: Observable[Event] = patient.pipe(
            at_most(commands=loop.commands),
            ops.do_action(self._count),
            extract_markers(tags, at_line_start=tags, at_end=is_llm_terminal_marker_event),
            until_terminal(
                is_llm_terminal_marker_event,
                linger=10.0,
                settle=lambda event: isinstance(event, SessionEnded),
            ),
        )
        return (yield from forward(session, name=role))

    def _check(self) -> Flow[CheckCommandOutput]:
        with TemporaryDirectory() as folder:
            stage = command_stage(
                CheckCommandOutput,
                self.loop.check,
                shell=self.loop.shell,
                cwd=self.loop.cwd,
                iteration=self.attempts,
                output_file=Path(folder, "output.txt"),
                timeout=1800.0,
            )
            result = yield from forward(stage, name="check")
        assert result is not None
        return result

    def _state(self) -> Flow[str | None]:
        """Return a fingerprint of the project."""
        stage = fingerprint_stage(self.loop.cwd, exclude=(), plan=None)
        return (yield from ask(stage, name="state"))

    def _end(self, reason: str) -> Flow[None]:
        yield from emit(
            Ended(green=not reason, reason=reason, attempts=self.attempts, cost_usd=self.cost_usd)
        )

    def _count(self, event: Event) -> None:
        if isinstance(event, SessionEnded):
            self.cost_usd += event.cost_usd or 0.0

    def _ask_for_test(self, remark: str) -> str:
        return ASK_FOR_TEST.format(wish=self.wish, tests=self.loop.tests, remark=remark)

    def _ask_for_code(self, red: CheckCommandOutput) -> str:
        loop = self.loop
        return ASK_FOR_CODE.format(
            wish=self.wish, tests=loop.tests, check=loop.check, output=red.output
        )

    def _read_tests(self) -> Mapping[str, bytes]:
        folder = self.loop.cwd / self.loop.tests
        found = (path for path in folder.rglob("*.py") if path.is_file())
        return {path.relative_to(self.loop.cwd).as_posix(): path.read_bytes() for path in found}

    def _restore(self, tests: Mapping[str, bytes]) -> tuple[str, ...]:
        """Restore the tests; return the changed ones."""
        now = self._read_tests()
        changed = {path: text for path, text in tests.items() if now.get(path) != text}
        for path, text in changed.items():
            (self.loop.cwd / path).parent.mkdir(parents=True, exist_ok=True)
            (self.loop.cwd / path).write_bytes(text)
        return tuple(sorted(changed))


def _why(ending: Event | None, otherwise: str) -> str:
    match ending:
        case SpecIssue(content=question):
            return question
        case Cut(content=reason):
            return reason
        case _:
            return f"the agent {otherwise}"
