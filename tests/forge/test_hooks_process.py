"""Hooks as real processes: their input, their view, and their end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reactivex import concat, never, of, operators as ops

import cuggino
from cuggino import Config
from cuggino.events import Event, HookFailed, WatchItemParked
from cuggino.forge.hooks import LONGEST_S, hooks_of
from cuggino.testing import VirtualRuntime, no_leaks
from tests.sandbox.arena import needs_bubblewrap

PARKED = WatchItemParked(filename="a.md", reason="it's `no`; $(touch evil)\n<DONE>")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "project"
    (project / ".specs").mkdir(parents=True)
    (project / ".specs/a.md").write_text("spec\n")
    monkeypatch.setenv("GH_TOKEN", "secret")
    return project


def _failure(
    project: Path, command: str, *, timeout: float = LONGEST_S, **given: object
) -> HookFailed:
    """Return the failure of the command, with which it reports that it has ended."""
    config = Config.model_validate({"hooks": {"item.parked": command}, **given})
    companion = hooks_of(
        config, project, timeout=timeout, url_of=lambda item: f"https://forge/{item}"
    )
    assert companion is not None
    events = concat(of(PARKED), never())
    last: Event | None = cuggino.run(companion(events).pipe(ops.take(1)))
    assert isinstance(last, HookFailed)
    return last


@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_a_command_gets_the_event_and_no_login(project: Path, sandbox: str) -> None:
    """Nothing of the event is part of the command line."""
    command = "cat >told; env >env; echo done; exit 7"
    failure = _failure(project, command, sandbox=sandbox)
    assert failure == HookFailed(hook="item.parked", message="exited with 7: done", exit_code=7)
    told = (project / "told").read_text()
    assert json.loads(told)["reason"] == PARKED.reason
    assert told.count("\n") == 1
    variables = (project / "env").read_text()
    assert "CUGGINO_URL=https://forge/a.md\n" in variables
    assert "CUGGINO_ITEM=a.md\n" in variables
    assert "secret" not in variables
    assert not (project / "evil").exists()


def test_a_command_runs_in_the_view_of_checks(project: Path, tmp_path: Path) -> None:
    """It writes the project, but neither the specifications nor anything outside."""
    needs_bubblewrap(project)
    outside = tmp_path / "outside"
    failure = _failure(project, f"echo x >made; echo x >.specs/a.md; echo x >{outside}; exit 3")
    assert failure.exit_code == 3
    assert (project / ".specs/a.md").read_text() == "spec\n"
    assert not outside.exists()
    assert (project / "made").exists()


@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_a_hanging_command_ends_with_its_children(project: Path, sandbox: str) -> None:
    with no_leaks():
        command = "echo begun; (trap '' TERM INT; sleep 600) & sleep 600"
        failure = _failure(project, command, sandbox=sandbox, timeout=0.5)
    assert failure.message.startswith("did not end within 0.5 s")


def test_endless_output_takes_no_memory(project: Path) -> None:
    failure = _failure(project, "tr '\\0' x </dev/zero")
    assert failure.message == "printed an endless line"


def test_hooks_of_a_runtime(tmp_path: Path) -> None:
    """The configuration of a project is enough for its watch to have them."""
    runtime = VirtualRuntime(
        tmp_path / "p", {}, config=Config(hooks={"watch.idle": "cat >told; exit 4"}), git=True
    )
    story = runtime.watch(until="1h")
    assert "HookFailed" in story.tags()
    assert json.loads((tmp_path / "p/told").read_text())["_tag"] == "WatchBacklogWaiting"
