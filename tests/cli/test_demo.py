"""`cuggino demo`, interrupted and resumed by the printed command."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.limits import LIMIT


@pytest.mark.real_agent  # its agents take ten seconds
def test_resumed_as_it_says(tmp_path: Path) -> None:
    """The summary of an interrupted demo names a command that goes on in the demo's folder."""
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    folder = tmp_path / "the demo"
    demo = subprocess.Popen(
        ["cuggino", "demo", "--directory", str(folder)],
        cwd=tmp_path,
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    )
    with demo:
        assert demo.stdout is not None
        while "[Implementing] Starting" not in demo.stdout.readline():
            assert demo.poll() is None
        demo.send_signal(signal.SIGINT)
        told = demo.stdout.read()
        assert 130 == demo.wait(timeout=LIMIT)
    hint = re.search(r"`(cd .* && cuggino run --resume)` continues", told)
    assert hint is not None, told
    again = subprocess.run(
        ["sh", "-c", hint[1]], cwd=tmp_path, env=env, capture_output=True, timeout=LIMIT
    )
    assert (0, b"") == (again.returncode, again.stderr)
    log = ["git", "-C", str(folder), "log", "--format=%s"]
    assert 4 == len(subprocess.check_output(log, text=True).splitlines())
