"""Subscribers of a Claude Agent SDK session: threads and disposal."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from reactivex.scheduler import EventLoopScheduler

from tests.agents.claude_sdk.test_stream import GUARDED, nothing_is_left, session
from tests.limits import LIMIT
from tests.sources.subscribers import Recorder, children, eventually

__all__ = ["nothing_is_left"]


def test_the_scheduler(tmp_path: Path) -> None:
    """All events are emitted on the given scheduler."""
    lane = EventLoopScheduler(lambda target: threading.Thread(target=target, name="lane"))
    done = session(tmp_path, "begin(); say('here'); line(**RESULT)", scheduler=lane).wait()
    threads = [thread.name for thread in done.threads]
    lane.dispose()
    assert ["lane"] == threads


@pytest.mark.parametrize("tag", ["GuardDenied", "ToolResult", "SystemMessage"])
def test_a_subscriber_that_fails(tmp_path: Path, tag: str) -> None:
    """An exception in a subscriber ends the session and reaches the caller."""
    failure = ValueError("mine")

    def fail(event: Any) -> None:
        if event.tag == tag:
            raise failure

    done = session(tmp_path, GUARDED + "time.sleep(600)", guarded=True, on_next=fail).wait()
    assert failure is done.error
    assert set() == children()


def test_a_subscriber_that_disposes(tmp_path: Path) -> None:
    """A subscriber that disposes during an event receives no more."""
    body = "begin(); say('one'); say('two'); time.sleep(600)"
    held: list[Recorder] = []
    ready = threading.Event()

    def stop(_event: Any) -> None:
        ready.wait(LIMIT)
        held[0].subscription.dispose()

    held.append(session(tmp_path, body, on_next=stop))
    ready.set()
    held[0].wait_first()
    assert eventually(lambda: not children())
    assert (["one"], None, False) == (
        [event.text for event in held[0].items],
        held[0].error,
        held[0].completed,
    )
