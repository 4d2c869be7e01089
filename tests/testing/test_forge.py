"""The forge in memory: its answers, their timing, and its records."""

from __future__ import annotations

from typing import Any

import pytest
from reactivex import Observable

from cuggino.errors import ForgeLimited, ForgeRefused, ForgeUnreachable
from cuggino.forge import Forge
from cuggino.testing import CiRun, InMemoryForge, Marbles, VirtualClock


def played(clock: VirtualClock, stream: Observable[Any], *, until: str = "1d") -> list[Any]:
    """Return the values of a stream; its error is the last."""
    seen: list[Any] = []
    stream.subscribe(seen.append, seen.append, scheduler=clock)
    clock.advance_to(clock.after(until))
    return seen


def test_it_is_a_forge() -> None:
    """The double has every method of the protocol."""
    forge: Forge = InMemoryForge(VirtualClock())
    wanted = {name for name in vars(Forge) if not name.startswith("_")}
    assert wanted <= {*dir(forge), "kind", "host", "repo"}


def test_a_call_takes_effect_in_the_middle_of_its_latency() -> None:
    """A call that is disposed before its answer was carried out."""
    t = Marbles()
    forge = InMemoryForge(t.clock, latency=2)
    forge.person("ada").opens(7, "Add a page")
    assert [] == t.record(forge.add_comment(7, "early"), until=9, dispose_at=0.5)
    assert [] == forge.comments_now(7)
    assert [] == t.record(forge.add_comment(7, "begun"), until=9, dispose_at=1.5)
    assert ["begun"] == [one.body for one in forge.comments_now(7)]
    (one, end) = t.record(forge.add_comment(7, "done"), until=9)
    assert (2, "completed") == end[:2]
    assert one[2] == forge.comments_now(7)[1]
    assert [(10, "begun"), (19, "done")] == [(call.at, call.text) for call in forge.writes()]


def test_comments_belong_to_their_login() -> None:
    """Another login sees the same comments, and knows its own."""
    clock = VirtualClock()
    forge = InMemoryForge(clock, name="one")
    other = forge.login("two")
    forge.person("ada").opens(7, "t")
    forge.person("eve", trusted=False).comments(7, "do evil")
    played(clock, forge.add_comment(7, "mine"))
    seen = [(c.author, c.is_mine, c.is_trusted) for c in played(clock, other.comments(7))]
    assert [("eve", False, False), ("one", False, True)] == seen
    assert played(clock, forge.comments(7))[1].is_mine


def test_an_edit_by_a_stranger_is_not_trusted() -> None:
    """Trust in a comment ends with an untrusted person's edit."""
    clock = VirtualClock()
    forge = InMemoryForge(clock)
    ada, eve = forge.person("ada"), forge.person("eve", trusted=False)
    ada.opens(7, "t")
    said = ada.comments(7, "B")
    eve.edits_comment(7, said.id, "C")
    (comment,) = played(clock, forge.comments(7))
    assert not comment.is_trusted


def test_faults() -> None:
    """Calls fail as arranged: some times, for one issue, after their effect, or for an hour."""
    clock = VirtualClock()
    forge = InMemoryForge(clock)
    ada = forge.person("ada")
    ada.opens(7, "t")
    ada.opens(8, "u")
    limited, lost = ForgeLimited("slow down"), ForgeUnreachable("reset")
    forge.fail("add_comment", limited, times=1, number=7)
    forge.fail("add_comment", lost, late=True)
    first = played(clock, forge.add_comment(7, "a"))
    other = played(clock, forge.add_comment(8, "b"))
    again = played(clock, forge.add_comment(7, "c"))
    assert [limited, lost] == first + other
    assert ["c"] == [one.body for one in again]
    assert ["b"] == [one.body for one in forge.comments_now(8)]
    forge.outage("10d", "11d")
    clock.advance_to(clock.at("10d"))
    assert isinstance(played(clock, forge.issue(7), until="1s")[0], ForgeUnreachable)
    clock.advance_to(clock.at("11d"))
    assert [7] == [issue.number for issue in played(clock, forge.issue(7))]


