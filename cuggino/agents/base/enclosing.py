"""The view of a session: what its program reads and writes besides the project."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from cuggino.agents.base.private_files import Session, private_folder
from cuggino.errors import StorageError
from cuggino.programs import programs_folder
from cuggino.sandbox import Enclosure, RoleView, home_of, installed, make_granted, probe


def enclosure_of(
    view: RoleView | None,
    *,
    env: Mapping[str, str],
    stack: ExitStack,
    programs: Iterable[str] = (),
    state: Iterable[Path] = (),
    rewritten: Iterable[Path] = (),
    settings: Iterable[Path] = (),
) -> Enclosure | None:
    """Return the enclosure of a session, or None without a view or without an engine.

    The program has this environment and reads what `programs` and the private files of the `stack`
    are. `state` are folders that it writes, created if they are missing. `rewritten` are files in
    the home folder that it replaces; where writes in that folder succeed and vanish, so do these.
    `settings` are parts of the state that decide what runs in later sessions, and stay as they are.

    Raises:
        StorageError: a folder cannot be created.
    """
    if view is None:
        return None
    home = home_of(env)
    boundary = probe(view.project, home=home)
    if boundary.engine == "none":
        return None
    folders, kept = list(state), list(settings)
    if not boundary.overlay:
        folders += [path for path in rewritten if path.exists()]
    scratch = private_folder(stack) if boundary.engine != "bubblewrap" else None
    read = [*installed(env, programs)]
    if isinstance(stack, Session):
        read += stack.read
        folders += stack.written
    shown = view.with_program(
        home=home, state=folders, visible=read, read_only=kept, shown=(programs_folder(),)
    )
    try:
        for path in folders:
            if not path.exists():
                path.mkdir(parents=True)
        make_granted(shown)
    except OSError as error:
        raise StorageError(
            "prepare sandbox", f"cannot create a folder of the session: {error}"
        ) from error
    return boundary.enclose(shown, scratch=scratch)
