"""Stages without a loop: a workplace in a folder, with drawn agents, commands and git."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from reactivex import Observable

from cuggino.agents.base import Role
from cuggino.stages import Services, StageOptions, Workplace
from cuggino.storage import Workspace
from cuggino.testing import AgentRun, InMemoryAgent
from tests.drawings import Drawing
from tests.loops.coding_loop import FakeWork, MarbleRepository

ROLES: tuple[Role, ...] = ("planning", "implementing", "reviewing", "audit")


def workplace(folder: Path, *sessions: Any, **services: Any) -> Workplace:
    """Return a workplace in which each role plays these sessions."""
    (folder / ".specs").mkdir(exist_ok=True)
    agent = services.pop("agent", None) or InMemoryAgent(dict.fromkeys(ROLES, sessions))
    session = services.pop("session", None)
    given = Services(agent=agent, workspace=Workspace(folder), **services)
    return Workplace.of(given, StageOptions(cwd=folder), focus="the page", session=session)


def session_of(
    stage: Callable[[Workplace], Observable[Any]], *, plan: str | None = None
) -> Callable[..., Observable[Any]]:
    """Return a function that builds the stage from a folder and the agent's stream."""
    return lambda folder, agent: stage(workplace(folder, AgentRun(agent, plan=plan)))


def command_of(stage: Callable[..., Observable[Any]]) -> Callable[..., Observable[Any]]:
    """Return a function that builds the stage from a folder and the command's output."""
    return lambda folder, output: stage(workplace(folder, shell=lambda *_: output), "make")


def copy_of(stage: Callable[..., Observable[Any]]) -> Callable[..., Observable[Any]]:
    """Return a function that builds the stage, whose command runs in a copy with this output."""

    def build(folder: Path, output: Observable[Any]) -> Observable[Any]:
        work = FakeWork()
        work.copies = [output]
        return stage(workplace(folder, work=work), "make", {})

    return build


def repository_of(folder: Path, *commits: Observable[Any], **given: Any) -> Workplace:
    """Return a workplace with a drawn repository."""
    return workplace(folder, repository=MarbleRepository(*commits, **given))


def in_a_folder(
    plays: Callable[..., Callable[[Drawing], None]],
    build: Callable[..., Observable[Any]],
    events: dict[str, Any],
) -> Callable[[Drawing], None]:
    """Return an example whose stage works in a folder of its own."""

    def play(drawing: Drawing) -> None:
        with TemporaryDirectory() as folder:
            plays(lambda sources: build(Path(folder), *sources), events)(drawing)

    return play
