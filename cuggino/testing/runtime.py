"""A whole runtime in virtual time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from reactivex import Observable

from cuggino.agents.base import LlmAgent, Role
from cuggino.config import Config, load_config
from cuggino.events import DeliverStreamEvent, LoopEvent, PlanBuildStreamEvent, WatchEvent
from cuggino.git import Git
from cuggino.loops import DeliverRunOptions, PlanBuildOptions
from cuggino.runtime import Runtime
from cuggino.testing.agents import InMemoryAgent, Played
from cuggino.testing.clock import VirtualClock
from cuggino.testing.diagrams import Seen, recorder
from cuggino.testing.doubles import CommandResult, Commands, changes_seen_by, commands_seen_by
from cuggino.testing.marbles import Marbles
from cuggino.testing.story import Story

T = TypeVar("T")

_LONGEST = timedelta(days=1000)
"""The longest virtual time that a stream may take to end."""

_INIT = ("init", "--quiet", "--initial-branch=main")
_SETTINGS = """
[user]
name = Tester
email = tester@example.org
[commit]
gpgSign = false
[core]
hooksPath = .git/hooks
"""
_BEGIN = (("add", "--all"), ("commit", "--quiet", "--allow-empty", "--message=Begin"))


class VirtualRuntime:
    """A project with all of cuggino in it, in virtual time.

    ::

        cousin = VirtualRuntime(tmp_path, {"planning": [[Say("<SPEC_ISSUE>How?</SPEC_ISSUE>")]]})
        story = cousin.run(focus="the page")
        assert story.tags()[-1] == "LoopSpecIssue", story

    The loops and their files are real. The clock is virtual: it stands still while there is work,
    including commands and git, and jumps over all waits. A usage limit of five hours, pauses
    between retries and timeouts take only milliseconds.

    Args:
        folder: The project; it is created with a folder for specifications.
        agent: Any agent; or the sessions of an `InMemoryAgent`, by role.
        config: By default the `.cuggino.json` of `files`, or the default configuration.
        files: The files of the project, content by path.
        commands: Results of command lines, which are then not run (`Commands`).
        git: Make the project a repository whose first commit is `files`.
        clock: By default a clock of its own.
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
        """The virtual clock; the scheduler of everything that is played."""
        self.agent = InMemoryAgent(agent) if isinstance(agent, Mapping) else agent
        """The agent."""
        self.commands = Commands(commands or {})
        """The shell; `commands.ran` lists the command lines that the loops have run."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for path, text in (files or {}).items():
            self.write(path, text)
        # In virtual time a second passes at once, and nobody sleeps.
        config = (config or load_config(self.folder)).model_copy(update={"allow_sleep": True})
        specs = self.folder / config.specs_path
        if not specs.exists():
            self.write(f"{config.specs_path}/specification.md", "# Specification\n")
        if git:
            self.git(*_INIT)
            with (self.folder / ".git" / "config").open("a", encoding="utf-8") as settings:
                settings.write(_SETTINGS)
            for words in _BEGIN:
                self.git(*words)
        live = Runtime.live(cwd=self.folder, config=config, agent=self.agent)
        assert live.services.control_folder is not None
        self.runtime = live.replace(
            shell=self.commands,
            changes=changes_seen_by(self.clock),
            control=commands_seen_by(self.clock, live.services.control_folder),
        )
        """The runtime; pass its streams to `play`."""

    def marbles(self, **events: Any) -> Marbles:
        """Make marbles on the clock of this runtime, to draw its agents."""
        return Marbles(clock=self.clock, **events)

    # -- the project

    def write(self, path: str, text: str) -> Path:
        """Write a file of the project, and create its folders."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def read(self, path: str) -> str:
        """Return the content of a file of the project."""
        return (self.folder / path).read_text(encoding="utf-8")

    def paths(self, pattern: str = "**/*") -> list[str]:
        """Return the files of the project that match, sorted, except those in `.git`."""
        found = (path.relative_to(self.folder) for path in self.folder.glob(pattern))
        return sorted(
            path.as_posix()
            for path in found
            if (self.folder / path).is_file() and path.parts[0] != ".git"
        )

    def git(self, *words: str) -> str:
        """Run a git command in the project and return its output.

        Raises:
            AssertionError: it failed; the message holds its output.
        """
        done = Git(cwd=self.folder).now(*words)
        if done.code:
            raise AssertionError(f"git {' '.join(words)}: {done.errors.strip()}")
        return done.text.strip()

    def at(self, time: float | str | timedelta, do: Callable[[], object]) -> None:
        """Call a function at a virtual time since the start of the clock: `at("2h", ...)`."""
        self.clock.call_at(time, do)

    # -- the loops

    def run(
        self, *, focus: str, until: float | str | timedelta | None = None, **options: Any
    ) -> Story[LoopEvent]:
        """Play the coding loop (`Runtime.run`, with its options); for `until` see `play`."""
        return self.play(self.runtime.run(focus=focus, **options), until=until)

    def resume(
        self, run_id: str | None = None, *, until: float | str | timedelta | None = None
    ) -> Story[LoopEvent]:
        """Play the rest of an unfinished run (`Runtime.resume`)."""
        return self.play(self.runtime.resume(run_id), until=until)

    def watch(
        self, *, until: float | str | timedelta | None = None, slow: bool = False
    ) -> Story[WatchEvent]:
        """Play the watch until `until`; without it until it fails."""
        return self.play(self.runtime.watch(slow=slow), until=until)

    def deliver(
        self,
        options: DeliverRunOptions | None = None,
        *,
        until: float | str | timedelta | None = None,
        **given: Any,
    ) -> Story[DeliverStreamEvent]:
        """Play the deliver loop, with an options value or with options by name."""
        options = options or self.runtime.deliver_options(**given)
        return self.play(self.runtime.deliver(options), until=until)

    def plan_build(
        self,
        options: PlanBuildOptions | None = None,
        *,
        until: float | str | timedelta | None = None,
        **given: Any,
    ) -> Story[PlanBuildStreamEvent]:
        """Play the plan/build loop, with an options value or with options by name."""
        options = options or self.runtime.plan_build_options(**given)
        return self.play(self.runtime.plan_build(options), until=until)

    def play(
        self, stream: Observable[T], *, until: float | str | timedelta | None = None
    ) -> Story[T]:
        """Subscribe to any stream now, let time pass until it ends, and return its story.

        With `until`, a time since the start of the clock, the subscription is disposed then, as by
        Ctrl-C. An error of the stream is part of the story (`Story.error`).

        Raises:
            AssertionError: without `until`, the stream has not ended and nothing is pending, or a
                thousand virtual days have passed.
            StandsStill: work outside has not ended.
        """
        return play(stream, clock=self.clock, until=until)


def play(
    stream: Observable[T],
    *,
    clock: VirtualClock,
    until: float | str | timedelta | None = None,
) -> Story[T]:
    """Play a stream on a clock, as `VirtualRuntime.play` does."""
    seen: list[Seen] = []

    def ended() -> bool:
        return bool(seen) and seen[-1][1] != "next"

    subscription = stream.subscribe(recorder(seen, lambda: clock.elapsed), scheduler=clock)
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
