"""Checks that a machine without the project, such as a worker of a cluster, can work on an item."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from cuggino.agents import is_import_path
from cuggino.config import Config
from cuggino.doctor.agent_checks import check_program, permissions
from cuggino.doctor.agents import inspect_agents
from cuggino.doctor.result import CheckResult, Place, about, note, ok, problem
from cuggino.doctor.sandbox import roles
from cuggino.errors import ProcessError, ProcessFailed
from cuggino.git import SSH_COMMAND, Git, git_failure, ssh_environment

GIT_SECONDS = 20.0
"""Time limit for the remote."""
LEAST_FREE = 2_000_000_000
"""Free bytes below which there is hardly room for a clone and agents' installations."""

_PROBE_REF = "refs/cuggino/check"
_GIGABYTE = 1_000_000_000


def check_machine(
    agents: Mapping[str, str | None],
    *,
    config: Config,
    folder: Path,
    remote: str | None,
    env: Mapping[str, str] | None = None,
) -> Iterator[CheckResult]:
    """Yield the results for this machine; attempts would work in `folder`.

    Nothing is changed, neither here nor at the remote: a push is only tried.

    Args:
        agents: the agents that items need, each with its program or None.
        config: `guard` and `sandbox` count.
        folder: where clones of the project would be.
        remote: the URL that is cloned and pushed to; None if it is unknown.
        env: the environment that agents would get.
    """
    environment = os.environ if env is None else env
    with ThreadPoolExecutor(max_workers=4) as pool, tempfile.TemporaryDirectory() as empty:
        place = Path(empty)
        others = pool.submit(inspect_agents, place)
        reach = pool.submit(_remote, remote, place) if remote is not None else None
        for name, path in agents.items():
            yield from _agent(name, path, place, config, environment)
        ready = [report for report in others.result() if report.state == "ready"]
        if also := [f"{one.name} {one.version}" for one in ready if one.name not in agents]:
            yield ok(f"agents: also {', '.join(also)}")
        if reach is not None:
            yield reach.result()
        there = Place(folder=place, env=environment, uid=os.getuid(), config=config)
        yield from about("sandbox", lambda: roles(there))
    yield _disk(folder)


def _agent(
    name: str, path: str | None, folder: Path, config: Config, env: Mapping[str, str]
) -> Iterator[CheckResult]:
    if is_import_path(name) or ":" in name:
        yield note(f"agent: {name} is not checked: it is code of the project")
        return
    yield from check_program(name, folder, path)
    may_work = permissions(name, env=env, uid=os.getuid(), guarded=config.guard != "off")
    if may_work.status == "problem":
        yield may_work


def _remote(remote: str, folder: Path) -> CheckResult:
    """Check that the remote can be read and written, by a push that is only tried."""
    shown = _shown(remote)
    if failure := git_failure(folder):
        return problem(f"git: {failure}", "install git")
    identity = ("-c", "user.name=cuggino", "-c", "user.email=cuggino@localhost")
    try:
        quiet = ssh_environment(Git(cwd=folder).now(*SSH_COMMAND))
        env = {**quiet, "GIT_DIR": str(folder / "probe.git")}
        git = partial(_git, env=env, folder=folder)
        git("init", "--quiet", "--bare", str(folder / "probe.git"))
        tree = git("hash-object", "-w", "-t", "tree", "--stdin")
        commit = git(*identity, "commit-tree", tree, "-m", "cuggino cluster check")
        git("ls-remote", remote, "HEAD")
    except ProcessError as error:
        hint = "every worker clones it: give the worker access and credentials"
        return problem(f"remote: git cannot read {shown}: {_why(error)}", hint)
    try:
        git("push", "--dry-run", "--quiet", remote, f"{commit}:{_PROBE_REF}")
    except ProcessError as error:
        hint = "workers push their work to refs/cuggino/: allow that"
        return problem(f"remote: git may not push to {shown}: {_why(error)}", hint)
    return ok(f"remote: git reads {shown} and may push to it")


def _git(*words: str, env: Mapping[str, str], folder: Path) -> str:
    said = Git(cwd=folder).now(*words, env=env, limit=GIT_SECONDS)
    return said.checked("git").text.strip()


def _why(error: ProcessError) -> str:
    match error:
        case ProcessFailed():
            lines = error.stderr_tail.strip().splitlines() or ["no reason given"]
            named = (line for line in lines if line.startswith(("fatal:", "error:", "ERROR:")))
            return _shown(next(named, lines[-1]).partition(": ")[2] or lines[-1])
        case _:
            return error.message


def _shown(url: str) -> str:
    """Return the text without passwords in its URLs."""
    return re.sub(r"://[^/@\s]+@", "://", url)


def _disk(folder: Path) -> CheckResult:
    """Check the free space where attempts work."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return problem(f"disk: {folder} cannot be used: {error.strerror}")
    what = f"disk: {free / _GIGABYTE:.1f} GB free in {folder}"
    if free < LEAST_FREE:
        hint = "free some, or start the worker with another --local-directory"
        return problem(what, hint)
    return ok(what)
