"""Deliver and plan/build by `Runtime`: the checks before the loop, the options, resuming."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, just

from cuggino.config import Config
from cuggino.edges import run
from cuggino.errors import ConfigError, CugginoError, RunNotResumable
from cuggino.events import Event, RunResumed
from cuggino.runtime import Runtime
from cuggino.storage import list_journals
from tests.loops import deliver_loop as deliver, plan_build_loop as plan_build

STOP: Observable[object] = just("stop")


def events_of(stream: Observable[Any]) -> list[Event]:
    seen: list[Event] = []
    run(stream, seen.append)
    return seen


def _delivery(folder: Path, whole: bool, **config: Any) -> Runtime:
    """A project with a specification; its agent plans one deliverable, and may pass it."""
    (folder / "SPEC.md").write_text("Do it.")
    deliver.write_settings(folder)
    turns = [deliver.Turn(leaves={"a": "pending"}), deliver.Turn(leaves={"a": "passed"})]
    agent = deliver.Sessions(turns[: 1 + whole], folder)
    return Runtime.live(cwd=folder, config=Config(**config), agent=agent)


def _build(folder: Path, whole: bool, **config: Any) -> Runtime:
    """A project whose agent plans one job, and may do it."""
    builds = [plan_build.Turn(plan_build.has(True, J1="done"))][: int(whole)]
    plan = [plan_build.Turn(plan_build.has(J1="open"))]
    project = plan_build.PlanBuildLoop(folder, builds, plan=plan)
    return Runtime.live(cwd=folder, config=Config(**config), agent=project.agent)


@dataclass(frozen=True)
class Loop:
    """A loop as `Runtime` has it."""

    make: Callable[..., Runtime]
    name: str
    pause: str
    end: tuple[str, int]
    """The reason of success, and the sessions."""

    def options(self, live: Runtime, **given: Any) -> Any:
        return getattr(live, f"{self.name}_options")(**given)

    def play(self, live: Runtime, **given: Any) -> list[Event]:
        begin = getattr(live, self.name)
        return events_of(begin(self.options(live, **{self.pause: 0.0}), **given))

    def resume(self, live: Runtime, *words: str, **given: Any) -> list[Event]:
        name = "delivery" if self.name == "deliver" else self.name
        return events_of(getattr(live, f"resume_{name}")(*words, **given))


LOOPS = {
    "deliver": Loop(_delivery, "deliver", "session_pause", ("all_passed", 2)),
    "plan_build": Loop(_build, "plan_build", "iteration_pause", ("complete", 2)),
}


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> Loop:
    return LOOPS[request.param]


def end_of(event: Any) -> tuple[str, int]:
    return event.reason, event.sessions if hasattr(event, "sessions") else event.iterations


def test_options_are_those_of_the_configuration(loop: Loop, tmp_path: Path) -> None:
    """Given options override the configuration; invalid numbers are refused by name."""
    live = loop.make(tmp_path, False, max_retries=7, model="m", progress_patience=None)
    options = loop.options(live, model="n", **{loop.pause: 0.5})
    assert (7, "n", 0.5) == (options.max_retries, options.model, getattr(options, loop.pause))
    assert options.progress_patience is None
    assert ("memory", tmp_path, True) == (options.agent, options.cwd, options.journal)
    with pytest.raises(ConfigError, match="max_sessions"):
        loop.options(live, max_sessions=0)


def test_a_run(loop: Loop, tmp_path: Path) -> None:
    """The loop runs in the project's folder and leaves only a journal."""
    live = loop.make(tmp_path, True)
    assert loop.end == end_of(loop.play(live)[-1])
    assert 1 == len(list_journals(live.workspace.journal))
    assert [] == list(live.workspace.wip.iterdir())


def test_the_latest_run_is_resumed(loop: Loop, tmp_path: Path) -> None:
    """The latest unfinished run is resumed, or the named one; then there is none left."""
    first = loop.make(tmp_path, False)
    assert "interrupted" == end_of(loop.play(first, interrupt=STOP)[-1])[0]
    (path,) = list_journals(first.workspace.journal)
    live = loop.make(tmp_path, True)
    again = loop.resume(live, path.stem[:13], interrupt=STOP)
    assert (RunResumed, "interrupted") == (type(again[0]), end_of(again[-1])[0])
    assert loop.end == end_of(loop.resume(live, model="n")[-1])
    agent: Any = live.agent
    assert "n" in {options.model for options in agent.spawned}
    with pytest.raises(RunNotResumable):
        loop.resume(live)


def test_nothing_to_resume(loop: Loop, tmp_path: Path) -> None:
    """Without an unfinished run, resuming is refused before anything is written."""
    live = loop.make(tmp_path, False)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CugginoError, match="no unfinished run"):
        loop.resume(live)
    assert before == sorted(tmp_path.rglob("*"))


def test_a_project_without_a_specification(tmp_path: Path) -> None:
    """It is an error before anything is started or written (AUT-246)."""
    live = _delivery(tmp_path, True)
    (tmp_path / "SPEC.md").unlink()
    for stream in (live.deliver(), live.deliver(live.deliver_options())):
        with pytest.raises(ConfigError, match="not found"):
            events_of(stream)
    assert [".autonoe"] == [path.name for path in tmp_path.iterdir()]


@pytest.mark.parametrize("role", ["verify_job", "verify_build"])
def test_a_bad_template_is_an_error_at_the_start(role: str, tmp_path: Path) -> None:
    """A bad verification template is an error at the start, unless no verification is wanted."""
    live = _build(tmp_path, True)
    template = live.workspace.prompts / f"{role}.md"
    template.parent.mkdir(parents=True)
    template.write_text("Look at {{everything}}.")
    with pytest.raises(ConfigError, match=r"unknown variable \{\{everything\}\}"):
        events_of(live.plan_build())
    assert [] == list_journals(live.workspace.journal)
    unverified = live.plan_build_options(verify_after_iteration=False, iteration_pause=0.0)
    assert "complete" == end_of(events_of(live.plan_build(unverified))[-1])[0]
