"""The pauses between polls of open pages."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cuggino.web import stream
from cuggino.web.site import Site


@pytest.mark.parametrize(
    ("quiet", "spent", "pause"),
    [(0.0, 0.0, 0.25), (0.0, 0.0025, 0.5), (4.0, 1.0, 2.0), (60.0, 1.0, 1.0)],
    ids=["little to do", "half a percent of a core", "much to do", "nothing has come lately"],
)
def test_pauses_between_polls(
    monkeypatch: pytest.MonkeyPatch, quiet: float, spent: float, pause: float
) -> None:
    """Polling takes a two-hundredth of a core, at least every two seconds, and rests when quiet."""
    clock = SimpleNamespace(monotonic=lambda: quiet, thread_time=lambda: spent)
    monkeypatch.setattr(stream, "time", clock)
    assert pause == stream.Hub(Site("/x", []))._pause()
