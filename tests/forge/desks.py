"""A watch as its companions see it, in virtual time: drawn events, a real folder, any forge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reactivex import abc
from reactivex.subject import Subject

from cuggino.config import BacklogSource
from cuggino.events import Event, LoopSpecIssue, WatchProcessingItem
from cuggino.forge import redacting
from cuggino.forge.answering import answered
from cuggino.forge.claiming import claim_with, reclaimed
from cuggino.forge.commenting import new_key
from cuggino.forge.desk import Desk, Tracker
from cuggino.forge.reporting import reported
from cuggino.operators import flow, forward
from cuggino.operators.merge_now import merge_now
from cuggino.storage import Origin, Workspace
from cuggino.testing import InMemoryForge, VirtualClock

ITEM = "github-00007.md"


class Machine:
    """A project on one machine. `begin` starts a watch on it, `kill` ends that at once."""

    def __init__(self, folder: Path, forge: InMemoryForge, **settings: Any) -> None:
        self.folder = folder
        self.forge = forge
        self.clock: VirtualClock = forge.clock
        self.workspace = Workspace(folder)
        self.workspace.open()
        self.settings = BacklogSource(type="github", label="agent", **settings)
        self.seen: list[tuple[float, Event]] = []
        """What the companions have emitted."""
        self.errors: list[Exception] = []
        self.claims: list[tuple[str, bool]] = []
        self.begin()

    def begin(self) -> None:
        """Start a watch: companions and claims that know only the folder."""
        trackers = {"github": Tracker(forge=self.forge, settings=self.settings)}
        self.desk = Desk(
            self.workspace,
            trackers,
            redact=redacting({}, project=self.folder),
            specs=self.folder / "specs",
        )
        self.events: Subject[Event] = Subject()
        self.claim = claim_with(self.desk)
        companions = [one(self.desk)(self.events) for one in (reported, answered, reclaimed)]
        self.running: abc.DisposableBase = flow(lambda: forward(merge_now(*companions))).subscribe(
            self._see, self.errors.append, scheduler=self.clock
        )
        self.claiming: list[abc.DisposableBase] = []

    def kill(self) -> None:
        """End the watch; what the forge has not got by now, it never gets."""
        self.running.dispose()
        for one in self.claiming:
            one.dispose()

    def restart(self) -> None:
        """Kill the watch, and start another one at once."""
        self.kill()
        self.begin()

    def _see(self, event: Event) -> None:
        self.seen.append((self.clock.elapsed, event))

    def tags(self) -> list[str]:
        """Return the names of what the companions have emitted."""
        return [event.tag for _, event in self.seen]

    def imported(self, number: int = 7, text: str = "# Add a page\n") -> str:
        """Write an item as the import of an issue does; return its name."""
        name = f"github-{number:05}.md"
        (self.workspace.backlog / name).write_text(text)
        url = f"{self.forge.url}/issues/{number}"
        self.desk.origins.change(
            name, source="github", id=str(number), url=url, number=number, key=new_key()
        )
        return name

    def origin(self, name: str = ITEM) -> Origin:
        """Return the origin of an item."""
        origin = self.desk.origins.read(name)
        assert origin is not None
        return origin

    def emit(self, *events: Event, after: float = 0) -> None:
        """Emit events of the watch, and let time pass."""
        for event in events:
            self.events.on_next(event)
        self.passes(after)

    def asks(self, name: str = ITEM) -> None:
        """Claim an item as a watch does before it begins; it begins when it may."""

        def begins(may: bool) -> None:
            self.claims.append((name, may))
            if may:
                self.events.on_next(WatchProcessingItem(filename=name, slot=1, item=name))

        self.claiming.append(
            self.claim(name).subscribe(begins, self.errors.append, scheduler=self.clock)
        )

    def begins(self, name: str = ITEM) -> None:
        """Claim an item, and let time pass until its report is written."""
        self.asks(name)
        self.passes(10)

    def question(self, text: str = "Which color?", name: str = ITEM) -> str:
        """Let an agent ask; return the file of its spec issue."""
        file = self.workspace.write_spec_issue(text)
        self.emit(LoopSpecIssue(iteration=1, content=text, filename=file, item=name))
        return file

    def passes(self, seconds: float | str) -> None:
        """Let time pass."""
        self.clock.advance_to(self.clock.after(seconds))

    def bodies(self, number: int = 7) -> list[str]:
        """Return the comments on an issue."""
        return [one.body for one in self.forge.comments_now(number)]

    def body(self, number: int = 7) -> str:
        """Return the only comment on an issue."""
        (body,) = self.bodies(number)
        return body


def machine(folder: Path, *, latency: float = 0.2, **settings: Any) -> Machine:
    """Return a machine with an issue that was imported."""
    forge = InMemoryForge(VirtualClock(), latency=latency)
    forge.person("ada").opens(7, "Add a page", labels=("agent",))
    here = Machine(folder, forge, **settings)
    here.imported()
    return here
