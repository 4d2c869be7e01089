"""All checks of a project, as an Observable."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import reactivex
from reactivex import Observable

from cuggino.doctor.checks import diagnose
from cuggino.doctor.result import CheckResult


def doctor(
    project: str | os.PathLike[str] = ".",
    *,
    agent: str | None = None,
    env: Mapping[str, str] | None = None,
    trusted: bool = False,
) -> Observable[CheckResult]:
    """Emit the result of every check of the project.

    An unusable `.cuggino.json` is a problem among the results, not an error; checks that need the
    configuration are skipped then. Nothing that lies in the project is started, nor what the
    settings of its repository name.

    Args:
        project: the folder to check.
        agent: the agent to check instead of the configured ones.
        env: the environment that agents would get; default this process's.
        trusted: whether the user has accepted the commands of the project (`cuggino.trust`), so
            that modules named in its configuration are imported.
    """
    folder, environment = Path(project).resolve(), os.environ if env is None else env

    def checks(_scheduler: object) -> Observable[CheckResult]:
        return reactivex.from_iterable(
            diagnose(folder, agent=agent, env=environment, uid=os.getuid(), trusted=trusted)
        )

    return reactivex.defer(checks)
