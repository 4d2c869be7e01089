"""The roles of agents: their sandbox, and changes that they may not make."""

from cuggino.events.supervision import SupervisionEvent


class SandboxChosen(SupervisionEvent):
    """The sandbox that confines agents to their roles; emitted once by each process of a run.

    A watch emits it for all its items. It is not emitted where the sandbox is turned off, or where
    no agent of the loop can be started in one.
    """

    engine: str
    """`bubblewrap+overlay`, `bubblewrap`, `landlock` or `none`."""
    held: tuple[str, ...]
    """The roles for which the system confines agents and everything that they start."""
    not_held: tuple[str, ...] = ()
    """The other roles; what they change without permission is reverted after each session."""
    reason: str = ""
    """The reason why the sandbox is not the best one, or does not cover all roles."""


class RoleViolated(SupervisionEvent):
    """A session or a command changed something that its role may not write; it was reverted."""

    role: str
    paths: tuple[str, ...]
    """Relative to the project; `HEAD:PATH` in a commit, `:PATH` in git's index, or a reference."""
    kept: str | None = None
    """The reference, or without git the folder, that keeps what the session wrote."""
    failed: tuple[str, ...] = ()
    """The paths that could not be restored."""
    void: bool = True
    """True if the verdict is void and the agent is replaced; false for commands of a run, and if
    there are only new files, such as those of a test run."""


class ProtectedChanged(SupervisionEvent):
    """Something that the role may not write changed during a session, and was left as it is.

    A person may have edited it.
    """

    role: str
    paths: tuple[str, ...]


class InstructionsChanged(SupervisionEvent):
    """Files that instruct agents, such as `AGENTS.md`, changed during a session that may do so.

    They are part of the work. Later agents that only look are told that they are no instructions,
    and read them as they were at the start of the run wherever a view can show them so.
    """

    role: str
    paths: tuple[str, ...]
