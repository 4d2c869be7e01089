"""Claims: two machines never work on one issue, in any order of their calls."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings, strategies as st

from cuggino.errors import ForgeRefused, ForgeUnreachable
from cuggino.testing import InMemoryForge, VirtualClock
from tests.forge.desks import ITEM, Machine, machine

MOMENTS = st.floats(min_value=0, max_value=4).map(lambda one: round(one, 1))


def two(folder: Path, *, same_login: bool = False, latency: float = 1) -> tuple[Machine, Machine]:
    """Return two machines that have imported the same issue."""
    forge = InMemoryForge(VirtualClock(), latency=latency, name="one")
    forge.person("ada").opens(7, "Add a page", labels=("agent",))
    other = forge.login("one" if same_login else "two")
    machines = Machine(folder / "1", forge, every=60.0), Machine(folder / "2", other, every=60.0)
    for one in machines:
        one.imported()
    return machines


@pytest.mark.real_agent
@given(begin=MOMENTS, kill=MOMENTS, late=MOMENTS, same_login=st.booleans(), lost=st.booleans())
@example(begin=0, kill=0, late=0, same_login=False, lost=False)
@example(begin=0.5, kill=1.0, late=0.5, same_login=True, lost=True)
@settings(max_examples=2 * settings().max_examples, deadline=None)
def test_every_interleaving(
    begin: float, kill: float, late: float, same_login: bool, lost: bool
) -> None:
    """One of two machines works, whoever begins when, also if one is killed and starts again."""
    with TemporaryDirectory() as folder:
        first, second = two(Path(folder), same_login=same_login)
        if lost:
            first.forge.fail("add_comment", ForgeUnreachable("reset"), late=True)
        first.asks()
        first.passes(begin)
        second.asks()
        first.passes(kill)
        first.restart()
        first.passes(late)
        first.asks()
        first.passes(50)
        for one in (first, second):
            assert not one.errors
            one.restart()
            if not one.desk.backlog.held(ITEM):
                one.asks()
        first.passes(100)
        last = {name: one.claims[-1][1] for name, one in (("1", first), ("2", second))}
        assert [False, True] == sorted(last.values())
        loser = first if not last["1"] else second
        assert "is claimed by " in loser.desk.backlog.held(ITEM)
        assert 1 == len(first.bodies())
        assert "An agent is working on this." in first.body()


def test_a_claim_is_asked_once_per_process(tmp_path: Path) -> None:
    """Later attempts of a claimed item do not call the forge."""
    here = machine(tmp_path)
    here.begins()
    before = len(here.forge.calls)
    here.begins()
    assert [(ITEM, True), (ITEM, True)] == here.claims
    assert before == len(here.forge.calls)


def test_nothing_is_written_if_another_was_first(tmp_path: Path) -> None:
    """The item is held, with the page of the claim."""
    first, second = two(tmp_path)
    first.begins()
    second.begins()
    assert [(ITEM, False)] == second.claims
    assert 1 == len(first.forge.writes())
    reason = second.desk.backlog.held(ITEM)
    assert "is claimed by one at https://github.com/owner/repo/issues/7#" in reason
    assert not second.desk.backlog.may_begin(ITEM)


def test_a_claim_that_somebody_removes_frees_the_item(tmp_path: Path) -> None:
    """The other machine may begin at its next look, and the first one is held then."""
    first, second = two(tmp_path)
    first.begins()
    second.begins()
    first.kill()
    first.forge.person("ada").deletes_comment(7, first.forge.comments_now(7)[0].id)
    second.passes(70)
    assert second.desk.backlog.may_begin(ITEM)
    second.begins()
    assert [(ITEM, False), (ITEM, True)] == second.claims
    first.begin()
    first.begins()
    assert (ITEM, False) == first.claims[-1]


def test_a_release_keeps_the_reason_of_the_source(tmp_path: Path) -> None:
    """An item that its source holds stays held."""
    first, second = two(tmp_path)
    first.begins()
    second.begins()
    second.desk.origins.change(ITEM, held="was edited by a stranger")
    first.kill()
    first.forge.person("ada").deletes_comment(7, first.forge.comments_now(7)[0].id)
    second.passes(70)
    assert "was edited by a stranger" == second.desk.backlog.held(ITEM)


def test_a_stranger_claims_nothing(tmp_path: Path) -> None:
    """Nor does a quotation of a marker by anybody."""
    here = machine(tmp_path)
    marker = f"<!-- cuggino:{'0' * 16} -->"
    here.forge.person("eve", trusted=False).comments(7, f"{marker}\nmine")
    here.forge.person("ada").comments(7, f"> {marker}\n\nWhat is this?")
    here.begins()
    assert [(ITEM, True)] == here.claims


def test_a_claim_waits_for_the_forge(tmp_path: Path) -> None:
    """Nothing begins unclaimed; the wait is an event."""
    here = machine(tmp_path)
    here.forge.outage("0s", "1h")
    here.asks()
    here.passes(3500)
    assert [] == here.claims
    assert "WatchForgeWaiting" in here.tags()
    here.passes(700)
    assert [(ITEM, True)] == here.claims
    assert 1 == len(here.bodies())


def test_an_issue_that_refuses_comments(tmp_path: Path) -> None:
    """Work goes on, reported once and without a comment."""
    here = machine(tmp_path)
    here.forge.fail("add_comment", ForgeRefused("locked", status=403), times=9)
    here.begins()
    here.passes(600)
    assert [(ITEM, True)] == here.claims
    assert 1 == here.tags().count("WatchReportFailed")
    assert [] == here.bodies()


@pytest.mark.parametrize("tenth", range(0, 30, 2))
def test_a_lost_claim_is_taken_back_after_a_kill(tmp_path: Path, tenth: int) -> None:
    """A machine that is killed while it loses leaves one claim in the end."""
    first, second = two(tmp_path)
    first.asks()
    second.passes(0.2)
    second.asks()
    second.passes(tenth / 10)
    second.restart()
    second.asks()
    second.passes(100)
    assert (ITEM, True) == first.claims[-1]
    assert (ITEM, False) == second.claims[-1]
    assert 1 == len(first.bodies())
