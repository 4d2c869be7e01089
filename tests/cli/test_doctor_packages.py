"""`cuggino doctor`: the packages of commands besides those of a run."""

from __future__ import annotations

import sys
from importlib import util

import pytest

from cuggino.config import Config
from cuggino.doctor import packages
from cuggino.doctor.result import CheckResult
from cuggino.errors import install_extra


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of packages that are not found."""
    gone: set[str] = set()
    find = util.find_spec
    monkeypatch.setattr(packages, "find_spec", lambda name: None if name in gone else find(name))
    return gone


def test_all_is_there() -> None:
    """The report and the live page belong to every installation."""
    assert [CheckResult("ok", "report and live page: installed")] == list(
        packages.packages(Config())
    )


def test_something_is_missing(without: set[str]) -> None:
    """An incomplete installation is noted with the names of what it lacks."""
    without |= {"jinja2", "uvicorn"}
    (found,) = packages.packages(Config())
    assert ("note", "report and live page: not installed: jinja2, uvicorn") == (
        found.status,
        found.what,
    )


def test_a_cluster_without_its_extra(without: set[str]) -> None:
    """A configured cluster needs its extra, which is installed for the Python that runs cuggino."""
    without.add("distributed")
    found = list(packages.packages(Config(cluster="tls://host:8786")))[-1]
    assert ("problem", install_extra("cluster")) == (found.status, found.hint)
    assert sys.executable in install_extra("cluster")
