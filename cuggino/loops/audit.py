"""The audit agent: finds what nobody has asked for, in idle time (CUG-004, CUG-120 to CUG-126)."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from dataclasses import replace

from reactivex import Observable

from cuggino.agents.protocol import LlmAgent, SpawnOptions, is_guarded
from cuggino.config import configured_policy, configured_sandbox
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
from cuggino.loops.options import WatchRunOptions
from cuggino.operators import Flow, emit, extract_markers, flow, forward, mapcat, marker_tags
from cuggino.prompts import Prompts
from cuggino.stages import Sessions, Supervision
from cuggino.storage import Workspace

AUDIT_VARIABLES = ("specs_path", "tbd_path", "known", "memory")
"""Which variables the template of the audit may use."""


def audit_stage(
    agent: LlmAgent,
    workspace: Workspace,
    prompts: Prompts,
    options: WatchRunOptions,
    supervision: Supervision | None = None,
) -> Observable[WatchEvent]:
    """Run the audit agent; each finding is stored as it is declared.

    Emits `WatchAuditStarted`, the agent's events, for every finding its marker and then
    `WatchTbdItemFound`, and at the end `WatchAuditEnded`, or `WatchAuditFailed`: a failure of the
    agent is no failure of the stream. A finding that is unfinished at disposal is lost. With a
    `supervision` the agent is retried, nudged and cut off as that says; it does not wait for a
    usage limit, as nobody waits for it.

    Errors: `BudgetExceeded`, since that of the watch is spent.
    """

    def store(event: Event) -> Iterable[Event]:
        yield event
        if isinstance(event, ToBeDiscussed):
            filename = workspace.write_tbd_item(event.content)
            yield WatchTbdItemFound(content=event.content, filename=filename)

    def run() -> Flow[None]:
        yield from emit(WatchAuditStarted())
        policies = replace(supervision or Supervision(), wait_for_quota=False)
        try:
            sessions = Sessions(
                agent,
                _session(agent, workspace, prompts, options),
                read=extract_markers(marker_tags(ToBeDiscussed)),
                budget=policies.remaining,
            )
            events = policies.around(sessions, sessions.first())
            yield from forward(events.pipe(mapcat(store)))
        except BudgetExceeded:
            raise
        except CugginoError as error:
            yield from emit(WatchAuditFailed(message=error.message))
            return
        yield from emit(WatchAuditEnded())

    return flow(run)


def _session(
    agent: LlmAgent, workspace: Workspace, prompts: Prompts, options: WatchRunOptions
) -> SpawnOptions:
    tbd = os.path.relpath(workspace.tbd, options.cwd)
    variables = {
        "specs_path": options.specs_path,
        "tbd_path": tbd,
        "known": _known(workspace),
        "memory": workspace.read_memory().strip() or "Nothing yet.",
    }
    guard = None
    if is_guarded(agent, "audit"):
        guard = configured_policy(options, "audit", project=options.cwd)
    return SpawnOptions(
        prompt=f"Audit the project against the specifications in {options.specs_path}.",
        cwd=options.cwd,
        system_prompt=prompts.render("audit", variables),
        dangerously_skip_permissions=True,
        session_id=str(uuid.uuid4()),
        role="audit",
        model=options.model,
        env={"CUGGINO_ROLE": "audit", "CUGGINO_SPECS_PATH": options.specs_path},
        guard=guard,
        sandbox=configured_sandbox(options, guard),
    )


def _known(workspace: Workspace) -> str:
    """The open findings and spec issues, a line each."""
    lines = [f"- {issue.title}" for issue in workspace.issues()]
    return "\n".join(lines) or "None."
