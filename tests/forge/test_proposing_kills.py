"""Proposals whose process ends at any step: the next one goes on, and does nothing twice."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from reactivex import Observable, operators as ops, throw

from cuggino.events import WatchLanded, WatchProposed, WatchSentBack
from cuggino.git import Said
from cuggino.operators import Flow
from cuggino.stages.slots import RemoteBranches
from tests.forge.proposed import Proposed


class Killed(Exception):
    """The end of a process, which nothing handles."""


class Mortal:
    """Ends the process before or after one of its calls to the remote and the forge."""

    def __init__(self, work: Proposed, patch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        self.dies_at: tuple[int, bool] | None = None
        self._patch = patch
        ask = RemoteBranches._ask

        def asking(branches: RemoteBranches, *words: str) -> Flow[Said]:
            at = self._begin()
            said = yield from ask(branches, *words)
            self._end(at)
            return said

        patch.setattr(RemoteBranches, "_ask", asking)
        names = ("find_pull_request", "open_pull_request", "edit_pull_request", "pull_request")
        for name in names:
            patch.setattr(work.forge, name, self._dying(getattr(work.forge, name)))

    def _dying(self, call: Callable[..., Observable[Any]]) -> Callable[..., Observable[Any]]:
        def calling(*args: Any, **more: Any) -> Observable[Any]:
            try:
                at = self._begin()
            except Killed as error:
                return throw(error)
            return call(*args, **more).pipe(ops.do_action(on_completed=lambda: self._end(at)))

        return calling

    def _begin(self) -> int:
        self.calls += 1
        if self.dies_at == (self.calls, False):
            raise Killed
        return self.calls

    def _end(self, at: int) -> None:
        if self.dies_at == (at, True):
            raise Killed


def story(work: Proposed, name: str) -> WatchProposed:
    """Propose, wait for the review, propose again, and wait for the merge."""
    base = work.git("rev-parse", "main", cwd=work.remote)
    candidate = work.candidate(f"{name}.md", {f"{name}.html": "hello\n"}, base=base)
    first = lasting(work, lambda trunk: trunk.land(candidate, title="Add", returns=0))
    assert isinstance(first, WatchProposed)
    ada = work.forge.person("ada")
    ada.reviews(first.number, "Make it better")
    back = lasting(work, lambda trunk: trunk.proposal(first, returns=0))
    assert isinstance(back, WatchSentBack)
    files = {f"{name}.html": "better\n"}
    again = work.candidate(f"{name}.md", files, base=candidate.commit, attempt=2)
    second = lasting(work, lambda trunk: trunk.land(again, title="Add", returns=1))
    assert isinstance(second, WatchProposed)
    assert work.remote_head(f"cuggino/{name}") == second.commit
    ada.merges(second.number)
    landed = lasting(work, lambda trunk: trunk.proposal(second, returns=1))
    assert isinstance(landed, WatchLanded)
    return second


def lasting(work: Proposed, step: Callable[[Any], Observable[Any]]) -> Any:
    """Repeat a step until its process lives to its end; return the last event."""
    while True:
        trunk = work.landing()
        try:
            work.play(trunk.open())
            return work.play(step(trunk))[-1]
        except Killed:
            continue


@pytest.mark.real_agent
def test_kills_around_every_call(work: Proposed, monkeypatch: pytest.MonkeyPatch) -> None:
    """One branch and one pull request come of it, with the latest work, and it is merged."""
    mortal = Mortal(work, monkeypatch)
    story(work, "whole")
    count = mortal.calls
    assert count > 15
    stride = int(os.environ.get("KILL_STRIDE", "13"))
    moments = [(at, after) for at in range(1, count + 1) for after in (False, True)]
    for number, moment in enumerate(moments[::stride]):
        mortal.calls, mortal.dies_at = 0, moment
        name = f"item-{number}"
        proposed = story(work, name)
        assert (moment, f"cuggino/{name}") == (moment, proposed.branch)
        heads = work.git("for-each-ref", f"refs/heads/cuggino/{name}*", cwd=work.remote)
        assert 1 == len(heads.splitlines()), moment
        opened = [call for call in work.forge.writes("open_pull_request") if name in call.text]
        assert 1 == len({call.number for call in opened}), moment
        assert number + 2 == proposed.number, moment
        assert "better" == work.git("show", f"main:{name}.html", cwd=work.remote), moment
