"""Check of a project of the plan/build loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from cuggino.config import PLAN_BUILD_CONFIG_FILE, load_plan_build_config
from cuggino.doctor.result import NEVER_FAILS, CheckResult
from cuggino.errors import ConfigError
from cuggino.gate import why_it_cannot_fail
from cuggino.sandbox import home_of
from cuggino.storage import JobStore


def jobs(folder: Path, env: Mapping[str, str]) -> Iterator[CheckResult]:
    """Check settings and jobs, in a project that uses the loop."""
    store = JobStore(folder)
    home = home_of(env)
    user = None if home is None else home / PLAN_BUILD_CONFIG_FILE
    try:
        config = load_plan_build_config(folder, user=user).config
        store.check()
    except ConfigError as error:
        yield CheckResult("problem", f"jobs: {error.message}", error.hint)
        return
    for key, command in (("build", config.verify_build), ("test", config.verify_test)):
        if command and (why := why_it_cannot_fail(command)):
            what = f"verify.{key}: {command} (it cannot fail: {why})"
            yield CheckResult("note", what, NEVER_FAILS)
    if not store.path.exists():
        return
    loaded = store.load()
    found = f"jobs: {loaded.jobs.count_done}/{len(loaded.jobs.items)} done"
    if loaded.warnings:
        yield CheckResult("note", "; ".join(loaded.warnings), f"see {store.path}")
    else:
        yield CheckResult("ok", found)
