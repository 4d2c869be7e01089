"""`Runtime.plan_build` and `Runtime.resume_plan_build`: the checks before the loop, the options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, just

from cuggino.config import Config
from cuggino.edges import run
from cuggino.errors import ConfigError, CugginoError, RunNotResumable
from cuggino.events import Event, PlanBuildEnded, RunResumed
from cuggino.runtime import Runtime
from cuggino.storage import list_journals
from tests.loops.plan_build_loop import PlanBuildLoop, Turn, has


def runtime(folder: Path, *turns: Turn, **config: Any) -> Runtime:
    """A project whose agent plays the turns of building."""
    project = PlanBuildLoop(folder, turns, plan=[Turn(has(J1="open"))])
    return Runtime.live(cwd=folder, config=Config(**config), agent=project.agent)


def events_of(stream: Observable[Any]) -> list[Event]:
    seen: list[Event] = []
    run(stream, seen.append)
    return seen


def test_options_are_those_of_the_configuration(tmp_path: Path) -> None:
    """Given options override the configuration; invalid numbers are refused by name."""
    live = runtime(tmp_path, max_retries=7, model="m")
    options = live.plan_build_options(model="n", iteration_pause=0.5)
    assert (7, "n", 0.5) == (options.max_retries, options.model, options.iteration_pause)
    assert ("memory", tmp_path, True) == (options.agent, options.cwd, options.journal)
    with pytest.raises(ConfigError, match="max_sessions"):
        live.plan_build_options(max_sessions=0)


@pytest.mark.parametrize("role", ["verify_job", "verify_build"])
def test_a_bad_template_is_an_error_at_the_start(role: str, tmp_path: Path) -> None:
    """A bad verification template is an error at the start, unless no verification is wanted."""
    live = runtime(tmp_path, Turn(has(True, J1="done")))
    template = live.workspace.prompts / f"{role}.md"
    template.parent.mkdir(parents=True)
    template.write_text("Look at {{everything}}.")
    with pytest.raises(ConfigError, match=r"unknown variable \{\{everything\}\}"):
        events_of(live.plan_build())
    assert [] == list_journals(live.workspace.journal)
    unverified = live.plan_build_options(verify_after_iteration=False)
    ended = events_of(live.plan_build(unverified))[-1]
    assert isinstance(ended, PlanBuildEnded)
    assert "complete" == ended.reason


def test_the_latest_run_is_resumed(tmp_path: Path) -> None:
    """The latest unfinished run is resumed, or the named one; then there is none left."""
    stop: Observable[object] = just("stop")
    first = runtime(tmp_path)
    ended = events_of(first.plan_build(interrupt=stop))[-1]
    assert isinstance(ended, PlanBuildEnded)
    assert "interrupted" == ended.reason
    (path,) = list_journals(first.workspace.journal)
    live = runtime(tmp_path, Turn(has(True, J1="done")))
    again = events_of(live.resume_plan_build(path.stem[:13], interrupt=stop))
    assert [RunResumed, PlanBuildEnded] == [type(again[n]) for n in (0, -1)]
    last = events_of(live.resume_plan_build(model="n"))[-1]
    assert isinstance(last, PlanBuildEnded)
    assert ("complete", 2) == (last.reason, last.iterations)
    with pytest.raises(RunNotResumable):
        events_of(live.resume_plan_build())


def test_nothing_to_resume(tmp_path: Path) -> None:
    """Without an unfinished run, resuming is refused before anything is written."""
    live = runtime(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CugginoError, match="no unfinished run"):
        events_of(live.resume_plan_build())
    assert before == sorted(tmp_path.rglob("*"))