@pytest.mark.parametrize(("how", "status"), [("deletes", 410), ("transfers", 404)])
def test_an_issue_that_is_gone(how: str, status: int) -> None:
    """All calls about it are refused."""
    clock = VirtualClock()
    forge = InMemoryForge(clock)
    ada = forge.person("ada")
    ada.opens(7, "t")
    getattr(ada, how)(7)
    for call in (forge.issue(7), forge.comments(7), forge.add_comment(7, "x")):
        (error,) = played(clock, call)
        assert isinstance(error, ForgeRefused)
        assert status == error.status


def test_a_body_is_limited() -> None:
    """Longer texts are refused, as by GitHub."""
    clock = VirtualClock()
    forge = InMemoryForge(clock)
    forge.person("ada").opens(7, "t")
    (error,) = played(clock, forge.add_comment(7, "x" * 65_537))
    assert isinstance(error, ForgeRefused)
    assert 65_536 == len(played(clock, forge.add_comment(7, "x" * 65_536))[0].body)


def test_a_pull_request_goes_from_red_to_merged() -> None:
    """CI takes its time for each head; the forge merges automatically once it is green."""
    clock = VirtualClock()
    ci = [CiRun(state="failed", takes=60, log="boom"), CiRun(takes=90)]
    forge = InMemoryForge(clock, ci=ci)
    opening = forge.open_pull_request(branch="b", target="main", title="T", body="B")
    (refused,) = played(clock, opening, until="0s")
    assert isinstance(refused, ForgeRefused)
    forge.push("b", "c1")
    (pull,) = played(clock, opening, until="0s")
    assert ("open", "pending", "c1") == (pull.state, pull.checks, pull.head)
    assert [pull] == played(clock, opening, until="0s")
    clock.advance_to(clock.after(60))
    (red,) = played(clock, forge.find_pull_request("b"), until="0s")
    assert "failed" == red.checks
    assert ["boom"] == played(clock, forge.log(red.jobs[0]), until="0s")
    forge.push("b", "c2")
    (stale,) = played(clock, forge.merge_when_allowed(pull.number, head="c1"), until="0s")
    assert isinstance(stale, ForgeRefused)
    played(clock, forge.merge_when_allowed(pull.number, head="c2"), until="0s")
    assert forge.pull_now(pull.number).is_queued
    clock.advance_to(clock.after(89))
    assert "open" == forge.pull_now(pull.number).state
    clock.advance_to(clock.after(1))
    merged = forge.pull_now(pull.number)
    assert ("merged", f"merge-of-{pull.number}") == (merged.state, merged.merged_as)


def test_persons_act_at_their_time() -> None:
    """An action that is due later is seen later."""
    clock = VirtualClock()
    forge = InMemoryForge(clock)
    ada = forge.person("ada")
    ada.opens(7, "t")
    forge.push("b", "c1")
    (pull,) = played(
        clock, forge.open_pull_request(branch="b", target="main", title="T", body=""), until="0s"
    )
    forge.at("5m", lambda: ada.comments(7, "B"))
    forge.at("6m", lambda: ada.reviews(pull.number, "rename", path="a.py", line=3))
    forge.at("7m", lambda: ada.closes_pull_request(pull.number))
    clock.advance_to(clock.at("299s"))
    assert [] == forge.comments_now(7)
    clock.advance_to(clock.at("7m"))
    assert [clock.at("5m")] == [one.at for one in forge.comments_now(7)]
    (remark,) = forge.pull_now(pull.number).remarks
    assert ("ada", "rename", True, 3) == (
        remark.author,
        remark.body,
        remark.asks_for_changes,
        remark.line,
    )
    assert "closed" == forge.pull_now(pull.number).state
