"""The audit agent, which looks for problems in idle time (CUG-004, CUG-120 to CUG-126)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from reactivex import Observable

from cuggino.agents.base import SpawnOptions, is_guarded
from cuggino.config import configured_policy
from cuggino.errors import BudgetExceeded, CugginoError
from cuggino.events import (
    Event,
    ToBeDiscussed,
    WatchAuditEnded,
    WatchAuditFailed,
    WatchAuditStarted,
    WatchEvent,
    WatchTbdItemFound,
)
from cuggino.operators import Flow, emit, extract_markers, flow, forward, marker_tags
from cuggino.operators.mapcat import mapcat
from cuggino.stages.spawning import spawn_options
from cuggino.stages.workplace import Workplace, require_place
from cuggino.storage import Workspace

AUDIT_VARIABLES = ("specs_path", "tbd_path", "known", "memory")
"""The variables available to the template of the audit."""


def audit_stage(place: Workplace) -> Observable[WatchEvent]:
    """Look for problems in the project; each finding is stored as it is declared.

    ::

        agent:           -f---|
        audit_stage:     A(TF)---(E|)

    Emits `WatchAuditStarted`, the agent's events, for every finding its marker and then
    `WatchTbdItemFound`, and at the end `WatchAuditEnded`, or `WatchAuditFailed`: a failure of the
    agent does not fail the stream. A finding that is unfinished at disposal is lost. The audit
    does not wait for a usage limit. Disposal terminates the agent and its processes.

    Errors: `BudgetExceeded`, as the budget of all agents is spent.
    """
    require_place(place)
    workspace = place.services.workspace

    def store(event: Event) -> Iterable[Event]:
        yield event
        if isinstance(event, ToBeDiscussed):
            filename = workspace.write_tbd_item(event.content)
            yield WatchTbdItemFound(content=event.content, filename=filename)

    def audit() -> Flow[None]:
        yield from emit(WatchAuditStarted())
        supervision = replace(place.supervision, wait_for_quota=False)
        try:
            events = supervision.session(
                place.services.agent,
                _session(place),
                read=extract_markers(marker_tags(ToBeDiscussed)),
            )
            yield from forward(events.pipe(mapcat(store)))
        except BudgetExceeded:
            raise
        except CugginoError as error:
            yield from emit(WatchAuditFailed(message=error.message))
            return
        yield from emit(WatchAuditEnded())

    return flow(audit)


def _session(place: Workplace) -> SpawnOptions:
    services, options = place.services, place.options
    workspace = services.workspace
    tbd = os.path.relpath(workspace.tbd, options.cwd)
    variables = {
        "specs_path": options.specs_path,
        "tbd_path": tbd,
        "known": _known(workspace),
        "memory": workspace.read_memory().strip() or "Nothing yet.",
    }
    guard = None
    if is_guarded(services.agent, "audit"):
        guard = configured_policy(options, "audit", project=options.cwd)
    prompt = f"Audit the project against the specifications in {options.specs_path}."
    common = spawn_options(
        options,
        "audit",
        prompt,
        guard=guard,
        written=(services.workspace.tbd,),
        agent=services.agent,
        drafts=services.drafts,
    )
    return replace(
        common,
        system_prompt=services.prompts.render("audit", variables),
        env={**common.env, "CUGGINO_SPECS_PATH": options.specs_path},
    )


def _known(workspace: Workspace) -> str:
    """Return the open findings and spec issues, a line each."""
    lines = [f"- {issue.title}" for issue in workspace.issues()]
    return "\n".join(lines) or "None."
