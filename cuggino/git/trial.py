"""A trial of git, and of the check's program, in the views of a run: before anything is paid."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from cuggino.errors import ProcessError
from cuggino.git.messages import gist
from cuggino.git.obstacles import CommitObstacle, git_failure
from cuggino.git.program import ANSWER_S, Git, git_environment
from cuggino.processes import run_bounded
from cuggino.sandbox import Views, home_of, named_paths

_TOP = ("rev-parse", "--show-toplevel")
_PLAIN_NAME = re.compile(r"[\w.+-]+")
_HINT = 'see `cuggino help sandbox`; "sandbox": false in .cuggino.json turns it off'


def view_obstacles(
    folder: Path, views: Views | None, *, check_command: str | None = None
) -> Iterator[CommitObstacle]:
    """Yield what works here, but not in the views of a run: git, and the program of the check.

    Nothing of the project is started. Nothing is yielded without views, or for a folder where git
    does not work anyway.
    """
    if views is None or git_failure(folder) is not None:
        return
    hidden = named_paths(views.hide, home_of(os.environ))
    if folder.resolve() in (path.resolve() for path in hidden):
        return  # that is refused with a sentence of its own
    try:
        yield from _obstacles(folder, views, check_command)
    except ProcessError as error:
        yield CommitObstacle(f"nothing can be started in the sandbox: {error}", _HINT)


def _obstacles(folder: Path, views: Views, check_command: str | None) -> Iterator[CommitObstacle]:
    top = Git(cwd=folder).now(*_TOP)
    commands = views.of_commands(folder)
    kinds = {
        "of a reviewer": views.of_role("reviewing", folder),
        "of an implementer": commands,
        "of git": views.of_git(folder),
    }
    within = partial(run_bounded, seconds=ANSWER_S, cwd=folder, env=git_environment())
    for name, enclosure in kinds.items():
        if enclosure is None or top.code:
            continue
        said = within(("git", *_TOP), enclosure=enclosure)
        if (said.code, said.text) != (top.code, top.text):
            why = gist(said.words) or f"it finds {said.text} instead of {top.text}"
            yield CommitObstacle(f"git does not work in the view {name}: {why}", _HINT)
    program = _program_of(check_command)
    if commands is None or program is None or shutil.which(program) is None:
        return
    asks = ("/bin/sh", "-c", 'command -v -- "$0"', program)
    if within(asks, enclosure=commands).code:
        what = f"the check's program, {program}, cannot be seen in the sandbox"
        yield CommitObstacle(what, _HINT)


def _program_of(command: str | None) -> str | None:
    """Return the program of a command line, if it is a plain name."""
    try:
        words = shlex.split(command or "")
    except ValueError:
        return None
    return words[0] if words and _PLAIN_NAME.fullmatch(words[0]) else None
