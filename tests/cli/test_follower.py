"""What the follower of a run tells its view about the end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from reactivex import concat, defer, just
from typing_extensions import override

from cuggino import LoopScheduler, Runtime
from cuggino.events import Event, IterationStart, LoopApproved
from cuggino_cli.follow.follower import follow
from cuggino_cli.follow.output import OutputOptions
from cuggino_cli.follow.views import Ending, View
from cuggino_cli.screen.terminal import Lines


class _Endings(View):
    """Keeps the end."""

    ended: Ending

    @override
    def conclude(self, lines: Lines, ending: Ending) -> None:
        self.ended = ending


def test_the_time_before_the_first_event_is_none_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent's program may take seconds to tell its version, before the run is recorded."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    monkeypatch.setattr(LoopScheduler, "now", property(lambda _: now))

    def after(seconds: float, event: Event) -> Any:
        def emit(_: Any) -> Any:
            nonlocal now
            now += timedelta(seconds=seconds)
            return just(event)

        return defer(emit)

    events = (
        after(60, IterationStart(iteration=1, max_iterations=1)),
        after(30, LoopApproved(iteration=1)),
    )
    view = _Endings(output=OutputOptions(verbose=False, quiet=True, json=False, color="never"))
    assert 0 == follow(lambda _stop: concat(*events), view, Runtime.live(cwd=tmp_path))
    assert 30 == view.ended.seconds
