"""What the stages of one piece of work share: services, options, session files, supervision."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from reactivex import Observable

from cuggino.agents.base import SpawnOptions
from cuggino.operators import Flow
from cuggino.operators.mistakes import require_text
from cuggino.operators.supervision import Ledger
from cuggino.sandbox import Protected, ViewRole
from cuggino.stages.agent import LINGER
from cuggino.stages.command import Shell, shell_lines
from cuggino.stages.options import StageOptions
from cuggino.stages.services import Services
from cuggino.stages.spawning import commands_shell, plain_shell, protected_from_commands
from cuggino.stages.supervision import Supervision, supervision_of
from cuggino.storage import WORKSPACE_FOLDER, Session, new_run_id

_SESSION = re.compile(r"[\w-]+", re.ASCII)

Begin: TypeAlias = Callable[[SpawnOptions], Flow[SpawnOptions]]
"""Runs before each agent, within its stage; returns the options of its session."""


def at_once(options: SpawnOptions) -> Flow[SpawnOptions]:
    """Begin the session with the given options."""
    yield from ()
    return options


def require_place(place: object) -> None:
    """Raise a TypeError unless this is a workplace."""
    if not isinstance(place, Workplace):
        raise TypeError(
            f"a stage needs a Workplace, not {type(place).__name__}: "
            "Runtime.workplace(focus=...) makes one"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """What the stages of one piece of work share. `Runtime.workplace` makes one.

    Use `dataclasses.replace` for a stage that differs, for example in its focus.
    """

    services: Services
    options: StageOptions
    session: Session
    """The plan, the progress log and the review, through which agents hand on their work."""
    supervision: Supervision
    """The limits and retries of agents; its ledger adds up their costs."""
    focus: str = ""
    """The task, as the agents get it."""
    linger: float = LINGER
    """Seconds an agent gets after its terminal marker to deliver its result."""
    command_timeout: float | None = None
    """Seconds that a setup or check command may take."""
    apart: tuple[Path, ...] = ()
    """Folders of others that agents may not touch, if the project is a slot."""
    is_open: bool = True
    """True if the files of the session exist, as in a loop; else the first stage creates them."""
    is_named: bool = False
    """True if a later process may continue with the files of the session."""
    begin: Begin = at_once
    """Runs before each agent: a loop pauses there, and takes a snapshot."""

    @classmethod
    def of(
        cls,
        services: Services,
        options: StageOptions,
        *,
        focus: str = "",
        command_timeout: float | None = None,
        session: str | None = None,
    ) -> Workplace:
        """Return a workplace with a session and a new ledger. Nothing is written yet.

        The session is a new one, unless it gets a name: then it has the files of an earlier process
        that gave it the same one.

        Raises:
            ValueError: the name has other characters than letters, digits, `_` and `-`.
        """
        if session is not None:
            require_text("session", session)
            if not _SESSION.fullmatch(session):
                raise ValueError(f"{session!r} cannot be the name of a session: use a-z, 0-9 and -")
        return cls(
            services=services,
            options=options,
            session=Session(session or new_run_id(), services.workspace.wip),
            is_named=session is not None,
            supervision=supervision_of(options, gate=services.gate, ledger=Ledger()),
            focus=focus,
            command_timeout=command_timeout,
            is_open=False,
        )

    @contextmanager
    def held(self, *, command: str = "a Python program") -> Iterator[None]:
        """Lock the project within the block, and remove the files of the session at its end.

        Those of a session with a name stay after an exception or a disposal. `command` names the
        holder to others who want the project. Stages work without the lock, too; then two processes
        can disturb each other, and the files stay in `.cuggino/wip/`.

        Raises:
            WorkspaceLocked: another process holds the project.
        """
        workspace, name = self.services.workspace, self.session.id
        with workspace.session(command=command, session_id=name) as session:
            session.keep = self.is_named
            yield
            session.keep = False

    def reviewers(self, count: int) -> tuple[Workplace, ...]:
        """Return a workplace for each of several reviewers that work at the same time.

        Each has a review file of its own; the plan and the log are shared.
        """
        sessions = self.session.reviewers(count)
        return tuple(replace(self, session=session) for session in sessions)

    @property
    def shell(self) -> Shell:
        """The shell of commands that run what agents have written: in the implementer's view."""
        return commands_shell(self.services.shell, self.options)

    @property
    def plain_shell(self) -> Shell:
        """The shell of the user's own commands, without a view."""
        return plain_shell(self.services.shell, self.options)

    @property
    def is_verified(self) -> bool:
        """True if what commands change is checked; a shell of one's own decides that itself."""
        return self.services.shell is shell_lines

    def protected(
        self, stage: str, *, role: ViewRole = "implementing", enclosed: bool = True
    ) -> Protected:
        """Return the paths that a command of a stage may not change (`protected_from_commands`)."""
        return protected_from_commands(
            self.options, stage, session=self.session, role=role, enclosed=enclosed
        )

    def state(self) -> Observable[str]:
        """Emit the fingerprint of the project and its plan, without the specifications."""
        exclude = (Path(self.options.specs_path), Path(WORKSPACE_FOLDER))
        plan = self.session.session_file
        return self.services.project_state(self.options.cwd, exclude=exclude, plan=plan)

    def prepare(self) -> None:
        """Create the files of the session, unless the workplace is open.

        Raises:
            ConfigError: a link leads to the files of another program.
            StorageError: they cannot be created.
        """
        if not self.is_open:
            self.services.workspace.open()
            self.session.create()
