"""A whole runtime in virtual time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from reactivex import Observable

from cuggino.agents.protocol import LlmAgent, Role
from cuggino.config import Config, load_config
from cuggino.events import DeliverStreamEvent, LoopEvent, PlanBuildStreamEvent, WatchEvent
from cuggino.loops import DeliverRunOptions, PlanBuildOptions
from cuggino.runtime import Runtime
from cuggino.testing.agents import InMemoryAgent, Played
from cuggino.testing.clock import VirtualClock
from cuggino.testing.diagrams import Seen
from cuggino.testing.doubles import CommandResult, Commands, changes_seen_by
from cuggino.testing.marbles import Marbles
from cuggino.testing.story import Story

T = TypeVar("T")

_LONGEST = timedelta(days=1000)
"""How long a stream may take that should come to its end."""

_GIT = (
    ("init", "--quiet", "--initial-branch=main"),
    ("config", "user.name", "Tester"),
    ("config", "user.email", "tester@example.org"),
    ("config", "commit.gpgSign", "false"),
    ("config", "core.hooksPath", ".git/hooks"),
    ("add", "--all"),
    ("commit", "--quiet", "--allow-empty", "--message=Begin"),
)


class VirtualRuntime:
    """A project, and the whole of cuggino in it, in virtual time.

    ::

        cousin = VirtualRuntime(tmp_path, {"planning": [[Say("<SPEC_ISSUE>How?</SPEC_ISSUE>")]]})
        story = cousin.run(focus="the page")
        assert story.tags()[-1] == "LoopSpecIssue", story

    The loops are the real ones, and so are the files that they read and write. The clock is
    not: it stands still while anything happens, commands and git included, and jumps over all
    waits. A usage limit of five hours, pauses between retries and timeouts take the milliseconds
    that are needed for what happens then.

    Args:
        folder: The project; it is made with a folder for specifications.
        agent: Any agent; or the sessions of an `InMemoryAgent`, by role.
        config: By default the `.cuggino.json` of `files`, or what holds without one.
        files: What there is in the project, content by path.
        commands: The results of command lines, instead of running them (`Commands`).
        git: Make the project a repository, whose first commit is `files`.
        clock: By default one of its own.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        agent: LlmAgent | Mapping[Role, Iterable[Played]],
        *,
        config: Config | None = None,
        files: Mapping[str, str] | None = None,
        commands: Mapping[str, CommandResult | Sequence[CommandResult]] | None = None,
        git: bool = False,
        clock: VirtualClock | None = None,
    ) -> None:
        self.folder = Path(folder).resolve()
        """The project."""
        self.clock = clock or VirtualClock()
        """Its time; the scheduler of all that is played."""
        self.agent = InMemoryAgent(agent) if isinstance(agent, Mapping) else agent
        """Who works."""
        self.commands = Commands(commands or {})
        """`commands.ran` are the command lines that the loops have run."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for path, text in (files or {}).items():
            self.write(path, text)
        config = config or load_config(self.folder)
        (self.folder / config.specs_path).mkdir(parents=True, exist_ok=True)
        if git:
            for words in _GIT:
                self.git(*words)
        self.runtime = self._virtual(Runtime.live(cwd=self.folder, config=config, agent=self.agent))
        """The runtime itself; its streams can be given to `play`."""

    def _virtual(self, runtime: Runtime) -> Runtime:
        runtime.loop.shell = runtime.builder.shell = self.commands
        runtime.watcher.changes = runtime.deliverer.changes = changes_seen_by(self.clock)
        return runtime

    def marbles(self, **events: Any) -> Marbles:
        """Marbles in the time of this runtime, to draw its agents."""
        return Marbles(clock=self.clock, **events)

    # -- the project

    def write(self, path: str, text: str) -> Path:
        """Write a file of the project, and the folders it is in."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def read(self, path: str) -> str:
        """What is in a file of the project."""
        return (self.folder / path).read_text(encoding="utf-8")

    def paths(self, pattern: str = "**/*") -> list[str]:
        """The files of the project that match, sorted; none of `.git`."""
        found = (path.relative_to(self.folder) for path in self.folder.glob(pattern))
        return sorted(
            path.as_posix()
            for path in found
            if (self.folder / path).is_file() and path.parts[0] != ".git"
        )

    def git(self, *words: str) -> str:
        """What a git command says in the project.

        Raises:
            AssertionError: it failed; with its words.
        """
        ran = subprocess.run(["git", *words], cwd=self.folder, capture_output=True, text=True)
        if ran.returncode != 0:
            raise AssertionError(f"git {' '.join(words)}: {ran.stderr.strip()}")
        return ran.stdout.strip()

    def at(self, time: float | str | timedelta, do: Callable[[], object]) -> None:
        """Do something at a virtual time since the beginning of the clock: `at("2h", ...)`."""

        def act(*_: object) -> None:
            do()

        self.clock.schedule_absolute(self.clock.at(time), act)

    # -- the loops

    def run(
        self, *, focus: str, until: float | str | timedelta | None = None, **options: Any
    ) -> Story[LoopEvent]:
        """Play the coding loop (`Runtime.run`, with its options); `until` as of `play`."""
        return self.play(self.runtime.run(focus=focus, **options), until=until)

    def resume(
        self, run_id: str | None = None, *, until: float | str | timedelta | None = None
    ) -> Story[LoopEvent]:
        """Play what is left of an unfinished run (`Runtime.resume`)."""
        return self.play(self.runtime.resume(run_id), until=until)

    def watch(
        self, *, until: float | str | timedelta | None = None, slow: bool = False
    ) -> Story[WatchEvent]:
        """Play the watch up to `until`; without it to its end, which only an error can be."""
        return self.play(self.runtime.watch(slow=slow), until=until)

    def deliver(
        self,
        options: DeliverRunOptions | None = None,
        *,
        until: float | str | timedelta | None = None,
        **given: Any,
    ) -> Story[DeliverStreamEvent]:
        """Play the deliverables loop, with options or with those that are given by name."""
        options = options or self.runtime.deliver_options(**given)
        return self.play(self.runtime.deliver(options), until=until)

    def plan_build(
        self,
        options: PlanBuildOptions | None = None,
        *,
        until: float | str | timedelta | None = None,
        **given: Any,
    ) -> Story[PlanBuildStreamEvent]:
        """Play the plan/build loop, with options or with those that are given by name."""
        options = options or self.runtime.plan_build_options(**given)
        return self.play(self.runtime.plan_build(options), until=until)

    def play(
        self, stream: Observable[T], *, until: float | str | timedelta | None = None
    ) -> Story[T]:
        """Subscribe to any stream now and let time pass to its end; gives all that was seen.

        With `until`, a time since the beginning of the clock, it is left then, if it has not ended,
        as by Ctrl-C. The error of the stream is part of the story (`Story.error`).

        Raises:
            AssertionError: without `until` it has not ended, and nothing will happen any more, or a
            thousand days were not enough.
            StandsStill: something outside has not come to its end.
        """
        return play(stream, clock=self.clock, until=until)


def play(
    stream: Observable[T],
    *,
    clock: VirtualClock,
    until: float | str | timedelta | None = None,
) -> Story[T]:
    """Play a stream on a clock, as `VirtualRuntime.play`."""
    seen: list[Seen] = []

    def ended() -> bool:
        return bool(seen) and seen[-1][1] != "next"

    subscription = stream.subscribe(
        lambda event: seen.append((clock.elapsed, "next", event)),
        lambda error: seen.append((clock.elapsed, "error", error)),
        lambda: seen.append((clock.elapsed, "completed", None)),
        scheduler=clock,
    )
    try:
        limit = clock.now + _LONGEST if until is None else clock.at(until)
        clock.advance_to(limit, unless=ended)
    finally:
        subscription.dispose()
    story: Story[T] = Story(seen)
    if until is None and not ended():
        why = "a thousand days were not enough" if clock.pending else "nothing more will happen"
        raise AssertionError(f"the stream has not ended, and {why}\n{story}")
    return story
