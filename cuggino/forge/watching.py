"""The companions of a watch that its project's configuration and its program ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from reactivex import Observable

from cuggino.config import BacklogSource, Config
from cuggino.errors import ConfigError
from cuggino.forge.answering import answered
from cuggino.forge.claiming import claim_with, reclaimed
from cuggino.forge.command_sources import command_source
from cuggino.forge.desk import Desk, Tracker
from cuggino.forge.finding import forge_of, remote_url
from cuggino.forge.hooks import hooks_of
from cuggino.forge.importing import imported
from cuggino.forge.issue_sources import issue_source
from cuggino.forge.programs import check_program
from cuggino.forge.redaction import Redaction
from cuggino.forge.reporting import reported
from cuggino.forge.source import Look, Source, source_of
from cuggino.loops import Companion
from cuggino.sandbox import Views
from cuggino.stages import command_lines
from cuggino.storage import Origins, Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The companions of a watch, and its claim on items."""

    companions: tuple[Companion, ...] = ()
    claim: Callable[[str], Observable[bool]] | None = None
    """Emits whether work on an item may begin on this machine."""


def beside_watch(
    config: Config,
    *,
    workspace: Workspace,
    views: Views | None,
    redact: Redaction,
    sources: Sequence[Source | Look] = (),
) -> Beside:
    """Return the companions of a watch: sources, reports, and hooks, which see their events.

    `sources` are added to the configured ones. `views` are those of commands, and `redact`
    masks text that must not leave this machine.

    Raises:
        ConfigError: a setting or a source cannot be used; a source has the name of another, its
            program is not installed, or no repository is known.
    """
    folder = workspace.root
    trackers = _trackers(config, folder)
    found = _sources(config, trackers, folder, views, sources)
    desk = Desk(workspace, trackers, redact=redact, specs=folder / config.specs_path)
    reports = (reported(desk), answered(desk), reclaimed(desk)) if trackers else ()
    hooks = hooks_of(config, folder, url_of=Origins(workspace).page)
    return Beside(
        companions=(
            *((imported(found, workspace),) if found else ()),
            *reports,
            *((hooks,) if hooks is not None else ()),
        ),
        claim=claim_with(desk) if trackers else None,
    )


def sources_of(
    config: Config, *, folder: Path, views: Views | None, more: Sequence[Source | Look] = ()
) -> list[Source]:
    """Return the configured sources and the given ones.

    Raises:
        ConfigError: as `beside_watch`.
    """
    return _sources(config, _trackers(config, folder), folder, views, more)


def _trackers(config: Config, folder: Path) -> dict[str, Tracker]:
    found: dict[str, Tracker] = {}
    for settings in config.backlog_sources:
        if settings.type != "command":
            check_program(settings.type)
            forge = forge_of(settings, remote_url(folder), project=folder)
            found[settings.title] = Tracker(forge=forge, settings=settings)
    return found


def _sources(
    config: Config,
    trackers: dict[str, Tracker],
    folder: Path,
    views: Views | None,
    more: Sequence[Source | Look],
) -> list[Source]:
    def made(settings: BacklogSource) -> Source:
        if settings.command is None:
            return issue_source(trackers[settings.title].forge, settings)
        run = partial(
            command_lines, settings.command, folder, views=views, show=config.sandbox_show
        )
        return command_source(settings.title, run, every=settings.every, network=settings.network)

    found = [*map(made, config.backlog_sources), *map(source_of, more)]
    names = [source.name for source in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(
            f"several sources have the name {twice[0]}",
            hint='give each of "backlogSources" a "name" of its own',
        )
    return found
