"""Lines that come at once, emitted together."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuggino.sources.process import process_batches
from tests.sources.subscribers import Recorder, alive, children, descriptors, eventually, python

pytestmark = pytest.mark.usefixtures("enclosed")


def test_lines_that_come_at_once_can_come_together(tmp_path: Path) -> None:
    """Batches are the lines in their order, none empty: one batch for one write of the program."""
    code = "import os; os.write(1, b'a\\nb\\nc'); os.read(0, 1); os.write(1, b'd\\n\\ne')"
    argv = python(code)
    stream = process_batches(argv, cwd=tmp_path, env=dict(os.environ), stdin=b"x")
    recorder = Recorder(stream).wait()
    assert [b"a", b"b", b"cd", b"", b"e"] == [line for batch in recorder.items for line in batch]
    assert all(recorder.items)
    assert recorder.completed


def test_disposal_between_two_batches_ends_the_process(tmp_path: Path) -> None:
    """Disposed when a batch has come, nothing more comes, and process and pipes are gone."""
    before = descriptors()
    code = "import os, time; os.write(1, b'a\\nb\\n'); time.sleep(600)"
    recorder = Recorder(
        process_batches(python(code), cwd=tmp_path, env=dict(os.environ), stdin=b"")
    )
    recorder.wait_first()
    (child,) = children()
    recorder.subscription.dispose()
    assert [[b"a", b"b"]] == recorder.items
    assert not alive(child)
    assert eventually(lambda: before == descriptors())
