"""Keeping the machine awake: when, by what, and that nothing is left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from reactivex import operators as ops, timer

import cuggino
from cuggino import Runtime, events as ev
from cuggino.config import Config
from cuggino.doctor import CheckResult
from cuggino.testing import InMemoryAgent, Marbles, Say, no_leaks
from cuggino.wakefulness import awake, keeping_awake, sleep_prevention
from tests.cli.looking import look
from tests.limits import LIMIT


def drawn() -> Marbles:
    """Return marbles for what a loop emits."""
    return Marbles(
        m=ev.AgentMessage(text="hello", message_id="m"),
        P=ev.WatchProcessingItem(filename="a.md"),
        B=ev.WatchBacklogWaiting(),
        S=ev.WatchSpecIssueWaiting(),
        A=ev.WatchAuditStarted(),
        E=ev.WatchAuditEnded(),
        I=ev.WatchAuditInterrupted(),
        p=ev.RunPaused(),
        h=ev.RunPaused(until=datetime(2026, 1, 1, tzinfo=UTC)),
        c=ev.PauseEnded(seconds=1),
        error=ValueError(),
    )


@pytest.mark.skipif(sys.platform == "darwin", reason="only where there is D-Bus")
def test_nothing_is_imported_with_the_request() -> None:
    """It is made when a run has worked for a while, when its packages may have been replaced."""
    look = "import sys, cuggino.wakefulness; print('jeepney' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, check=True)
    assert b"True" == done.stdout.strip()


class TestWhen:
    @pytest.mark.parametrize(
        ("source", "held"),
        [
            ("-m--m--|", ["--^----!"]),
            ("-m--m--#", ["--^----!"]),
            ("-m|", []),
            ("B----P--m---B----P-|", ["-------^----!"]),
            ("m---S----P---m-|", ["--^-!", "-----------^---!"]),
            ("B---A----E---|", ["------^--!"]),
            ("B---A----(IP)---|", ["------^--!", "-----------^-!"]),
            ("----p----c----|", ["--^-!", "-----------^--!"]),
            ("---P---P---|", ["--^--------!"]),
            ("B---B---|", []),
            ("B---h----c----|", ["------^-------!"]),
        ],
    )
    def test_working(self, source: str, held: list[str]) -> None:
        """The machine is kept awake while something works, after a delay, and not in between."""
        t = drawn()
        awake = t.cold("-" * 30)
        t.check(t.cold(source).pipe(keeping_awake(awake, delay=2)), source)
        t.check_subscriptions(awake, *held)

    def test_disposal(self) -> None:
        """Disposal releases the source and the machine."""
        t = drawn()
        source, awake = t.cold("-m------"), t.cold("-" * 30)
        t.check(source.pipe(keeping_awake(awake, delay=2)), "-m---", dispose_at=5)
        t.check_subscriptions(source, "^----!")
        t.check_subscriptions(awake, "--^--!")


def named() -> list[str]:
    """Return the helper threads that keep the machine awake."""
    return [each.name for each in threading.enumerate() if each.name == "cuggino-awake"]


_SERVICE = """
import sys
from jeepney import MessageType, new_method_return
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import Proxy, open_dbus_connection
from jeepney.low_level import HeaderFields

connection = open_dbus_connection(bus="SESSION")
Proxy(message_bus, connection).RequestName("org.freedesktop.PowerManagement")
print("ready", flush=True)
while True:
    message = connection.receive()
    if message.header.message_type is MessageType.method_call:
        member = message.header.fields[HeaderFields.member]
        with open(sys.argv[1], "a") as log:
            log.write(member + "\\n")
        reply = ("u", (7,)) if member == "Inhibit" else (None, ())
        connection.send(new_method_return(message, *reply))
"""
"""A power manager that records its calls."""

_AWAKE = """
import os, sys
from reactivex import operators as ops, timer
import cuggino
from cuggino.wakefulness import awake, sleep_prevention

print(sleep_prevention())
log = sys.argv[1]
held = timer(0, 0.02).pipe(ops.filter(lambda _: open(log).read().count("Inhibit") >= 3))
cuggino.run(awake().pipe(ops.take_until(held)))
"""
"""Keep the machine awake for a moment, twice."""


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """Provide a session bus with a power manager: its record of calls, and the environment."""
    daemon = shutil.which("dbus-daemon")
    if daemon is None:
        pytest.skip("needs dbus-daemon")
    started = [daemon, "--session", "--nofork", "--print-address"]
    with subprocess.Popen(started, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        env = {**os.environ, "DBUS_SESSION_BUS_ADDRESS": address, "WAKEPY_FAKE_SUCCESS": ""}
        log = tmp_path / "calls"
        service = [sys.executable, "-c", _SERVICE, str(log)]
        with subprocess.Popen(service, env=env, stdout=subprocess.PIPE, text=True) as manager:
            assert manager.stdout is not None
            assert manager.stdout.readline() == "ready\n"
            yield log, env
            manager.kill()
        process.terminate()  # it then removes its socket


class TestSystem:
    @pytest.mark.parametrize("fake", ["1", ""])
    def test_nothing_is_left(self, fake: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """No thread is left behind, whether the system can be kept awake or not."""
        monkeypatch.setenv("WAKEPY_FAKE_SUCCESS", fake)
        monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
        with no_leaks():
            assert cuggino.run(awake().pipe(ops.take_until(timer(0.2)))) is None
        assert [] == named()

    @pytest.mark.skipif(sys.platform != "linux", reason="D-Bus")
    def test_real_bus(self, bus: tuple[Path, dict[str, str]]) -> None:
        """A power manager on a real bus is inhibited, and released at the end."""
        log, env = bus
        argv = [sys.executable, "-c", _AWAKE, str(log)]
        done = subprocess.run(
            argv, env=env, capture_output=True, text=True, timeout=LIMIT, check=True
        )
        assert "org.freedesktop.PowerManagement\n" == done.stdout
        assert ["Inhibit", "UnInhibit"] * 2 == log.read_text().split()

    def test_doctor(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The check names what keeps the machine awake, or notes that nothing does."""
        monkeypatch.setenv("WAKEPY_FAKE_SUCCESS", "1")
        (found,) = look("sleep", Path())
        assert CheckResult("ok", f"sleep: none while a loop works ({sleep_prevention()})") == found
        monkeypatch.setenv("WAKEPY_FAKE_SUCCESS", "")
        monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
        if sys.platform == "linux":
            (found,) = look("sleep", Path())
            assert "note" == found.status
            assert "sleep: nothing here keeps the machine awake" == found.what
        assert [] == look("sleep", Path(), allow_sleep=True)


class TestLoops:
    @pytest.mark.parametrize("allowed", [False, True])
    def test_run(self, allowed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A loop keeps the machine awake unless it may sleep."""
        monkeypatch.setattr(
            "cuggino.runtime.keeping_awake",
            lambda _awake: ops.do_action(lambda _: (tmp_path / "kept").touch()),
        )
        (tmp_path / ".specs").mkdir()
        (tmp_path / ".specs" / "a.md").write_text("# A\n")
        agent = InMemoryAgent({"planning": [[Say("<SPEC_ISSUE>How?</SPEC_ISSUE>")]]})
        config = Config(allow_sleep=allowed, guard="off", sandbox="off")
        runtime = Runtime.live(cwd=tmp_path, config=config, agent=agent)
        assert isinstance(cuggino.run(runtime.run(focus="x")), ev.LoopSpecIssue)
        assert allowed is not (tmp_path / "kept").exists()
