"""`ClaudeAgent` with misbehaving programs: the reported errors, and cleanup."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import cuggino
from cuggino.agents import SpawnOptions
from cuggino.agents.claude import ClaudeAgent
from cuggino.errors import AgentFailed, AgentNotFound, LlmSessionError, StorageError
from cuggino.events import AgentMessage, LlmAgentEvent, SessionEnded
from cuggino.testing import no_leaks
from tests.agents.claude.fake_claude import fake_claude
from tests.limits import LIMIT

MIB = 1024 * 1024


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check that the test leaves no process, thread or file behind, nor a temporary file."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with no_leaks():
        yield
    assert [] == list(temporary.iterdir())


class Session:
    """A finished session: its events and outcome."""

    def __init__(self, folder: Path, body: str) -> None:
        self.events: list[LlmAgentEvent] = []
        self.error: Exception | None = None
        try:
            cuggino.run(spawn(folder, body), self.events.append)
        except (LlmSessionError, AgentNotFound) as error:
            self.error = error

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, AgentMessage)]

    @property
    def ended(self) -> SessionEnded:
        """Return the last event, the only one of its kind."""
        assert ["SessionEnded"] == [e.tag for e in self.events if e.tag == "SessionEnded"]
        assert isinstance(self.events[-1], SessionEnded)
        return self.events[-1]

    @property
    def crash(self) -> str:
        """Return the message of a crashed program."""
        assert isinstance(self.error, AgentFailed)
        assert "crash" == self.error.reason
        assert "failed" == self.ended.outcome
        return self.error.message


def spawn(folder: Path, body: str) -> Any:
    """Start a session with a system prompt, so that there is a file to clean up."""
    agent = ClaudeAgent(path=fake_claude(folder, body))
    return agent.spawn(SpawnOptions(prompt="Go.", cwd=folder, system_prompt="You are."))


def test_noise_between_the_lines(tmp_path: Path) -> None:
    """Lines that are not JSON objects, truncated JSON and empty lines are skipped."""
    body = """
    print("Warning: something")
    say("one")
    print('{"type": "assistant", "message": {"content": [{"type": "te')
    print()
    print("[1, 2]")
    print("null")
    print("{" * 100_000)
    print('{"type": "never heard of", "message": 7}')
    print('{"type": "assistant", "message": {"content": "a text"}}')
    say("two")
    line(**RESULT)
    print("Goodbye")
    """
    session = Session(tmp_path, body)
    assert session.error is None
    assert ["one", "two"] == [text for text in session.texts if text in ("one", "two")]
    assert ("completed", 0.5) == (session.ended.outcome, session.ended.cost_usd)


def test_invalid_utf8(tmp_path: Path) -> None:
    """Invalid UTF-8 becomes U+FFFD, and the line still counts."""
    body = """
    sys.stdout.buffer.write(b'\\xff\\xfe\\x00noise\\n')
    sys.stdout.buffer.write(b'{"type": "assistant", "message": {"id": "m", "content": '
                            b'[{"type": "text", "text": "a\\xc3b"}]}}\\n')
    sys.stdout.flush()
    line(**RESULT)
    """
    session = Session(tmp_path, body)
    assert session.error is None
    assert ["a\ufffdb"] == session.texts


def test_an_unterminated_last_line_counts(tmp_path: Path) -> None:
    """A result without a trailing newline is a result."""
    session = Session(tmp_path, "sys.stdout.write(json.dumps(RESULT))")
    assert session.error is None
    assert 0.5 == session.ended.cost_usd


def test_a_line_of_twenty_megabytes(tmp_path: Path) -> None:
    """A very long line is read completely."""
    session = Session(tmp_path, f"say('x' * {20 * MIB}); line(**RESULT)")
    assert session.error is None
    assert [20 * MIB] == [len(text) for text in session.texts]


def test_a_line_above_the_limit(tmp_path: Path) -> None:
    """A line above 64 MiB is a crash, and the program is terminated."""
    body = """
    say("before")
    while True:
        sys.stdout.write("x" * (1 << 20))
    """
    session = Session(tmp_path, body)
    assert ["before"] == session.texts
    assert "line" in session.crash


def test_an_exit_code_without_a_result(tmp_path: Path) -> None:
    """Exit code 1 without a result is a crash, reported with the end of stderr."""
    body = "say('so far'); sys.stderr.write('Segmentation something\\n'); sys.exit(1)"
    session = Session(tmp_path, body)
    assert ["so far"] == session.texts
    assert "claude exited with code 1: Segmentation something" == session.crash
    assert session.ended.cost_usd is None


def test_a_result_before_an_exit_code(tmp_path: Path) -> None:
    """A successful result followed by exit code 1 still reports its cost."""
    session = Session(tmp_path, "line(**RESULT); sys.exit(1)")
    assert 0.5 == session.ended.cost_usd


def test_a_program_that_kills_itself(tmp_path: Path) -> None:
    """The message names the signal that terminated the program."""
    session = Session(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)")
    assert "claude was ended by SIGKILL" == session.crash


def test_a_silent_program(tmp_path: Path) -> None:
    """A program that prints nothing and exits with 0 has failed."""
    session = Session(tmp_path, "pass")
    assert "claude ended without a result" == session.crash
    assert ["SessionEnded"] == [event.tag for event in session.events]


def test_a_program_that_closes_its_output_and_stays(tmp_path: Path) -> None:
    """The session ends with the process, not with its output."""
    body = """
    line(**RESULT)
    os.close(1)
    os.close(2)
    time.sleep(0.5)  # what it stays for is measured below
    os._exit(0)
    """
    session = Session(tmp_path, body)
    assert session.error is None
    assert 0.5 <= (session.ended.duration or 0)


@pytest.mark.real_agent
def test_a_flood_in_flat_memory(tmp_path: Path) -> None:
    """200,000 lines take constant memory; keepalives come only without other events."""
    count = 200_000
    body = f"""
    ping = '{{"type":"stream_event","event":{{"x":"' + "y" * 200 + '"}}}}'
    text = json.dumps({{"type": "assistant", "message": {{"id": "m", "content": [
        {{"type": "text", "text": "z" * 200}}]}}}})
    for number in range({count}):
        print(text if number % 10 == 0 else ping)
    line(**RESULT)
    """
    me = psutil.Process()
    seen: dict[str, int] = {}
    sizes: list[int] = []

    def note(event: LlmAgentEvent) -> None:
        seen[event.tag] = seen.get(event.tag, 0) + 1
        if seen.get("AgentMessage", 0) % 1000 == 0:
            sizes.append(me.memory_info().rss)

    started = time.monotonic()
    cuggino.run(spawn(tmp_path, body), note)
    growth = (max(sizes) - sizes[0]) / MIB
    print(f"{count} lines in {time.monotonic() - started:.1f} s, memory grew by {growth:.1f} MiB")
    pings = seen.pop("PingEvent", 0)
    assert {"AgentMessage": 20_000, "SessionEnded": 1} == seen
    assert pings <= 180_000
    assert growth < 20


def test_a_program_that_ignores_signals(tmp_path: Path) -> None:
    """Disposal terminates even a program that ignores SIGINT and SIGTERM."""
    body = """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    say(str(os.getpid()))
    time.sleep(600)  # it has to be ended
    """
    said: list[str] = []
    started = threading.Event()

    def note(event: LlmAgentEvent) -> None:
        if isinstance(event, AgentMessage):
            said.append(event.text)
            started.set()

    subscription = spawn(tmp_path, body).subscribe(note)
    assert started.wait(LIMIT)
    subscription.dispose()
    assert not psutil.pid_exists(int(said[0]))


def test_a_subscriber_that_fails(tmp_path: Path) -> None:
    """An exception in `on_next` terminates the program and reaches the caller."""
    body = "say(str(os.getpid())); time.sleep(600)"
    said: list[str] = []

    def fail(event: LlmAgentEvent) -> None:
        assert isinstance(event, AgentMessage)
        said.append(event.text)
        raise LookupError("in the subscriber")

    with pytest.raises(LookupError, match="in the subscriber"):
        cuggino.run(spawn(tmp_path, body), fail)
    assert not psutil.pid_exists(int(said[0]))


def test_a_missing_folder(tmp_path: Path) -> None:
    """A missing working directory is reported without starting a session."""
    events: list[LlmAgentEvent] = []
    agent = ClaudeAgent(path=fake_claude(tmp_path, ""))
    options = SpawnOptions(prompt="Go.", cwd=tmp_path / "gone", system_prompt="You are.")
    with pytest.raises(AgentNotFound, match="gone"):
        cuggino.run(agent.spawn(options), events.append)
    assert [] == events


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the system prompt cannot be written, the session fails and its file is removed."""

    def full(handle: int, *_args: object, **_kwargs: object) -> Any:
        os.close(handle)
        raise OSError(28, "No space left on device")

    agent = ClaudeAgent(path=fake_claude(tmp_path, "line(**RESULT)"))
    stream = agent.spawn(SpawnOptions(prompt="", cwd=tmp_path, system_prompt="You are."))
    with monkeypatch.context() as patched, pytest.raises(StorageError, match="No space left"):
        patched.setattr("cuggino.agents.base.program.os.fdopen", full)
        cuggino.run(stream)


def test_no_folder_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a folder for the system prompt, the session fails with advice."""
    agent = ClaudeAgent(path=fake_claude(tmp_path, "tell(1)"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    options = SpawnOptions(prompt="p", cwd=tmp_path, system_prompt="s")
    with pytest.raises(StorageError, match="cannot write a temporary file") as failure:
        cuggino.run(agent.spawn(options))
    assert failure.value.hint is not None
    assert "TMPDIR" in failure.value.hint
