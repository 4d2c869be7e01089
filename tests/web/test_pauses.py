"""The time of the next look at what an open page shows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from cuggino.web import channel
from cuggino.web.channel import Change, Channel, OverviewChannel, RunChannel
from cuggino.web.site import Site


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock at 100 s, and the processor time of this thread."""
    now = SimpleNamespace(wall=100.0, cpu=0.0)
    times = SimpleNamespace(monotonic=lambda: now.wall, thread_time=lambda: now.cpu)
    monkeypatch.setattr(channel, "time", times)
    return now


def _run(site: Site) -> Channel:
    return RunChannel(site, site.places[0], "r")


@pytest.mark.parametrize(
    ("kind", "spent", "news", "pause"),
    [
        (_run, 0.001, None, 1.0),
        (_run, 0.001, 0.0, 0.05),
        (_run, 0.0002, 0.0, 0.04),
        (_run, 1.0, 0.0, 0.08),
        (_run, 1.0, 0.3, 0.34),
        (OverviewChannel, 0.008, 0.0, 0.1),
        (OverviewChannel, 1.0, 0.0, 0.5),
    ],
    ids=[
        "no news",
        "a fiftieth of a core",
        "several events at once",
        "much to draw: live all the same",
        "news after a while",
        "the overview",
        "a large overview",
    ],
)
def test_pause_before_the_next_look(
    clock: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    kind: Callable[[Site], Channel],
    spent: float,
    news: float | None,
    pause: float,
) -> None:
    """Events of a run are drawn within a tenth of a second; without news there is a slow poll."""
    page = kind(Site("/x", [tmp_path]))

    async def poll(*, now: bool = False) -> Change | None:
        with page.pace.spending():
            clock.cpu += spent
        return None

    monkeypatch.setattr(page, "poll", poll)
    asyncio.run(page.look())
    if news is not None:
        clock.wall += news
        page.pace.note()
        page.pace.note()
    assert pause == pytest.approx(page.pace.due - 100)
