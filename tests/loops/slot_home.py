"""A project with slots beside it, in which attempts of items are made."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from reactivex import Observable, operators as ops

from cuggino import run
from cuggino.agents.base import LlmAgent
from cuggino.events import Event, WatchCandidate
from cuggino.loops import LoopRunOptions, Services, Work
from cuggino.loops.watch.attempt import attempt
from cuggino.operators.supervision import Ledger
from cuggino.stages import GitRepository, act
from cuggino.stages.slots import Slot, candidate_ref, prepare_slot, slots_of
from cuggino.storage import Workspace, list_journals, read_journal
from cuggino.testing import AgentRun, InMemoryAgent, Say, Write
from tests.git_project import GitProject, commit_at, fetch_into, make_once

PLAN = AgentRun([Say("<PLAN_COMPLETE>One task.</PLAN_COMPLETE>")], plan="# Plan")
GOOD = [Say("<APPROVED>Fine.</APPROVED>")]
ITEM = "a.md 0123"


def work(path: str, text: str = "text\n") -> list[Any]:
    """Return a session that writes a file."""
    return [Write(path, text), Say("<DONE>Write the file</DONE>")]


def rest(*implementing: list[Any]) -> dict[str, list[Any]]:
    """Return what is left to do behind the plan: by default a file is written."""
    return {"implementing": list(implementing) or [work("b.txt")], "reviewing": [GOOD]}


def whole(*implementing: list[Any]) -> dict[str, list[Any]]:
    """Return all sessions of an approved run."""
    return {"planning": [PLAN], **rest(*implementing)}


class Home:
    """A project with slots beside it."""

    def __init__(self, project: GitProject) -> None:
        self.project = project
        make_once("slot home", project.root, self._make)
        self.workspace = Workspace(project.root)
        self.workspace.open()
        self.slots = slots_of(project.root, None, 3)
        self.base = self.head()
        self.ledger = Ledger()
        self.publish: Callable[[Slot, str, bool], Observable[Any]] = self._publish

    def _make(self) -> None:
        self.project.write(".gitignore", ".cuggino\n")
        self.project.write(".specs/a.md", "spec\n")
        self.project.git("add", "-A")
        self.project.git("commit", "-q", "-m", "Start")

    def head(self) -> str:
        return commit_at(self.project.root / ".git", "HEAD") or ""

    def attempt(
        self, sessions: dict[str, list[Any]], slot: int = 1, **given: Any
    ) -> tuple[InMemoryAgent, list[Event], BaseException | None]:
        """Run an attempt; return its agent, its events and its error."""
        agent = InMemoryAgent(sessions)  # type: ignore[arg-type]
        seen, error = self.play(agent, slot, **given)
        return agent, seen, error

    def makes(
        self, sessions: dict[str, list[Any]], slot: int = 1, **given: Any
    ) -> tuple[InMemoryAgent, list[Event], WatchCandidate]:
        """Run an attempt that makes a candidate; return its agent, its events and it."""
        agent, seen, error = self.attempt(sessions, slot, **given)
        assert error is None
        assert isinstance(seen[-1], WatchCandidate)
        return agent, seen, seen[-1]

    def play(
        self, agent: LlmAgent, slot: int = 1, **given: Any
    ) -> tuple[list[Event], BaseException | None]:
        """Run an attempt with an agent; return its events and its error."""
        services = Services(
            agent=agent,
            workspace=self.workspace,
            repository=GitRepository(self.project.root, exclude=(Path(".cuggino"),)),
        )
        given = {"base": self.base, **given}
        options = {"focus": "the file", "item": ITEM, "journal": True, **given.pop("options", {})}
        place = self.slots[slot - 1]
        prepared = given.pop("prepared", lambda: None)
        self.name = given.pop("item", "a.md")
        work = Work(
            options=LoopRunOptions(
                cwd=self.project.root, **{"sandbox": "off", "retry_pause": 0, **options}
            ),
            slot=slot,
            ledger=self.ledger,
            **given,
        )
        stream: Observable[Any] = attempt(
            services,
            work,
            place,
            prepare=partial(self._prepare, prepared),
            publish=lambda slot, base, approved, **_: self.publish(slot, base, approved),
        )
        seen: list[Event] = []
        try:
            run(stream, seen.append)
        except Exception as error:
            return seen, error
        return seen, None

    def _prepare(
        self, then: Callable[[], None], slot: Slot, *, base: str, item: str, resume: bool = False
    ) -> Observable[Any]:
        preparing = prepare_slot(slot, base=base, item=self.name, resume=resume)
        return preparing.pipe(ops.do_action(on_completed=then))

    def _publish(self, slot: Slot, base: str, approved: bool) -> Observable[Any]:
        def make() -> WatchCandidate:
            commit = commit_at(slot.root / ".git", "HEAD")
            assert commit is not None
            fetch_into(self.project.root / ".git", slot.root / ".git", candidate_ref(self.name))
            return WatchCandidate(
                filename="a.md",
                slot=slot.number,
                commit=commit,
                base=base,
                attempt=1,
                approved=approved,
            )

        return act(make)

    def git(self, slot: Slot, *args: str) -> str:
        return self.project.git(*args, cwd=slot.root)

    def states(self) -> list[str]:
        """Return the states of all runs in the journals of the project, the oldest first."""
        return [read_journal(p).state for p in reversed(list_journals(self.workspace.journal))]


def names(seen: list[Event]) -> list[str]:
    return [event.tag for event in seen]
