"""The odds that recorded runs show."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.runs import RecordedRun, Runs
from cuggino.simulation import STRATEGIES, Odds, Share, recorded_odds, shares_of
from cuggino.simulation.trials import played, world_of
from cuggino.storage import Journal
from tests.runs.test_state_summary import AT, record

(BOTH,) = (one for one in STRATEGIES if one.name == "check and review")
GREEN = ev.CheckCommandOutput(iteration=1, exit_code=0)
RED = ev.CheckCommandOutput(iteration=1, exit_code=1)
COPY = ev.CheckCommandOutput(iteration=1, exit_code=0, on="copy")
FLAKY = ev.CheckFlaky(iteration=1)
NUDGED = ev.AgentNudged(no_marker=True)
DONE, MORE = ev.Done(content="all"), ev.Progress(content="some")
YES, NO = ev.Approved(content="yes"), ev.RequestChanges(content="no")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([GREEN, DONE, GREEN, YES], {"right": (1, 1)}, id="right at once"),
        pytest.param(
            [GREEN, MORE, RED, DONE, GREEN, YES],
            {"right": (1, 2), "admits": (1, 1)},
            id="right in the second session",
        ),
        pytest.param(
            [GREEN, DONE, GREEN, NO, GREEN, DONE, RED, NO],
            {"right": (1, 1), "breaks": (1, 1), "rejects_right": (1, 1), "admits": (0, 1)},
            id="broken by the second session",
        ),
        pytest.param(
            [GREEN, NUDGED, DONE, RED, COPY, FLAKY, YES],
            {"right": (1, 1), "forgets": (1, 1), "flakes": (1, 1)},
            id="forgotten report and flaky check",
        ),
        pytest.param([DONE, NO, DONE, YES], {}, id="no check"),
    ],
)
def test_shares(events: list[ev.Event], expected: dict[str, tuple[int, int]]) -> None:
    """Each share is counted from the checks, implementers and reviews in their order."""
    found = shares_of(events)
    shown = {name: tuple(share) for name, share in found.items() if name in expected}
    assert shown == expected
    if not expected:
        assert {*found} == {"forgets"}


@pytest.mark.real_agent
def test_estimates_return_to_the_odds() -> None:
    """From runs that were played with known odds, about these odds are estimated."""
    odds = Odds(right=0.5, breaks=0.2, admits=0.5, forgets=0.2, flakes=0.1, covers=1)
    hits, of = Counter[str](), Counter[str]()
    for seed in range(60):
        with world_of(odds, seed) as world:
            story = played(BOTH, world)
        for name, share in shares_of(story.events).items():
            hits[name] += share.hits
            of[name] += share.of
    for name in ("right", "forgets", "flakes", "rejects_right"):
        given = getattr(odds, name)
        spread = 3 * (given * (1 - given) / of[name]) ** 0.5
        # A turn that repairs all may break something, so that the check stays red.
        wanted = given * (1 - odds.breaks) if name == "right" else given
        assert hits[name] / of[name] == pytest.approx(wanted, abs=spread), name


def test_from_journals(tmp_path: Path) -> None:
    """Costs are means of a session; what no journal shows is the default, with the reason."""
    record(tmp_path, 1, "approved", planning=1.0, implementing=3.0)
    record(tmp_path, 2, "approved", planning=2.0, implementing=5.0)
    record(tmp_path, 3, "approved", kind="loop", implementing=90.0)
    found = recorded_odds(one for one in Runs(tmp_path).all() if isinstance(one, RecordedRun))
    known: dict[str, Any] = {one.name: one for one in found.estimates}
    assert found.runs == 2
    assert (found.odds.planning, found.odds.implementing) == (1.5, 4.0)
    assert known["planning"].basis == "2 sessions"
    assert not known["approves_wrong"].is_known
    assert known["approves_wrong"].basis.startswith("default: nothing records")
    assert found.odds.approves_wrong == Odds().approves_wrong


@pytest.mark.parametrize(
    ("hits", "of", "expected"), [(0, 1, 0.5), (1, 1, 4 / 6), (30, 95, 33 / 100)]
)
def test_few_observations(hits: int, of: int, expected: float, tmp_path: Path) -> None:
    """The default weighs as much as five observations: a few move it, many replace it."""
    record(tmp_path, 1, None)
    (path,) = (tmp_path / ".cuggino/journal").glob("*.jsonl")
    with closing(Journal.open(path)) as journal:
        for event in (GREEN, *[NO] * hits, *[YES] * (of - hits)):
            journal.append(event, at=AT)
    runs = (one for one in Runs(tmp_path).all() if isinstance(one, RecordedRun))
    found = recorded_odds(runs, Odds(rejects_right=0.6))
    assert found.odds.rejects_right == pytest.approx(expected)


def test_share_as_text() -> None:
    """A share names both of its numbers."""
    assert str(Share(1, 3)) == "1 of 3"
