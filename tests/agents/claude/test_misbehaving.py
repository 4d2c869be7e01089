"""`ClaudeAgent` with programs that do not behave: what is told, and that nothing is left."""

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

MIB = 1024 * 1024


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test leaves a process, thread or file; also not in the folder for temporary files."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with no_leaks():
        yield
    assert [] == list(temporary.iterdir())


class Session:
    """What a session with the program said, and how it ended."""

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
        """The last event, which is the only one of its kind."""
        assert ["SessionEnded"] == [e.tag for e in self.events if e.tag == "SessionEnded"]
        assert isinstance(self.events[-1], SessionEnded)
        return self.events[-1]

    @property
    def crash(self) -> str:
        """What is told of a program that has crashed."""
        assert isinstance(self.error, AgentFailed)
        assert "crash" == self.error.reason
        assert "failed" == self.ended.outcome
        return self.error.message


def spawn(folder: Path, body: str) -> Any:
    """A session with a system prompt, so that there is a file to be left behind."""
    agent = ClaudeAgent(path=fake_claude(folder, body))
    return agent.spawn(SpawnOptions(prompt="Go.", cwd=folder, system_prompt="You are."))


def test_noise_between_the_lines(tmp_path: Path) -> None:
    """Lines that are no JSON, cut JSON, other JSON and empty lines are skipped."""
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
    """Bytes that are no UTF-8 become U+FFFD, and the line still counts."""
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
    """A result without a newline behind it is a result."""
    session = Session(tmp_path, "sys.stdout.write(json.dumps(RESULT))")
    assert session.error is None
    assert 0.5 == session.ended.cost_usd


def test_a_line_of_twenty_megabytes(tmp_path: Path) -> None:
    """A very long line arrives whole."""
    session = Session(tmp_path, f"say('x' * {20 * MIB}); line(**RESULT)")
    assert session.error is None
    assert [20 * MIB] == [len(text) for text in session.texts]


def test_a_line_without_an_end(tmp_path: Path) -> None:
    """A line above 64 MiB is a crash, and the program does not go on."""
    body = """
    say("before")
    while True:
        sys.stdout.write("x" * (1 << 20))
    """
    session = Session(tmp_path, body)
    assert ["before"] == session.texts
    assert "line" in session.crash


def test_an_exit_code_without_a_result(tmp_path: Path) -> None:
    """A program that ends with 1 and no result has crashed, and its last words are told."""
    body = "say('so far'); sys.stderr.write('Segmentation something\\n'); sys.exit(1)"
    session = Session(tmp_path, body)
    assert ["so far"] == session.texts
    assert "claude exited with code 1: Segmentation something" == session.crash
    assert session.ended.cost_usd is None


def test_a_result_before_an_exit_code(tmp_path: Path) -> None:
    """A successful result whose program then exits with 1 tells its cost all the same."""
    session = Session(tmp_path, "line(**RESULT); sys.exit(1)")
    assert 0.5 == session.ended.cost_usd


def test_a_program_that_kills_itself(tmp_path: Path) -> None:
    """The signal that ended the program is named."""
    session = Session(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)")
    assert "claude was ended by SIGKILL" == session.crash


def test_silence_then_the_end(tmp_path: Path) -> None:
    """A program that says nothing and exits with 0 has not done its work."""
    session = Session(tmp_path, "pass")
    assert "claude ended without a result" == session.crash
    assert ["SessionEnded"] == [event.tag for event in session.events]


def test_a_program_that_closes_its_output_and_stays(tmp_path: Path) -> None:
    """The session ends with the program, not with its output."""
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


def test_a_flood_in_flat_memory(tmp_path: Path) -> None:
    """200,000 lines arrive, signs of life that come at once as one; memory does not grow."""
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
    pings = seen.pop("PingEvent")
    assert {"AgentMessage": 20_000, "SessionEnded": 1} == seen
    assert 20_000 <= pings <= 180_000
    assert growth < 20


def test_a_program_that_ignores_signals(tmp_path: Path) -> None:
    """Disposal ends also a program that ignores SIGINT and SIGTERM."""
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
    assert started.wait(20)
    since = time.monotonic()
    subscription.dispose()
    assert time.monotonic() - since < 10
    assert not psutil.pid_exists(int(said[0]))


def test_a_subscriber_that_fails(tmp_path: Path) -> None:
    """An exception in `on_next` ends the program and reaches the caller."""
    body = "say(str(os.getpid())); time.sleep(600)"
    said: list[str] = []

    def fail(event: LlmAgentEvent) -> None:
        assert isinstance(event, AgentMessage)
        said.append(event.text)
        raise LookupError("in the subscriber")

    with pytest.raises(LookupError, match="in the subscriber"):
        cuggino.run(spawn(tmp_path, body), fail)
    assert not psutil.pid_exists(int(said[0]))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """A session in a missing folder is told as such, without a session."""
    events: list[LlmAgentEvent] = []
    agent = ClaudeAgent(path=fake_claude(tmp_path, ""))
    options = SpawnOptions(prompt="Go.", cwd=tmp_path / "gone", system_prompt="You are.")
    with pytest.raises(AgentNotFound, match="gone"):
        cuggino.run(agent.spawn(options), events.append)
    assert [] == events


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the system prompt cannot be written the session fails and its file is removed."""

    def full(handle: int, *_args: object, **_kwargs: object) -> Any:
        os.close(handle)
        raise OSError(28, "No space left on device")

    agent = ClaudeAgent(path=fake_claude(tmp_path, "line(**RESULT)"))
    stream = agent.spawn(SpawnOptions(prompt="", cwd=tmp_path, system_prompt="You are."))
    with monkeypatch.context() as patched, pytest.raises(StorageError, match="No space left"):
        patched.setattr("cuggino.agents.claude.agent.os.fdopen", full)
        cuggino.run(stream)


def test_no_folder_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a place for the system prompt the session fails with what to look at."""
    agent = ClaudeAgent(path=fake_claude(tmp_path, "tell(1)"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    options = SpawnOptions(prompt="p", cwd=tmp_path, system_prompt="s")
    with pytest.raises(StorageError, match="no temporary file for what") as failure:
        cuggino.run(agent.spawn(options))
    assert failure.value.hint is not None
    assert "TMPDIR" in failure.value.hint
