"""`--resume` without `--agent`: the run keeps its own agent, even if the files have changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, empty

from cuggino import Runtime
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.deliveries import Loop
from tests.cli.loops import DrawnLoop
from tests.cli.recorded_runs import ONE, SAID, TWO, record

OWN, OTHER = "scripted:own.toml", "scripted:other.toml"


def recorded(folder: Path, kind: str) -> None:
    """Record two unfinished runs: one with its own agent, and a later one without."""
    for name in ("own.toml", "other.toml"):
        (folder / name).touch()
    record(folder, ONE, *SAID, kind=kind, agent=OWN)
    record(folder, TWO, *SAID, kind=kind, agent="")


def agents_of(command: str, runtimes: list[Runtime]) -> list[str]:
    """Return the agents used to resume the first run, the later one, and with `--agent`."""
    main([command, "--resume", ONE])
    main([command, "--resume"])
    main([command, "--resume", ONE, "--agent", OTHER])
    return [runtime.agent_name for runtime in runtimes]


def test_run(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed run uses the given agent, its own, or the configured one."""
    runtimes: list[Runtime] = []

    def resume(runtime: Runtime, run_id: str | None = None, **_options: Any) -> Observable[Any]:
        runtimes.append(runtime)
        return empty()

    monkeypatch.setattr(Runtime, "resume", resume)
    recorded(ready, "run")
    assert [OWN, "scripted:scenario.toml", OTHER] == agents_of("run", runtimes)


def test_deliver(delivered: Path, loop: Loop) -> None:
    """A resumed delivery chooses its agent the same way."""
    recorded(delivered, "deliver")
    usual = json.loads((delivered / ".cuggino.json").read_text())["agent"]
    assert [OWN, usual, OTHER] == agents_of("deliver", loop.runtimes)


def test_loop(looping: Path, drawn_loop: DrawnLoop) -> None:
    """A resumed loop prefers its own agent to the loop files, and these to the configuration."""
    recorded(looping, "loop")
    assert [OWN, "scripted:scenario.toml", OTHER] == agents_of("loop", drawn_loop.runtimes)
    (looping / "third.toml").touch()
    (looping / ".lopen").mkdir()
    file = looping / ".lopen" / "loop-config.json"
    file.write_text(json.dumps({"agent": "scripted:third.toml"}))
    drawn_loop.runtimes.clear()
    assert [OWN, "scripted:third.toml", OTHER] == agents_of("loop", drawn_loop.runtimes)


@pytest.mark.parametrize("command", ["run", "deliver", "loop"])
def test_a_removed_agent(ready: Path, cli: Cli, command: str) -> None:
    """A run of an agent that was removed is listed, and resumed with another one only."""
    record(ready, ONE, *SAID, kind=command, agent="claude-sdk")
    assert 2 == main([command, "--resume"])
    expected = 'cuggino: the agent "claude-sdk" was removed: use `claude`, the same program\n'
    assert ("", expected) == cli.printed()
    assert "claude-sdk" == json.loads(cli("runs", "--json"))["agent"]
