"""Threads that read processes are used again."""

from __future__ import annotations

import os
import threading

import pytest

from cuggino.sources.reader_threads import IDLE_READER, ReaderThreads
from tests.limits import LIMIT
from tests.sources.subscribers import eventually


def test_a_thread_is_used_again() -> None:
    """Work after work runs on one thread, named by its work while it lasts."""
    readers = ReaderThreads()
    seen: list[tuple[int, str]] = []

    def look() -> None:
        seen.append((threading.get_ident(), threading.current_thread().name))

    for name in ("first", "second"):
        thread = readers.run(look, name=name)
        assert eventually(lambda: thread.name == IDLE_READER)
    assert ["first", "second"] == [name for _, name in seen]
    assert 1 == len({ident for ident, _ in seen})


def test_works_at_the_same_time_have_threads_of_their_own() -> None:
    """Of many threads only a few are kept; the others end."""
    readers = ReaderThreads()
    together = threading.Barrier(6)
    threads = [readers.run(lambda: _meet(together), name="work") for _ in range(5)]
    _meet(together)
    assert eventually(lambda: sum(thread.is_alive() for thread in threads) == 2)
    assert {IDLE_READER} == {thread.name for thread in threads if thread.is_alive()}


def _meet(together: threading.Barrier) -> None:
    together.wait(LIMIT)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_copy_starts_threads_of_its_own() -> None:
    """A fork copies no threads, so the copy waits for none of them."""
    readers = ReaderThreads()
    thread = readers.run(lambda: None, name="work")
    assert eventually(lambda: thread.name == IDLE_READER)
    pid = os.fork()
    if pid == 0:
        done = threading.Event()
        readers.run(done.set, name="copy")
        os._exit(0 if done.wait(LIMIT) else 1)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
