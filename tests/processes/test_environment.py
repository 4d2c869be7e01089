"""A copy of the environment of this process."""

import os

import pytest

from cuggino.processes import current_environment


def test_a_copy_has_every_variable() -> None:
    assert current_environment() == dict(os.environ)


def test_a_copy_follows_each_change(monkeypatch: pytest.MonkeyPatch) -> None:
    current_environment()
    monkeypatch.setenv("CUGGINO_NEW", "one")
    assert current_environment()["CUGGINO_NEW"] == "one"
    monkeypatch.setenv("CUGGINO_NEW", "two")
    assert current_environment()["CUGGINO_NEW"] == "two"
    monkeypatch.delenv("CUGGINO_NEW")
    assert "CUGGINO_NEW" not in current_environment()


def test_a_copy_is_the_callers_own() -> None:
    current_environment()["CUGGINO_NEW"] = "one"
    assert "CUGGINO_NEW" not in current_environment()
    assert "CUGGINO_NEW" not in os.environ


def test_a_replaced_environment_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"ONLY": "this"})
    assert current_environment() == {"ONLY": "this"}
