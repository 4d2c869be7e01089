"""The placement of a watch's items, and the trunk where they land."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from cuggino.errors import ConfigError
from cuggino.git import slot_home
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.watch.here import Here
from cuggino.loops.watch.options import WatchRunOptions
from cuggino.loops.watch.placement import Placement
from cuggino.loops.watch.slots import Places, Proposing
from cuggino.sandbox import views_of
from cuggino.stages import Services, commands_shell
from cuggino.stages.slots import (
    GATE,
    Gate,
    LandOn,
    Slot,
    Trunk,
    prepare_slot,
    publish_candidate,
    slots_of,
)
from cuggino.storage import Workspace

Landing: TypeAlias = Callable[[Workspace, Gate], Proposing]
"""Makes a trunk that items reach through pull requests, after its gate."""
PlacesOf: TypeAlias = Callable[[Services, LoopRunOptions, int, str], Placement]
"""Makes so many places for the tasks of a run, or for attempts at its work; the last is its id.

They are in the project that the services and options are of.
"""


def places_of(
    services: Services,
    options: WatchRunOptions,
    placement: Placement | None = None,
    landing: Landing | None = None,
) -> Places:
    """Return the places of a project's items, and its trunk; nothing is created.

    Without a `placement`, items are worked on in slots on this machine. With a `landing` they
    land through pull requests.

    Raises:
        ConfigError: the slot folder cannot be used, or the check command is missing.
    """
    gate = gate_of(services, options)
    proposing = landing(services.workspace, gate) if landing is not None else None
    if proposing is None and options.land_on == "pr":
        raise ConfigError('"landOn": "pr" requires a landing through pull requests')
    land_on: LandOn = "branch" if options.land_on == "branch" else "follow"
    trunk = proposing or Trunk(gate, land_on=land_on)

    return Places(
        placement=placement or here_of(services, options, options.slots),
        trunk=trunk,
        gate=gate,
        folder=slot_home(options.cwd, options.slot_folder),
        proposing=proposing,
    )


def gate_of(services: Services, options: WatchRunOptions | LoopRunOptions) -> Gate:
    """Return the gate of a project; nothing is created.

    Raises:
        ConfigError: the slot folder cannot be used, or the check command is missing.
    """
    if options.check_command is None:
        raise ConfigError("more than one slot requires a check command")
    home = slot_home(options.cwd, options.slot_folder)
    tree = Slot(number=0, root=home / GATE, folder=home / GATE, project=options.cwd)
    at_gate = options.model_copy(update={"cwd": tree.folder, "env": {**options.env, **tree.env}})
    return Gate(
        options.cwd,
        tree.folder,
        check_command=options.check_command,
        setup_command=options.setup_command,
        shell=commands_shell(services.shell, at_gate),
        specs=options.specs_path,
        command_timeout=options.command_timeout,
        views=views_of(at_gate),
        flakes=services.workspace.flakes,
    )


def here_of(
    services: Services, options: WatchRunOptions | LoopRunOptions, count: int, _run: str = ""
) -> Here:
    """Return so many slots of a project on this machine; nothing is created."""
    return Here(
        services=services,
        folders=slots_of(options.cwd, options.slot_folder, count, views=views_of(options)),
        prepare=partial(prepare_slot, specs=options.specs_path),
        publish=publish_candidate,
        specs=options.specs_path,
    )
