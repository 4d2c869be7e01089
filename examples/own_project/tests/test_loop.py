"""The loop in virtual time: real files, agents in memory, scripted check results."""

from collections.abc import Callable
from typing import Any

import pytest
from cuggino.errors import AgentFailed, QuotaExceeded
from cuggino.events import CheckCommandOutput, Event, QuotaLifted, SessionEnded
from cuggino.testing import CommandResult, Run, Say, Story, VirtualClock, Wait, Write
from cuggino.pytest_plugin import MakeRuntime
from red_green import RedGreen
from red_green.events import Attempt, Cut, Ended, TestsRestored

GREEN = CommandResult("1 passed", takes=2)
RED = CommandResult("1 failed: no slug", exit_code=1, takes=2)
TEST = "from slug import slug\n\n\ndef test_slug():\n    assert slug('A b') == 'a-b'\n"
PREPARED = [
    Write("tests/test_slug.py", TEST),
    Say("<PREPARED>A slug</PREPARED>"),
    SessionEnded(outcome="completed", cost_usd=0.5),
]
WORK = [Write("slug.py", "..."), Say("<DONE>Slugs</DONE>")]

Play = Callable[..., Story[Event]]


@pytest.fixture
def play(cuggino_runtime: MakeRuntime) -> Play:
    """Play the loop with these results of the check, in order, and these sessions."""

    def play(
        results: list[CommandResult], tester: list[Any], coder: list[Any], **options: Any
    ) -> Story[Event]:
        cousin = cuggino_runtime(
            {"planning": tester, "implementing": coder}, commands={"check": results}
        )
        loop = RedGreen(
            agent=cousin.agent, cwd=cousin.folder, check="check", shell=cousin.commands, **options
        )
        return cousin.play(loop.run("slugs"))

    return play


def test_red_then_green(play: Play) -> None:
    """A failing test, a session that makes it pass, then the end."""
    story = play([GREEN, RED, GREEN], [PREPARED], [WORK]).check()
    assert story.tags(CheckCommandOutput, Attempt, Ended) == [
        "CheckCommandOutput",
        "CheckCommandOutput",
        "Attempt",
        "CheckCommandOutput",
        "Ended",
    ]
    assert story.last == Ended(green=True, attempts=1, cost_usd=0.5), story


def test_a_project_that_fails_already(play: Play) -> None:
    """No session starts if the check fails from the start."""
    story = play([RED], [], []).check()
    assert story.tags() == ["CheckCommandOutput", "Ended"]
    assert story.one(Ended).reason == "the check fails before anything was done"


def test_a_test_that_proves_nothing(play: Play) -> None:
    """A test that passes at once is rewritten, once."""
    story = play([GREEN, GREEN, RED, GREEN], [PREPARED, PREPARED], [WORK]).check()
    assert story.one(Ended).green, story
    story = play([GREEN], [PREPARED, PREPARED], []).check()
    assert "proves nothing" in story.one(Ended).reason


def test_a_test_that_was_changed(play: Play) -> None:
    """A changed test is restored and fails."""
    cheat = [Write("tests/test_slug.py", "def test_slug(): pass"), *WORK]
    story = play([GREEN, RED, RED, GREEN], [PREPARED], [cheat, WORK]).check()
    assert story.one(TestsRestored).files == ("tests/test_slug.py",)
    assert story.last == Ended(green=True, attempts=2, cost_usd=0.5), story


def test_getting_nowhere(play: Play) -> None:
    """Two sessions in a row without a change end the loop."""
    idle = [Say("<DONE>I looked at it.</DONE>")]
    story = play([GREEN, RED], [PREPARED], [WORK, idle, idle], attempts=9).check()
    assert story.last == Ended(
        green=False, reason="2 sessions in a row changed nothing", attempts=3, cost_usd=0.5
    ), story


def test_all_attempts_are_made(play: Play) -> None:
    """Sessions with changes end the loop after the last attempt."""
    tries = [[Write("slug.py", f"# {n}"), Say("<DONE>x</DONE>")] for n in range(3)]
    story = play([GREEN, RED], [PREPARED], tries, attempts=3).check()
    assert story.one(Ended).reason == "the test still fails after 3 attempts"


def test_the_budget(play: Play) -> None:
    """After the budget is spent no further session starts."""
    dear = [*WORK, SessionEnded(outcome="completed", cost_usd=2.0)]
    story = play([GREEN, RED], [PREPARED], [dear], budget=2.0).check()
    assert story.last == Ended(
        green=False, reason="$2.50 of $2.00 are spent", attempts=1, cost_usd=2.5
    ), story


def test_a_question(play: Play) -> None:
    """A question of any agent ends the loop."""
    question = [Say("<SPEC_ISSUE>Which letters?</SPEC_ISSUE>")]
    by_the_tester = play([GREEN], [question], []).check()
    by_the_coder = play([GREEN, RED], [PREPARED], [question]).check()
    for story in (by_the_tester, by_the_coder):
        assert story.one(Ended).reason == "Which letters?", story


def test_the_policy_is_in_force(play: Play) -> None:
    """A session with endless commands is cut, and the next one continues."""
    wild = [Run("pytest")] * 4
    story = play([GREEN, RED, RED, GREEN], [PREPARED], [wild, WORK], commands=3).check()
    assert story.one(Cut).content == "more than 3 commands in one session"
    assert story.last == Ended(green=True, attempts=2, cost_usd=0.5), story


def test_a_usage_limit(play: Play, cuggino_clock: VirtualClock) -> None:
    """The loop waits five hours and resumes the same attempt."""
    limited = [Wait("10m"), QuotaExceeded("limit", resets_at=cuggino_clock.at("5h"))]
    story = play([GREEN, RED, GREEN], [PREPARED], [limited, WORK]).check()
    assert story.times(QuotaLifted) == [5 * 3600 + 60]
    assert story.last == Ended(green=True, attempts=1, cost_usd=0.5), story


def test_an_agent_that_breaks(play: Play) -> None:
    """A failure after three retries is the error of the loop."""
    broken = [AgentFailed("it crashed", reason="crash")]
    story = play([GREEN, RED], [PREPARED], [broken] * 4)
    assert isinstance(story.error, AgentFailed)
    assert "Ended" not in story.tags()
