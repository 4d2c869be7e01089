"""Check of a project of the plan/build loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from cuggino.config import PLAN_BUILD_CONFIG_FILE, load_plan_build_config
from cuggino.doctor.result import CheckResult
from cuggino.errors import ConfigError
from cuggino.sandbox import home_of
from cuggino.storage import JobStore


def jobs(folder: Path, env: Mapping[str, str]) -> Iterator[CheckResult]:
    """Check settings and jobs, in a project that uses the loop."""
    store = JobStore(folder)
    home = home_of(env)
    user = None if home is None else home / PLAN_BUILD_CONFIG_FILE
    try:
        load_plan_build_config(folder, user=user)
        store.check()
    except ConfigError as error:
        yield CheckResult("problem", f"jobs: {error.message}", error.hint)
        return
    if not store.path.exists():
        return
    loaded = store.load()
    found = f"jobs: {loaded.jobs.count_done}/{len(loaded.jobs.items)} done"
    if loaded.warnings:
        yield CheckResult("note", "; ".join(loaded.warnings), f"see {store.path}")
    else:
        yield CheckResult("ok", found)
