"""The options that all sessions of agents share, and the boundaries around them."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cuggino.agents.base import LlmAgent, Role, SpawnOptions
from cuggino.config import configured_sandbox
from cuggino.errors import ConfigError
from cuggino.events import SandboxChosen
from cuggino.guard import Policy, sandbox_for
from cuggino.sandbox import (
    NO_BOUNDARY,
    Boundary,
    Protected,
    RoleView,
    ViewRole,
    holds_commands,
    home_of,
    named_paths,
    probe,
    protected_for,
    role_view,
    views_of,
)
from cuggino.stages.command import Shell, enclosed_shell, shell_lines, shell_with
from cuggino.stages.options import StageOptions
from cuggino.storage import Session


def spawn_options(
    options: StageOptions,
    role: Role,
    prompt: str,
    *,
    guard: Policy | None,
    turn: int | None = None,
    session: Session | None = None,
    writes_specs: bool = False,
    written: Iterable[Path] = (),
    agent: LlmAgent | None = None,
    folder: Path | None = None,
    drafts: bool = True,
) -> SpawnOptions:
    """Return the options that all sessions share; loops replace those special to theirs.

    `writes_specs` lets the sandbox write the specifications. `written` are files and folders that
    the run itself writes during the session, besides those of the `session`. `agent` works as the
    role, in a view if it supports that, and delivers its files in the `folder`. `drafts` as in
    `SpawnOptions`. A `guard` leaves the paths of writes to a view that certainly confines the role.

    Raises:
        ConfigError: the sandbox is required, and cannot be enforced.
    """
    sandbox = configured_sandbox(options, guard)
    if writes_specs and sandbox is not None and guard is not None:
        sandbox = sandbox_for(guard, domains=options.sandbox_domains)
    boundary = boundary_for(options, role, agent)
    view: RoleView | None = None
    if boundary.engine != "none":
        held = boundary.holds(role)
        if guard is not None:
            same_home = home_of({**os.environ, **options.env}) == home_of(os.environ)
            guard = guard._replace(confined=held and same_home)
        view = role_view(
            role,
            project=options.cwd,
            specs=options.specs_path,
            folder=folder,
            hide=options.sandbox_hide,
            show=options.sandbox_show,
        )
        if held and not (options.sandbox_domains or options.limits_network):
            sandbox = None  # one around single commands would keep git from working
    env: dict[str, str] = {**options.env, "CUGGINO_ROLE": role}
    if session is not None:
        env["CUGGINO_SESSION_FILE"] = str(session.session_file)
    return SpawnOptions(
        prompt=prompt,
        cwd=options.cwd,
        dangerously_skip_permissions=True,
        session_id=str(uuid.uuid4()),
        role=role,
        turn=turn,
        model=options.model,
        env=env,
        guard=guard,
        sandbox=sandbox,
        view=view,
        drafts=drafts,
        shows=tuple(options.sandbox_show),
        protected=protected_for(
            role,
            project=options.cwd,
            specs=options.specs_path,
            own=(*written, *(() if session is None else session.folders)),
            held=boundary.holds(role),
            views=views_of(options),
        ),
    )


def boundary_for(options: StageOptions, role: Role, agent: LlmAgent | None) -> Boundary:
    """Return the boundary of a role's sessions: none if one of its agents supports no view.

    Raises:
        ConfigError: the sandbox is required, and cannot be enforced.
    """
    if options.sandbox == "off" or agent is None:
        return NO_BOUNDARY
    without = [one.name for one in agent.agents_for(role) if not one.capabilities.view]
    if without:
        boundary = Boundary(reason=f"{without[0]} cannot be started in a sandbox")
    else:
        boundary = probe(options.cwd, home=home_of(os.environ))
    if options.sandbox == "require" and not boundary.holds(role):
        raise ConfigError(
            f'the sandbox is required, but nothing confines the role "{role}": '
            f"{boundary.reason or 'an engine for it is missing'}",
            hint='see `cuggino doctor`, or set "sandbox": "auto"',
        )
    return boundary


def commands_shell(shell: Shell, options: StageOptions) -> Shell:
    """Return the shell of commands that run what agents have written: in the implementer's view.

    A `shell` other than the default decides itself where commands run and what they may write.
    """
    if shell is not shell_lines:
        return plain_shell(shell, options)
    views = views_of(options)
    return plain_shell(shell, options) if views is None else enclosed_shell(views, options.env)


def plain_shell(shell: Shell, options: StageOptions) -> Shell:
    """Return the shell of commands without a view, with the variables of the options.

    A `shell` other than the default decides itself on the environment of its commands.
    """
    return shell_with(options.env, options.sandbox_show) if shell is shell_lines else shell


def choose_sandbox(
    options: StageOptions, agent: LlmAgent, roles: Sequence[Role]
) -> SandboxChosen | None:
    """Return the event that reports the sandbox of a loop's roles.

    None if the sandbox is turned off, or if no agent of the loop supports a view.

    Raises:
        ConfigError: the sandbox is required, and cannot be enforced for each of them, or it would
            hide the project.
    """
    agents = (one for role in roles for one in agent.agents_for(role))
    supported = any(one.capabilities.view for one in agents)
    if options.sandbox == "off" or not (supported or options.sandbox == "require"):
        return None
    hidden = named_paths(options.sandbox_hide, home_of(os.environ))
    if options.cwd.resolve() in (path.resolve() for path in hidden):
        raise ConfigError(
            f"sandboxHide names the project itself: {options.cwd}",
            hint="remove it, or name files and folders within the project",
        )
    found = {role: boundary_for(options, role, agent) for role in roles}
    held = tuple(role for role, boundary in found.items() if boundary.holds(role))
    names = [boundary.name for boundary in found.values() if boundary.engine != "none"]
    reasons = dict.fromkeys(boundary.reason for boundary in found.values() if boundary.reason)
    if hidden and any(boundary.engine != "bubblewrap" for boundary in found.values()):
        reasons["sandboxHide has no effect without bubblewrap"] = None
    if options.limits_network:
        reasons.update(dict.fromkeys(_unlimited(options, agent, roles)))
    return SandboxChosen(
        engine=names[0] if names else "none",
        held=held,
        not_held=tuple(role for role in found if role not in held),
        reason="; ".join(reasons),
    )


def _unlimited(options: StageOptions, agent: LlmAgent, roles: Sequence[Role]) -> Iterator[str]:
    """Yield each agent with unlimited network access, with the reason."""
    for role in roles:
        for one in agent.agents_for(role):
            why = "the guard is off" if options.guard == "off" else one.sandbox_unavailable()
            if why:
                yield f"nothing limits the network of {one.name} for imported items: {why}"


def protected_from_commands(
    options: StageOptions,
    stage: str,
    *,
    session: Session,
    role: ViewRole = "implementing",
    enclosed: bool = True,
) -> Protected:
    """Return the paths that a command of a run may not change.

    `stage` names it in events; `role` is the one that works in the loop. `enclosed` if it gets a
    view wherever the options and the system allow that.
    """
    return protected_for(
        role,
        project=options.cwd,
        specs=options.specs_path,
        own=(*session.outputs, *session.folders),
        held=enclosed and options.sandbox != "off" and holds_commands(options.cwd),
        views=views_of(options),
        name=stage,
    )
