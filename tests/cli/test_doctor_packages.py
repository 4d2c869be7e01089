"""`cuggino doctor`: the packages of commands besides those of a run."""

from __future__ import annotations

import sys
from importlib import util
from pathlib import Path

import pytest

from cuggino.doctor import project
from cuggino.doctor.result import CheckResult
from cuggino.errors import install_extra
from tests.cli.looking import look


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of packages that are not found."""
    gone: set[str] = set()
    find = util.find_spec
    monkeypatch.setattr(project, "find_spec", lambda name: None if name in gone else find(name))
    return gone


def test_all_is_there() -> None:
    """The report and the live page belong to every installation."""
    expected = CheckResult("ok", "report and live page: installed")
    assert [expected] == look("report and live page", Path())


def test_something_is_missing(without: set[str]) -> None:
    """An incomplete installation is noted with the names of what it lacks."""
    without |= {"jinja2", "uvicorn"}
    (found,) = look("report and live page", Path())
    assert ("note", "report and live page: not installed: jinja2, uvicorn") == (
        found.status,
        found.what,
    )


def test_a_cluster_without_its_extra(without: set[str]) -> None:
    """A configured cluster needs its extra, which is installed for the Python that runs cuggino."""
    without.add("distributed")
    (found,) = look("cluster", Path(), cluster="tls://host:8786")
    assert ("problem", install_extra("cluster")) == (found.status, found.hint)
    assert sys.executable in install_extra("cluster")
