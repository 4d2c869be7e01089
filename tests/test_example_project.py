"""The example project is self-contained: copied elsewhere, its tests pass and its types check."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.limits import LIMIT

pytestmark = pytest.mark.real_agent  # many processes for a long time: with the second command

PROJECT = Path(__file__).parents[1] / "examples" / "own_project"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Copy the project out of reach of this repository's settings."""
    unwanted = shutil.ignore_patterns(".*", "__pycache__")
    return Path(shutil.copytree(PROJECT, tmp_path / "own_project", ignore=unwanted))


def ran(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a Python module in the project, with no pytest plugin but cuggino's."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": ""}
    # It would close the folder of this run's tests to other users.
    env["PYTEST_DEBUG_TEMPROOT"] = str(project.parent)
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=project,
        env=env,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )


def test_project_tests_pass(project: Path) -> None:
    """All tests pass with the fixtures of the plugin."""
    done = ran(project, "pytest", "-q", "-p", "cuggino.pytest_plugin", "-p", "no:cacheprovider")
    assert re.search(r"^1[5-9] passed in", done.stdout, re.MULTILINE), done.stdout + done.stderr
    assert 0 == done.returncode


DEFECTS = [
    ("policy.py", "<= commands", "< commands", "but saw   -cr-w-m-(X|)"),
    ("loop.py", "            if restored:\n", "            if False:\n", "there are 0 of TestsRes"),
    ("loop.py", "wait_for_quota(gate=self._gate)", "ops.map(lambda e: e)", "QuotaExceeded"),
    ("loop.py", "== self.loop.patience", "== -1", "the agent in memory has no session 4"),
]
"""Changes of the source, each with a part of the failure it causes."""


def test_defects_fail_the_tests(project: Path) -> None:
    """Each defect in the loop or the policy fails a test with a message that explains it."""
    for file, before, broken, _ in DEFECTS:
        path = project / "src" / "red_green" / file
        text = path.read_text(encoding="utf-8")
        assert before in text
        path.write_text(text.replace(before, broken), encoding="utf-8")
    words = ("-q", "-p", "cuggino.pytest_plugin", "-p", "no:cacheprovider")
    done = ran(project, "pytest", *words, "--deselect", "tests/test_for_real.py")
    assert 1 == done.returncode
    assert [] == [message for *_, message in DEFECTS if message not in done.stdout], done.stdout


@pytest.mark.real_agent
@pytest.mark.skipif(find_spec("mypy") is None, reason="mypy is not installed")
def test_project_types(project: Path) -> None:
    """mypy passes with the project's own strict configuration."""
    done = ran(project, "mypy", "--no-error-summary")
    assert ("", 0) == (done.stdout, done.returncode), done.stderr


def test_project_readme_links() -> None:
    """Every link into the project has a target."""
    links = re.findall(r"\]\((?!https?:)([^)]+)\)", (PROJECT / "README.md").read_text())
    assert len(links) >= 6
    assert [] == [link for link in links if not (PROJECT / link).is_file()]
