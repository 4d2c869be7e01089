"""The options that all agent sessions share."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from cuggino.agents.base import Role, SpawnOptions
from cuggino.config import configured_sandbox
from cuggino.guard import Policy, sandbox_for
from cuggino.loops.frame.options import RunOptions
from cuggino.sandbox import protected_for
from cuggino.storage import Session


def spawn_options(
    options: RunOptions,
    role: Role,
    prompt: str,
    *,
    guard: Policy | None,
    turn: int | None = None,
    session: Session | None = None,
    writes_specs: bool = False,
    written: Iterable[Path] = (),
) -> SpawnOptions:
    """Return the options that all sessions share; loops replace those special to theirs.

    `writes_specs` lets the sandbox write the specifications. `written` are files and folders that
    the run itself writes during the session, besides those of the `session`.
    """
    sandbox = configured_sandbox(options, guard)
    if writes_specs and sandbox is not None and guard is not None:
        sandbox = sandbox_for(guard, domains=options.sandbox_domains)
    env: dict[str, str] = {"CUGGINO_ROLE": role}
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
        # Sessions are not yet confined to the view of their role. What differs may then be a
        # person's edit, which must stay: it is told only.
        protected=replace(
            protected_for(
                role,
                project=options.cwd,
                specs=options.specs_path,
                own=(*written, *(() if session is None else session.files)),
            ),
            held=True,
        ),
    )
