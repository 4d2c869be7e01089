"""Checks of `cuggino doctor` by their topics."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cuggino.config import Config
from cuggino.doctor.checks import CHECKS, diagnose
from cuggino.doctor.result import CheckResult, Place


def place(
    folder: Path, *, agent: str | None = None, trusted: bool = False, **settings: Any
) -> Place:
    """Return the folder as a place with these settings."""
    config = Config.model_validate(settings)
    return Place(folder=folder, env=os.environ, uid=1, agent=agent, trusted=trusted, config=config)


def look(
    topic: str, folder: Path, *, env: Mapping[str, str] | None = None, **settings: Any
) -> list[CheckResult]:
    """Return what the checks of this topic find, with these settings."""
    there = place(folder, **settings)
    if env is not None:
        there = Place(folder=folder, env=env, uid=1, config=there.config)
    return [one for check in CHECKS if check.topic == topic for one in check.results(there)]


def look_at_all(
    folder: Path, *, agent: str | None = None, trusted: bool = False
) -> list[CheckResult]:
    """Return what all checks find, with the settings of the project."""
    return list(diagnose(place(folder, agent=agent, trusted=trusted)))
