"""The agent of a resumed run."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest

from cuggino import resumed_agent
from cuggino.errors import RunNotResumable
from cuggino.events import RunEnded, RunStarted
from cuggino.storage import Journal, Workspace

Kind = Literal["run", "deliver", "loop"]
AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
ONE, TWO = (f"0193b2c{n}-0000-7000-8000-000000000000" for n in "12")


def began(root: Path, run_id: str, *, kind: Kind = "run", agent: str, ended: bool = False) -> None:
    """Record a run that was started with this agent."""
    started = RunStarted(run_id=run_id, kind=kind, command=f"cuggino {kind}", agent=agent)
    journal = Journal.create(Workspace(root).journal, started, at=AT, sync=False)
    if ended:
        journal.append(RunEnded(state="approved"), at=AT)
    journal.close()


@pytest.mark.parametrize("kind", ["run", "deliver", "loop"])
def test_agent_of_the_run(kind: Kind, tmp_path: Path) -> None:
    """A resumed run keeps its agent: that of the loop's latest run, or of the named one."""
    began(tmp_path, ONE, kind=kind, agent="codex")
    began(tmp_path, TWO, kind=kind, agent="scripted:x.toml")
    assert "scripted:x.toml" == resumed_agent(tmp_path, kind=kind)
    assert "codex" == resumed_agent(str(tmp_path), ONE[:8], kind=kind)


def test_other_loops_and_ended_runs_are_ignored(tmp_path: Path) -> None:
    """A later run of another loop and an ended run are ignored."""
    began(tmp_path, ONE, agent="codex")
    began(tmp_path, TWO, kind="loop", agent="gemini")
    began(tmp_path, TWO.replace("2-", "3-"), agent="copilot", ended=True)
    assert "codex" == resumed_agent(tmp_path)


def test_given_agent_takes_precedence(tmp_path: Path) -> None:
    """A given agent overrides that of the run, and no run is looked up."""
    began(tmp_path, ONE, agent="codex")
    assert "claude" == resumed_agent(tmp_path, given="claude")
    assert "claude" == resumed_agent(tmp_path, "9", kind="loop", given="claude")


def test_run_without_an_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a run without an agent, the configuration decides."""
    began(tmp_path, ONE, agent="")
    monkeypatch.chdir(tmp_path)
    assert resumed_agent() is None


def test_no_run(tmp_path: Path) -> None:
    """A run that cannot be resumed is an error."""
    began(tmp_path, ONE, agent="codex", ended=True)
    with pytest.raises(RunNotResumable, match="no unfinished run"):
        resumed_agent(tmp_path)
    with pytest.raises(RunNotResumable, match="has ended"):
        resumed_agent(tmp_path, ONE)
    with pytest.raises(RunNotResumable, match="is a run of `cuggino run`"):
        resumed_agent(tmp_path, ONE, kind="deliver")
