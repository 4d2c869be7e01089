"""Checks of git, and of what a run commits and pushes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cuggino.config import CONFIG_FILE
from cuggino.doctor.result import CheckResult, Place, note, ok, problem
from cuggino.git import (
    Git,
    commit_obstacles,
    git_failure,
    git_refusal,
    program_settings,
    repository_state,
)

_NO_UNDO = "without git `cuggino undo` restores nothing, and reports have no diffs"


def repository(place: Place) -> Iterator[CheckResult]:
    """Check the git repository, and with `commit` that commits can be made."""
    folder, commit = place.folder, place.config.commit

    def missing(what: str, hint: str) -> CheckResult:
        if commit:
            return problem(what, hint)
        return note(f"{what} (commit is off)", f"{hint}; {_NO_UNDO}")

    off = f', or set "commit" to false in {CONFIG_FILE}' if commit else ""
    if failure := git_failure(folder):  # before GitPython, which would wait for it, or not load
        what = failure.removeprefix("git ").removeprefix("is ")
        yield missing(what, f"install git (again){off}")
        return
    try:
        state = repository_state(folder)
    except Exception as error:  # GitPython raises many types
        found = re.search(r"(?:fatal|error): (.+)", str(error))
        system = error.strerror if isinstance(error, OSError) else None
        said = found[1] if found else system
        reason = git_refusal(folder) or said or type(error).__name__
        yield missing(reason, "see what `git status` says here")
        return
    if state is None:
        yield missing("no repository here", f"run `git init`{off}")
        return
    branch = f"branch {state.branch}" if state.branch else "no branch (detached HEAD)"
    yield ok(f"repository {state.root}, {branch}")
    if commit and not state.branch:
        remedy = "git switch -c NAME: commits that are on no branch are easily lost"
        yield note("a run would commit on no branch", remedy)
    if state.head is None:
        yield note("no commit yet", "commit once, so that changes can be compared")
    if state.dirty:
        hint = "`dirty` decides what a run commits of them" if commit else None
        yield note("uncommitted changes", hint)
    if commit:
        yield from committer(folder)
        for obstacle in commit_obstacles(folder, looking=True):
            yield problem(obstacle.what, obstacle.hint)
    if settings := program_settings(folder):
        names = ", ".join(dict.fromkeys(setting.name for setting in settings))
        hint = "see `git config --list --show-origin`; nothing of it was started here"
        yield note(f"the repository's settings start programs: {names}", hint)


def committer(folder: Path) -> Iterator[CheckResult]:
    """Report the identity that commits are made with; a missing one is an obstacle."""
    given = _identity(folder, guess=False)
    if given is not None:
        yield ok(f"commits as {given}")
    elif (guessed := _identity(folder, guess=True)) is not None:
        set_it = "run `git config user.name NAME` and `git config user.email ADDRESS`"
        yield note(f"commits as {guessed}, which git guessed", set_it)


def _identity(folder: Path, *, guess: bool) -> str | None:
    options = () if guess else ("-c", "user.useConfigOnly=true")
    # Only git knows all the places that an identity may come from.
    names = ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT")
    told = [Git(cwd=folder).now(*options, "var", name) for name in names]
    if any(said.code for said in told):
        return None
    identity = told[-1].output.decode("utf-8", "replace")
    return identity[: identity.rfind(">") + 1]


def pushing(place: Place) -> Iterator[CheckResult]:
    """Report a `push` setting without commits to push."""
    config = place.config
    if config.push is not None and not config.commit:
        what = f'nothing is pushed to {config.push}, as "commit" is off'
        yield note(what, f'set "commit" to true in {CONFIG_FILE}, or remove "push"')
