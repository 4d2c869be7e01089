"""Fixtures of the live page."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
import uvicorn

from cuggino.web import channel, server
from tests.web import plain_pages
from tests.web.chromium import chromium
from tests.web.journals import Writer
from tests.web.server import Page, page

__all__ = ["chromium"]


@pytest.fixture(autouse=True)
def no_pause_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """End servers without the tenth of a second that uvicorn leaves to their connections."""
    at_once = {**vars(asyncio), "sleep": lambda _seconds: asyncio.sleep(0.001)}
    monkeypatch.setattr(uvicorn.server, "asyncio", SimpleNamespace(**at_once))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project without runs."""
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


@pytest.fixture
def run(project: Path) -> Iterator[Writer]:
    """A run of the project, at work unless the test ends it."""
    with closing(Writer(project)) as made:
        yield made


@pytest.fixture
def served(project: Path) -> Iterator[Page]:
    """A served page of the project, on its own port."""
    with page(project) as made:
        yield made


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Serve plain lists instead of the real pages."""
    for module in (channel, server):
        monkeypatch.setattr(module, "pages", plain_pages)


QUICK = {
    **{(channel, name): 0.02 for name in ("REST", "_LIVENESS", "_SETTLE")},
}
"""The pauses between polls, which people do not notice and tests would wait for."""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poll without pauses to speak of; `test_pauses` proves those that there are."""
    for (module, name), seconds in QUICK.items():
        monkeypatch.setattr(module, name, seconds)
