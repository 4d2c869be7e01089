"""The CI of a project's pull request or commit, for a run that waits for it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from reactivex import Observable, defer

from cuggino.config import PullRequestSettings
from cuggino.errors import ConfigError, ForgeRefused
from cuggino.events import CiDone, Event, WatchForgeWaiting
from cuggino.forge.ci import Ci, ci_of
from cuggino.forge.finding import forge_of, remote_url
from cuggino.forge.model import Forge
from cuggino.forge.programs import check_program
from cuggino.git import Git, current_branch
from cuggino.operators import Flow, ask, emit, flow
from cuggino.operators.mapcat import mapcat

_MOST_NAMED = 10


class ProjectCi:
    """The CI of the project in a folder, as its forge reports it; see `cuggino.stages.Ci`.

    The forge is the one of `pullRequests`, or of the git remote. Nothing is asked before a run
    waits.
    """

    def __init__(
        self, project: Path, settings: PullRequestSettings, forge: Forge | None = None
    ) -> None:
        self._project = project
        self._settings = settings
        self._given = forge

    @cached_property
    def _forge(self) -> Forge:
        if self._given is not None:
            return self._given
        url = remote_url(self._project, self._settings.remote)
        forge = forge_of(self._settings, url, project=self._project)
        check_program(forge.kind)
        return forge

    def found(self, until: CiDone, cwd: Path) -> Observable[CiDone]:
        """Emit the open pull request of the current branch, or the current commit with its jobs.

        Errors: `ConfigError` if there is neither, or no forge.
        """

        def story() -> Flow[None]:
            if until.pull_request is not None or until.commit is not None:
                yield from emit(until)
                return
            forge, branch = self._forge, current_branch(cwd)
            pull = (yield from ask(forge.find_pull_request(branch))) if branch else None
            if pull is not None and pull.state == "open":
                yield from emit(until.model_copy(update={"pull_request": pull.number}))
                return
            head = (yield from Git(cwd=cwd).must("rev-parse", "HEAD")).text.strip()
            try:
                job = yield from ask(forge.jobs(head))
            except ForgeRefused:  # the forge does not know the commit
                job = None
            if job is None:
                raise ConfigError(
                    f"{branch or 'this commit'} has no open pull request, and commit {head[:12]} "
                    f"no job on {forge.host}: there is no CI to wait for"
                )
            yield from emit(until.model_copy(update={"commit": head}))

        return flow(story)

    def outcome(self, until: CiDone, cwd: Path) -> Observable[Event | str]:
        """Emit how the jobs have ended, once they have; before that, outages of the forge."""

        def polled(_scheduler: Any) -> Observable[Ci | WatchForgeWaiting]:
            of = until.pull_request if until.pull_request is not None else until.commit
            assert of is not None
            return ci_of(self._forge, of)

        def shown(one: Ci | WatchForgeWaiting) -> tuple[Event | str, ...]:
            if isinstance(one, WatchForgeWaiting):
                return (one,)
            return (_text(one),) if one.is_settled else ()

        return defer(polled).pipe(mapcat(shown))


def _text(ci: Ci) -> str:
    commit = f"commit {ci.commit[:12]}"
    if ci.state == "none":
        return f"{commit} has no jobs"
    named = [f"{job.name} {job.state}" for job in ci.failed or ci.jobs]
    return f"{ci.state} at {commit} ({', '.join(named[:_MOST_NAMED])})"
