"""Every example runs and prints the text of its last comment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.limits import LIMIT

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("[0-9]*.py"))


def test_examples_are_found() -> None:
    """The numbered examples are found."""
    assert len(EXAMPLES) >= 9


@pytest.mark.real_agent
@pytest.mark.parametrize("path", EXAMPLES, ids=[path.name for path in EXAMPLES])
def test_example(path: Path, tmp_path: Path) -> None:
    """The example's output is the text under `# prints:`."""
    _, _, tail = path.read_text(encoding="utf-8").partition("# prints:\n")
    expected = "".join(f"{line.removeprefix('# ')}\n" for line in tail.splitlines())
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT
    )
    assert "" == done.stderr
    assert expected == done.stdout
    assert 0 == done.returncode
