"""`Runtime.deliver` and `Runtime.resume_delivery`: the checks before the loop, the options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, just

from cuggino.config import Config
from cuggino.edges import run
from cuggino.errors import ConfigError, CugginoError, RunNotResumable
from cuggino.events import DeliverEnded, Event, RunResumed
from cuggino.runtime import Runtime
from cuggino.storage import list_journals
from tests.loops.deliver_loop import Sessions, Turn, write_settings

PASSED = {"a": "passed"}


def runtime(folder: Path, *turns: Turn, **config: Any) -> Runtime:
    """A project with a specification, and an agent that plays the turns."""
    (folder / "SPEC.md").write_text("Do it.")
    write_settings(folder)
    return Runtime.live(cwd=folder, config=Config(**config), agent=Sessions(turns, folder))


def events_of(stream: Observable[Any]) -> list[Event]:
    seen: list[Event] = []
    run(stream, seen.append)
    return seen


def test_options_are_those_of_the_configuration(tmp_path: Path) -> None:
    """Given options override the configuration; invalid numbers are refused by name."""
    live = runtime(tmp_path, max_retries=7, model="m", progress_patience=None)
    options = live.deliver_options(model="n", session_pause=0.5)
    assert (7, "n", 0.5, None) == (
        options.max_retries,
        options.model,
        options.session_pause,
        options.progress_patience,
    )
    assert ("memory", tmp_path, True) == (options.agent, options.cwd, options.journal)
    with pytest.raises(ConfigError, match="max_sessions"):
        live.deliver_options(max_sessions=0)


def test_a_run(tmp_path: Path) -> None:
    """The loop runs in the project's folder and leaves only a journal."""
    live = runtime(tmp_path, Turn(leaves={"a": "pending"}), Turn(leaves=PASSED))
    last = events_of(live.deliver(live.deliver_options(session_pause=0)))[-1]
    assert isinstance(last, DeliverEnded)
    assert ("all_passed", 2) == (last.reason, last.sessions)
    assert 1 == len(list_journals(live.workspace.journal))
    assert [] == list(live.workspace.wip.iterdir())


def test_a_project_without_a_specification(tmp_path: Path) -> None:
    """It is an error before anything is started or written (AUT-246)."""
    live = runtime(tmp_path, Turn())
    (tmp_path / "SPEC.md").unlink()
    for stream in (live.deliver(), live.deliver(live.deliver_options())):
        with pytest.raises(ConfigError, match="not found"):
            events_of(stream)
    assert [".autonoe"] == [path.name for path in tmp_path.iterdir()]


def test_the_latest_run_is_resumed(tmp_path: Path) -> None:
    """The latest unfinished run is resumed, or the named one; then there is none left."""
    first = runtime(tmp_path, Turn(leaves={"a": "pending"}))
    stop: Observable[object] = just("stop")
    ended = events_of(first.deliver(first.deliver_options(session_pause=0), interrupt=stop))[-1]
    assert isinstance(ended, DeliverEnded)
    assert "interrupted" == ended.reason
    (path,) = list_journals(first.workspace.journal)
    live = runtime(tmp_path, Turn(leaves={"a": "pending"}), Turn(leaves=PASSED))
    again = events_of(live.resume_delivery(path.stem[:13], interrupt=stop, model="n"))
    assert [RunResumed, DeliverEnded] == [type(again[n]) for n in (0, -1)]
    seen = events_of(live.resume_delivery(model="n"))
    last = seen[-1]
    assert isinstance(last, DeliverEnded)
    assert ("all_passed", 2) == (last.reason, last.sessions)
    assert isinstance(live.agent, Sessions)
    assert {"n"} == {options.model for options in live.agent.spawned}
    with pytest.raises(RunNotResumable):
        events_of(live.resume_delivery())


def test_nothing_to_resume(tmp_path: Path) -> None:
    """Without an unfinished run, resuming is refused before anything is written."""
    live = runtime(tmp_path)
    with pytest.raises(CugginoError, match="no unfinished run"):
        events_of(live.resume_delivery())
    assert [".autonoe", "SPEC.md"] == sorted(path.name for path in tmp_path.iterdir())
