"""Comparing a prompt with the recorded one: allowed differences, and reports of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuggino.testing import Marbles
from tests.agents.cassettes.recorded import HELLO, diverged, played, recorded

pytestmark = pytest.mark.usefixtures("nothing_is_left")

RUN = "0198c0de-0000-7000-8000-00000000000"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "c"


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("Ran 2 tests in 0.001s", "Ran 2 tests in 12.345s"),
        ("baseline 0123456789abcdef0123456789abcdef01234567", "baseline " + "89" * 20),
        ("commit 1a2b3c4 was made", "commit 9f8e7d6 was made"),
        (f"id {RUN}1", f"id {RUN}7"),
        ("at 2026-01-02T03:04:05Z", "at 2027-11-12T13:14:15.678+02:00"),
        ("at 2026-01-02 03:04", "at 2027-11-12 13:14"),
        ("at 03:04:05", "at 13:14:15"),
        ("see /tmp/tmpabc123/x.log", "see /tmp/tmpdef/deep/er/x.log"),
        ("in /tmp/tmpVt8zNRbT", "in /tmp/tmpXy3"),
        ("BUILD SUCCESSFUL in 5s", "BUILD SUCCESSFUL in 7s"),
        ("Time: 00:00.074, Memory", "Time: 00:01.211, Memory"),
        ("Total: 01:02 min", "Total: 00:59 min"),
        ("(12ms)", "(1s)"),
        ("===== 2 passed in 59.98s =====", "==== 2 passed in 61.02s (0:01:01) ===="),
        ("8.1 runs/s, 3.2 assertions/s", "9.9 runs/s, 4.0 assertions/s"),
        ("Randomized with seed 54321", "Randomized with seed 1"),
        ("v1.0-3-gabc1234", "v1.0-3-g9876fed"),
        ("at 0x7f00aa12bb", "at 0x7f33aa12cc"),
        ("on http://127.0.0.1:4711/", "on http://127.0.0.1:8080/"),
        ("a line \nb\n", "a line\nb"),
    ],
)
def test_allowed_differences_in_a_prompt(path: Path, tmp_path: Path, then: str, now: str) -> None:
    """Times, durations, ids, hashes and temporary folders may differ."""
    recorded(path, tmp_path, Marbles(), "|", prompt=then)
    assert [(0.0, "completed", None)] == played(path, tmp_path, prompt=now)
    assert "in line 1" in diverged(path, tmp_path, prompt=f"more {now}")


@pytest.mark.parametrize("which", ["prompt", "system_prompt"])
def test_another_prompt(path: Path, tmp_path: Path, which: str) -> None:
    """A changed prompt is reported with the session, the line and both texts; nothing is played."""
    told: dict[str, Any] = {which: "One.\nTwo is here.\nThree."}
    recorded(path, tmp_path, Marbles(a=HELLO), "a|", **told)
    message = diverged(path, tmp_path, **{which: "One.\nTwo was here.\nThree."})
    assert (
        f"the replay diverges: the {which.replace('_', ' ')} of session 1 (implementing 1) "
        "differs in line 2: recorded “Two is here.”, now “Two was here.”" == message
    )


def test_a_shorter_and_a_longer_prompt(path: Path, tmp_path: Path) -> None:
    """The report names the text that ended early."""
    recorded(path, tmp_path, Marbles(), "|", prompt="One.\nTwo.")
    assert "recorded “Two.”, now nothing more" in diverged(path, tmp_path, prompt="One.")
    longer = diverged(path, tmp_path, prompt="One.\nTwo.\nThree.")
    assert "in line 3: recorded nothing more, now “Three.”" in longer


def test_a_difference_far_in_a_line(path: Path, tmp_path: Path) -> None:
    """Only the surroundings of a difference in a long line are shown."""
    recorded(path, tmp_path, Marbles(), "|", prompt="x" * 5000 + "here" + "y" * 5000)
    message = diverged(path, tmp_path, prompt="x" * 5000 + "there" + "y" * 5000)
    assert "“…xxx" in message
    assert "here" in message
    assert len(message) < 600


def test_a_masked_secret_may_differ(path: Path, tmp_path: Path) -> None:
    """A masked secret matches other words; the text around it must be equal."""
    secret = "first-value-of-it"
    recorded(path, tmp_path, Marbles(), "|", prompt=f"Use {secret} now.\nGo.", env={"KEY": secret})
    assert [(0.0, "completed", None)] == played(
        path, tmp_path, prompt="Use any two words now.\nGo."
    )
    assert "line 1" in diverged(path, tmp_path, prompt="Use any two words later.\nGo.")
    assert "line 2" in diverged(path, tmp_path, prompt="Use any two words now.\nStop.")


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (
            "focus\n-----BEGIN RSA PRIVATE KEY----- is what to look for.\nTask: add tests.",
            "focus\ntotally different task: delete the database",
        ),
        ("in 5 files", "in 7 files"),
        ("Use a seed.", "Use no seed."),
    ],
)
def test_forbidden_differences_in_a_prompt(path: Path, tmp_path: Path, then: str, now: str) -> None:
    """Counts and words must be equal; prose about a key is not a key."""
    recorded(path, tmp_path, Marbles(), "|", prompt=then)
    assert "in line" in diverged(path, tmp_path, prompt=now)


def test_a_mask_matches_few_words(path: Path, tmp_path: Path) -> None:
    """A mask matches a few words, never a different task."""
    env = {"POSTGRES_PASSWORD": "postgres"}
    recorded(path, tmp_path, Marbles(), "|", prompt="Use postgres for it.", env=env)
    assert [(0.0, "completed", None)] == played(path, tmp_path, prompt="Use mysql for it.")
    message = diverged(path, tmp_path, prompt="Use mysql; then rm -rf everything. for it.")
    assert "in line 1" in message
