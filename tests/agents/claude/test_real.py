"""The real Claude Code CLI against a scripted model: what it prints is what the wire expects."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from cuggino.agents.claude.wire import ClaudeSession
from cuggino.errors import AgentFailed, LlmSessionError, QuotaExceeded
from cuggino.events import (
    AgentMessage,
    LlmAgentEvent,
    MessageDelta,
    PingEvent,
    RateLimited,
    SessionEnded,
    ToolResult,
    UsageUpdate,
)
from tests.model_server import ApiError, Message, ModelServer, Reply, RoleScript, Text, Tool
from tests.real_claude import VERSION, clean_env

pytestmark = pytest.mark.real_agent

ARGUMENTS = (
    "-p",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--disallowedTools=AskUserQuestion",
    "--dangerously-skip-permissions",
)


@dataclass(frozen=True)
class Run:
    """What one run of the program gave."""

    events: list[LlmAgentEvent]
    ended: SessionEnded
    error: LlmSessionError | None
    session: ClaudeSession
    exit_code: int

    @property
    def tags(self) -> list[str]:
        unseen = PingEvent | MessageDelta | UsageUpdate
        return [event.tag for event in self.events if not isinstance(event, unseen)]


@dataclass(frozen=True)
class Claude:
    """The program in a project and a home of its own."""

    program: Path
    project: Path
    home: Path

    def run(
        self, server: ModelServer, prompt: str, *options: str, env: dict[str, str] | None = None
    ) -> Run:
        with tempfile.TemporaryFile() as stdin:
            stdin.write(prompt.encode())
            stdin.seek(0)
            started = time.monotonic()
            done = subprocess.run(
                [str(self.program), *ARGUMENTS, *options],
                cwd=self.project,
                env={**clean_env(self.home, server.url), **(env or {})},
                stdin=stdin,
                capture_output=True,
                timeout=60,
                check=False,
            )
        session = ClaudeSession()
        events = [
            event
            for line in done.stdout.splitlines(keepends=True)
            for event in session.feed(line, now=0.0)
        ]
        ended, error = session.end(
            exit_code=done.returncode,
            stderr_tail=done.stderr.decode("utf-8", "replace"),
            duration=time.monotonic() - started,
            now=time.time(),
        )
        return Run(events, ended, error, session, done.returncode)


@pytest.fixture
def claude(claude_cli: Path, tmp_path: Path) -> Claude:
    project = tmp_path / "project"
    project.mkdir()
    return Claude(claude_cli, project, tmp_path / "home")


def saying(*runs: Sequence[Text | Tool | Reply | Sequence[Text | Tool]]) -> RoleScript:
    """A model with one role, that says this."""
    return RoleScript({"implementing": "."}, {"implementing": runs})


def test_one_answer(claude: Claude) -> None:
    """A run with one answer gives that answer, its cost, its session and its version."""
    with ModelServer(saying([Text("Hello from the script, in several deltas.")])) as server:
        run = claude.run(server, "Say hello.")

    assert (run.exit_code, run.error) == (0, None)
    assert run.tags == ["SystemMessage", "AgentMessage"]
    assert texts(run)[0] == "Hello from the script, in several deltas."
    assert any(isinstance(event, PingEvent) for event in run.events)
    assert run.ended.outcome == "completed"
    assert run.ended.cost_usd is not None
    assert run.ended.cost_usd > 0
    assert tokens(run) == (1000, 100)
    assert run.ended.num_turns == 1
    assert run.ended.session_id is not None
    assert run.session.version == VERSION
    assert "Say hello." in server.requests[0].messages_text


def test_tools_really_work(claude: Claude) -> None:
    """Tool calls of the model run in the project, and their results are paired with them."""
    written = claude.project / "written.txt"
    script = saying(
        [
            [Text("I start."), Tool("Bash", {"command": "echo by-bash > bash.txt; echo told"})],
            Tool("Write", {"file_path": str(written), "content": "by Write\n"}),
            Text("All there. <DONE>two files</DONE>"),
        ]
    )
    with ModelServer(script) as server:
        run = claude.run(server, "Write two files.")

    assert run.error is None
    expected = ["AgentMessage", "ToolCall", "ToolResult", "ToolCall", "ToolResult", "AgentMessage"]
    assert ["SystemMessage", *expected] == run.tags
    assert (claude.project / "bash.txt").read_text() == "by-bash\n"
    assert written.read_text() == "by Write\n"
    results = [event for event in run.events if isinstance(event, ToolResult)]
    assert [result.name for result in results] == ["toolu_1_1", "toolu_2_0"]
    assert results[0].output == "told"
    assert texts(run)[-1] == "All there. <DONE>two files</DONE>"
    assert len(server.requests) == 3


def test_system_prompt_file(claude: Claude, tmp_path: Path) -> None:
    """What stands in the file of --append-system-prompt-file reaches the model."""
    prompt = tmp_path / "role.md"
    prompt.write_text("You are the reviewer of è and 漢.\n", encoding="utf-8")
    with ModelServer(saying([Text("ok")])) as server:
        run = claude.run(server, "Go.", "--append-system-prompt-file", str(prompt))

    assert run.error is None
    assert "You are the reviewer of è and 漢." in server.requests[0].system_text


def test_refused_key(claude: Claude) -> None:
    """A refused key is a failure of authentication that says how to log in."""
    refusal = ApiError(401, "authentication_error", "invalid x-api-key")
    with ModelServer(saying([refusal])) as server:
        run = claude.run(server, "Go.", env={"CLAUDE_CODE_MAX_RETRIES": "0"})

    assert len(server.requests) == 1
    assert run.exit_code == 1
    assert isinstance(run.error, AgentFailed)
    assert run.error.reason == "auth"
    assert "ANTHROPIC_API_KEY" in (run.error.hint or "")
    assert run.tags == ["SystemMessage", "SystemMessage"]
    assert run.ended.outcome == "failed"


def test_resume_costs_its_own(claude: Claude) -> None:
    """A resumed run knows the session before, and costs what it took alone."""
    script = saying([Text("first"), Message([Text("second")], output_tokens=300)])
    with ModelServer(script) as server:
        first = claude.run(server, "One.")
        session_id = first.ended.session_id
        assert session_id is not None
        second = claude.run(server, "Two.", "--resume", session_id)

    assert (first.error, second.error) == (None, None)
    assert texts(second) == ["second"]
    assert session_id == second.ended.session_id
    assert "One." in server.requests[1].messages_text
    assert server.requests[1].messages_text.endswith("\nfirst\nTwo.")
    assert tokens(second) == (1000, 300)
    price = first.ended.cost_usd
    assert price is not None
    assert second.ended.cost_usd is not None
    # Output costs more than input, so thrice the output costs less than thrice, more than once.
    assert price < second.ended.cost_usd < 3 * price


def test_usage_limit_of_a_subscription(claude: Claude) -> None:
    """A usage limit is told by its own event, with the time at which it is lifted."""
    resets_at = int(time.time()) + 3600
    limit = ApiError(
        429,
        "rate_limit_error",
        "This request would exceed your account's rate limit.",
        {
            "anthropic-ratelimit-unified-status": "rejected",
            "anthropic-ratelimit-unified-reset": str(resets_at),
            "anthropic-ratelimit-unified-representative-claim": "five_hour",
        },
    )
    env = {"CLAUDE_CODE_OAUTH_TOKEN": "dummy-not-a-token", "ANTHROPIC_API_KEY": ""}
    with ModelServer(saying([limit])) as server:
        run = claude.run(server, "Go.", env=env)

    assert isinstance(run.error, QuotaExceeded)
    assert run.error.resets_at is not None
    assert resets_at == run.error.resets_at.timestamp()
    limits = [event for event in run.events if isinstance(event, RateLimited)]
    assert (limits[-1].status, limits[-1].limit) == ("rejected", "five_hour")
    assert run.ended.outcome == "quota"


def texts(run: Run) -> list[str]:
    return [event.text for event in run.events if isinstance(event, AgentMessage)]


def tokens(run: Run) -> tuple[int, int] | None:
    usage = run.ended.usage
    return (usage.input_tokens, usage.output_tokens) if usage else None
