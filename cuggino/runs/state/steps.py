"""What each event changes of what a run does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal

from cuggino import events as ev
from cuggino.domain import (
    TokenCount,
    attempted_item,
    task_titles,
    title_of,
    unreset,
    until_text,
    with_window,
)
from cuggino.runs.state.run import NO_RUN, PASSING, STEPS, RunState, changed, on
from cuggino.runs.state.values import (
    ItemEnd,
    ItemPlace,
    Job,
    Question,
    RunningTool,
    Wait,
    later,
    process_begun,
)
from cuggino.runs.tools import tool_target

_CANDIDATES = "refs/cuggino/candidates/"
_WORDS = 500
"""Characters kept of the agent's last message."""
_TARGET = 500
"""Characters kept of a tool's main parameter."""


# The run


def _token_count(options: Mapping[str, object]) -> TokenCount:
    """Return how the tokens of the run are counted; a run without a limit counts plain ones."""
    weighs = options.get("count_tokens") == "weighted" and options.get("max_tokens")
    return "weighted" if weighs else "plain"


def _limits(options: Mapping[str, object]) -> dict[str, Any]:
    """Return the limits of the run in money and tokens."""
    budget = options.get("budget")
    return {
        "budget": float(budget) if isinstance(budget, int | float) else None,
        "max_tokens": _whole(options.get("max_tokens")) or None,
        "count_tokens": _token_count(options),
    }


@on(ev.RunStarted)
def _started(state: RunState, event: ev.RunStarted, at: datetime) -> RunState:
    if state.kind == "watch" and event.kind == "run":
        return state  # the run of an item
    options = event.options
    model = options.get("model")
    return changed(
        state,
        kind=event.kind,
        run_id=event.run_id,
        focus=event.focus,
        agent=event.agent,
        model=model if isinstance(model, str) else None,
        **_limits(options),
        max_iterations=_whole(options.get("max_iterations")),
        slots=_slots(event),
        active_slots=_slots(event),
        processes=(process_begun(at, event.command),),
        is_idle=False,
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _slots(event: ev.RunStarted) -> int:
    """Return the slots of a watch that has several, or those of several attempts."""
    slots = _whole(event.options.get("slots")) if event.kind == "watch" else event.attempts
    return slots if slots > 1 else 0


_PLACES: Mapping[ItemPlace | None, ItemPlace] = MappingProxyType(
    {
        "queue": "queue",
        "landing": "queue",
        "proposed": "proposed",
        "sent-back": "sent-back",
        "retry": "retry",
    }
)
"""The places of items after their process was killed."""


@on(ev.RunContinued)
def _continued(state: RunState, event: ev.RunContinued, at: datetime) -> RunState:
    """Return the state of a resumed run, without the running tools of the earlier process."""
    return changed(
        state,
        **(_limits(event.options) if event.options else {}),
        processes=(*state.worked_until(), process_begun(at, event.command)),
        tools=(),
        wait=None,
        items=tuple(
            changed(one, **{**NO_RUN, "wait": one.wait}, place=_PLACES[one.place])
            for one in state.items
            if one.place in _PLACES
        ),
        is_idle=False,
        is_blocked=False,
        is_stopping=False,
        outcome="",
        message="",
        # A resumed run does not record the same result again, but for those that each process has.
        result=state.result if isinstance(state.result, ev.LoopTerminalEvent) else None,
    )


@on(ev.RunResumed)
def _resumed(state: RunState, event: ev.RunResumed, at: datetime) -> RunState:
    if state.processes[1:]:  # in a journal
        return changed(state, is_idle=False)
    return changed(state, run_id=event.run_id, processes=(process_begun(at),), is_idle=False)


@on(ev.RunEnded)
def _ended(state: RunState, event: ev.RunEnded, at: datetime) -> RunState:
    *earlier, last = state.processes or (process_begun(at),)
    message = event.message or last.message
    ended = replace(last, state=event.state, message=message, checked=event.checked)
    if event.state == "stalled" and isinstance(state.result, ev.LoopStalled):
        message = message or state.result.message  # a finding of its own in the report
    return _over(state, event.state, message, processes=(*earlier, ended))


def _over(state: RunState, outcome: str, message: str, **changes: Any) -> RunState:
    return changed(
        state,
        **changes,
        outcome=outcome,
        message=message,
        items=(),
        tools=(),
        wait=None,
        is_idle=True,
        is_pausing=False,
        paused_since=None,
        is_stopping=False,
    )


@on(ev.LoopApproved, ev.LoopMaxIterations, ev.LoopStalled)
def _result(state: RunState, event: ev.RunResult, _at: datetime) -> RunState:
    """Return the state after a result of the run, or of an item in a watch."""
    outcome = state.stage_outcome or event.outcome
    if state.item or state.kind == "watch":
        return changed(state, stage_outcome=outcome, tools=(), wait=None)
    return _over(state, event.state, event.message, stage_outcome=outcome)


@on(ev.DeliverEnded)
def _delivery_ended(state: RunState, event: ev.DeliverEnded, at: datetime) -> RunState:
    *earlier, last = state.processes or (process_begun(at),)
    ended = replace(last, reason=event.reason, message=event.error)
    over = _result(state, event, at)
    return changed(over, kind="deliver", processes=(*earlier, ended))


@on(ev.PlanBuildEnded)
def _build_ended(state: RunState, event: ev.PlanBuildEnded, at: datetime) -> RunState:
    *earlier, last = state.processes or (process_begun(at),)
    ended = replace(last, message=event.error)
    return changed(_result(state, event, at), processes=(*earlier, ended))


@on(ev.LoopSpecIssue)
def _spec_issue(state: RunState, event: ev.LoopSpecIssue, at: datetime) -> RunState:
    title = title_of(event.content) or event.filename
    asked = Question(filename=event.filename, title=title)
    return changed(_result(state, event, at), questions=(asked,))


@on(ev.Forecast)
def _forecast(state: RunState, event: ev.Forecast, _at: datetime) -> RunState:
    return changed(state, forecast=event)


# The coding loop


@on(ev.IterationStart)
def _iteration(state: RunState, event: ev.IterationStart, _at: datetime) -> RunState:
    return state.working(
        iteration=event.iteration, max_iterations=event.max_iterations, task=0, tasks=()
    )


@on(ev.PlanningStart)
def _planning(state: RunState, event: ev.PlanningStart, at: datetime) -> RunState:
    return state.staged("planning", at, iteration=event.iteration, tasks=())


@on(ev.ImplementingStart)
def _implementing(state: RunState, event: ev.ImplementingStart, at: datetime) -> RunState:
    task = max(state.task, 1)
    return state.staged("implementing", at, iteration=event.iteration, task=task)


@on(ev.HandsStarted)
def _hands(state: RunState, event: ev.HandsStarted, at: datetime) -> RunState:
    slots = {"slots": event.hands, "active_slots": event.hands, "hands": event.hands}
    return state.staged("implementing", at, **slots, total=event.tasks, undone=())


@on(ev.HandsEnded)
def _hands_ended(state: RunState, event: ev.HandsEnded, _at: datetime) -> RunState:
    undone = tuple(event.undone.items())
    return changed(state, items=(), slots=0, active_slots=0, position=0, undone=undone)


@on(ev.TaskLeft)
def _task_left(state: RunState, event: ev.TaskLeft, _at: datetime) -> RunState:
    return state.without(event.filename)


@on(ev.ReviewingStart)
def _reviewing(state: RunState, event: ev.ReviewingStart, at: datetime) -> RunState:
    return state.staged("reviewing", at, iteration=event.iteration, task=state.task)


@on(ev.Approved, ev.Done, ev.NoMoreWork, ev.PlanComplete, ev.RequestChanges, ev.SpecIssue)
def _verdict(state: RunState, event: ev.LlmTerminalMarkerEvent, _at: datetime) -> RunState:
    return changed(state, stage_outcome=event.tag)


@on(ev.Progress)
def _progress(state: RunState, event: ev.Progress, _at: datetime) -> RunState:
    return changed(state, stage_outcome=event.tag, task=state.task + 1)


@on(ev.PlanWritten)
def _plan(state: RunState, event: ev.PlanWritten, _at: datetime) -> RunState:
    return changed(state, tasks=task_titles(event.text))


@on(ev.SetupCommandStarted)
def _setup(state: RunState, event: ev.SetupCommandStarted, at: datetime) -> RunState:
    return _commanded(state, "Setup", event.command, at)


@on(ev.CheckCommandStarted)
def _check(state: RunState, event: ev.CheckCommandStarted, at: datetime) -> RunState:
    return _commanded(state, "Check", event.title, at)


def _commanded(state: RunState, name: str, command: str, at: datetime) -> RunState:
    target = command[:_TARGET]
    return state.called(RunningTool(name=name, target=target, since=at, is_command=True))


@on(ev.SetupCommandOutput, ev.CheckCommandOutput)
def _command_ended(state: RunState, _event: object, _at: datetime) -> RunState:
    return changed(state, tools=())


# The agent


@on(ev.AgentMessage)
def _message(state: RunState, event: ev.AgentMessage, _at: datetime) -> RunState:
    words = event.text[: 4 * _WORDS].strip()[:_WORDS]
    if event.parent_tool_use_id is not None or not words:
        return state
    return state.working(words=words)


@on(ev.ToolCall)
def _tool(state: RunState, event: ev.ToolCall, at: datetime) -> RunState:
    target = tool_target(event.name, event.input)[:_TARGET]
    return state.called(RunningTool(name=event.name, target=target, since=at, id=event.id))


@on(ev.ToolResult)
def _tool_result(state: RunState, event: ev.ToolResult, _at: datetime) -> RunState:
    left = tuple(tool for tool in state.tools if tool.id != event.name)
    if len(left) == len(state.tools):
        left = state.tools[:-1] if event.name == "unknown" else state.tools
    return state if len(left) == len(state.tools) else changed(state, tools=left)


@on(ev.SessionEnded)
def _session_ended(state: RunState, event: ev.SessionEnded, _at: datetime) -> RunState:
    return changed(state, tools=(), login="" if event.outcome == "completed" else state.login)


@on(ev.AgentNudged, ev.AgentReplaced, ev.ApprovalQuestioned)
def _began_again(state: RunState, _event: object, _at: datetime) -> RunState:
    return state.working(tools=())


@on(ev.SystemMessage, ev.Thinking, ev.QuotaLifted, ev.WaitingEnded)
def _running(state: RunState, _event: object, _at: datetime) -> RunState:
    return state if state.wait is None else changed(state, wait=None)


# Supervision


@on(ev.AgentRetry)
def _retry(state: RunState, event: ev.AgentRetry, at: datetime) -> RunState:
    wait = Wait(
        reason=event.reason,
        until=later(at, event.retry_in),
        attempt=event.attempt,
        max_attempts=event.max_retries,
    )
    return changed(state, wait=wait, tools=())


@on(ev.RateLimited)
def _rate_limited(state: RunState, event: ev.RateLimited, _at: datetime) -> RunState:
    return state if event.limit is None else changed(state, limit=event.limit)


@on(ev.QuotaUsed)
def _quota_used(state: RunState, event: ev.QuotaUsed, at: datetime) -> RunState:
    return changed(state, windows=with_window(unreset(state.windows, at), event))


@on(ev.WaitingStarted)
def _waiting(state: RunState, event: ev.WaitingStarted, at: datetime) -> RunState:
    until = event.until
    end = until.time if until.kind == "time" else until.deadline
    wait = Wait(
        reason=until.kind,
        until=end or at,
        has_end=end is not None,
        target=until_text(until),
    )
    return changed(state, tools=(), wait=wait)


@on(ev.QuotaWaiting)
def _quota(state: RunState, event: ev.QuotaWaiting, at: datetime) -> RunState:
    until = later(at, event.remaining)
    return changed(state, tools=(), wait=Wait(reason="quota", until=until, limit=state.limit))


@on(ev.AgentFellBack)
def _fell_back(state: RunState, event: ev.AgentFellBack, _at: datetime) -> RunState:
    return state.working(tools=(), agent=event.to_agent, model=None)


# The watch


@on(ev.WatchProcessingItem)
def _item(state: RunState, event: ev.WatchProcessingItem, at: datetime) -> RunState:
    if event.slot:
        return _item_in_slot(state, event, at)
    return state.between(
        kind="watch",
        item=event.filename,
        item_began=at,
        title=event.title or event.filename,
        position=event.position,
        total=event.total,
        slots=0,  # those of attempts at the item before
        active_slots=0,
        is_idle=False,
        is_blocked=False,
        questions=(),
        result=None,
    )


def _item_in_slot(state: RunState, event: ev.WatchProcessingItem, at: datetime) -> RunState:
    """Begin an item in a slot, in place of any earlier one."""
    name = event.filename
    before = state.of_item(name)
    part = RunState(
        kind="watch",
        agent=state.agent,
        model=state.model,
        max_iterations=state.max_iterations,
        forecast=state.forecast,
        processes=(process_begun(at),),
        item=name,
        item_began=at,
        title=event.title or name,
        position=event.position,
        slot=event.slot,
        place="slot",
        role="preparing",
        stage_began=at,
        returns=event.returns or (before.returns if before else 0),
        return_reason=_return_reason(state, name),
        is_idle=False,
    )
    others = tuple(
        one
        for one in state.items
        if one.item != name and not (one.place == "slot" and one.slot == event.slot)
    )
    slots, owner = max(state.slots, event.slot), state.of_item(attempted_item(name))
    if owner is not None and owner.item != name:  # an attempt, beside the slot of its item
        slots = state.slots
        begun = {} if owner.role == "attempts" else {"role": "attempts", "stage_began": at}
        others = tuple(changed(one, **begun) if one is owner else one for one in others)
    return state.with_items(
        (*others, part),
        kind=state.kind or "watch",
        position=state.position if state.hands else max(state.position, event.position),
        total=event.total or state.total,
        slots=slots,
        active_slots=state.active_slots if state.active_slots < state.slots else slots,
        questions=_unasked(state, name),
        held=_others(state.held, name),
        is_idle=False,
        is_blocked=False,
        result=None,
    )


def _unasked(state: RunState, item: str) -> tuple[Question, ...]:
    """Return the questions but those that have stopped the item, or the whole watch."""
    return tuple(question for question in state.questions if question.item not in ("", item))


def _others(pairs: tuple[tuple[str, str], ...], name: str) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in pairs if pair[0] != name)


@on(ev.WatchSlotPrepared)
def _prepared(state: RunState, event: ev.WatchSlotPrepared, _at: datetime) -> RunState:
    part = state.of_item(event.filename)
    if part is None:
        return state
    worker = event.worker or part.worker
    return state.joined(changed(part, folder=event.folder, worker=worker))


@on(ev.WatchPlaced)
def _placed(state: RunState, event: ev.WatchPlaced, _at: datetime) -> RunState:
    part = state.of_item(event.filename)
    return state if part is None else state.joined(changed(part, worker=event.worker))


@on(ev.WatchPlaceGone)
def _place_gone(state: RunState, event: ev.WatchPlaceGone, at: datetime) -> RunState:
    """The attempt waits for another worker."""
    part = state.of_item(event.filename)
    if part is None:
        return state
    fresh = {**NO_RUN, "role": "preparing", "stage_began": at, "folder": "", "worker": ""}
    return state.joined(changed(part, **fresh, lost=(*part.lost, event.worker)))


@on(ev.WatchWorkers)
def _workers(state: RunState, _event: ev.WatchWorkers, _at: datetime) -> RunState:
    return changed(state, slots=max(state.slots, 1), active_slots=max(state.active_slots, 1))


@on(ev.WatchCandidate)
def _candidate(state: RunState, event: ev.WatchCandidate, at: datetime) -> RunState:
    if not event.approved:
        return state
    name = event.filename
    attempts = (one for one in state.items if attempted_item(one.item) == name != one.item)
    for one in attempts:  # the chosen one: the work is that of their item now
        state = state.without(one.item)
    return state.moved(
        event.filename, place="queue", slot=event.slot, commit=event.commit, stage_began=at
    )


@on(ev.WatchLanding)
def _landing(state: RunState, event: ev.WatchLanding, at: datetime) -> RunState:
    known = state.of_item(event.filename)
    returns = event.returns or (known.returns if known else 0)
    changes = {"commit": event.commit, "returns": returns, "stage_began": at}
    reason = _return_reason(state, event.filename)
    return state.moved(event.filename, place="landing", return_reason=reason, **changes)


@on(ev.WatchLanded)
def _landed(state: RunState, event: ev.WatchLanded, _at: datetime) -> RunState:
    left = state.without(event.filename)
    is_task = left.hands and left.slots
    return changed(left, position=left.position + 1) if is_task else left


@on(ev.WatchProposed)
def _proposed(state: RunState, event: ev.WatchProposed, at: datetime) -> RunState:
    pull = {"pull_request": event.number, "pull_url": event.url, "pull_state": "", "pull_note": ""}
    return state.moved(
        event.filename, place="proposed", slot=0, commit=event.commit, stage_began=at, **pull
    )


@on(ev.WatchProposal)
def _proposal(state: RunState, event: ev.WatchProposal, _at: datetime) -> RunState:
    part = state.of_item(event.filename)
    if part is None or part.place != "proposed":
        return state
    return state.joined(changed(part, pull_state=event.state, pull_note=event.message))


def _return_reason(state: RunState, item: str) -> str:
    """Return why an item was sent back last, also after an attempt that failed; "" if unknown."""
    known = state.watched.items.get(item)
    return known.return_reason if known is not None else ""


@on(ev.WatchSentBack)
def _sent_back(state: RunState, event: ev.WatchSentBack, at: datetime) -> RunState:
    return state.moved(
        event.filename,
        place="sent-back",
        slot=0,
        commit="",
        returns=event.returns,
        return_reason=event.reason,
        stage_began=at,
    )


@on(ev.WatchItemHeld)
def _held(state: RunState, event: ev.WatchItemHeld, _at: datetime) -> RunState:
    held = (*_others(state.held, event.filename), (event.filename, event.reason))
    return state.without(event.filename, held=held)


@on(ev.WatchItemImported)
def _imported(state: RunState, event: ev.WatchItemImported, _at: datetime) -> RunState:
    if event.change not in ("held", "released", "removed"):
        return state
    others = _others(state.held, event.filename)
    mine = ((event.filename, event.reason),) if event.change == "held" else ()
    return changed(state, held=(*others, *mine))


@on(ev.WatchSlotsChanged)
def _slotschanged(state: RunState, event: ev.WatchSlotsChanged, _at: datetime) -> RunState:
    return changed(state, slots=event.slots, active_slots=event.active)


@on(ev.WatchDiskFull)
def _disk_full(state: RunState, event: ev.WatchDiskFull, at: datetime) -> RunState:
    stopped = tuple(
        changed(one, **{**NO_RUN, "wait": one.wait}, place=_PLACES.get(one.place, "retry"))
        for one in state.items
    )
    until = later(at, event.retry_in)
    return state.between(items=stopped, wait=Wait(reason="disk full", until=until))


def _put_away(state: RunState, name: str, **changes: Any) -> RunState:
    """Return the watch after the end of work on an item."""
    if not state.slots:
        return state.between(**changes)
    others = tuple(question for question in state.questions if question.item != name)
    left = {"questions": others, "held": _others(state.held, name)}
    return state.without(name, **{**left, **changes})


@on(ev.WatchItemCompleted)
def _completed(state: RunState, event: ev.WatchItemCompleted, _at: datetime) -> RunState:
    note = "unchecked" if event.checked is False else ""
    return _put_away(state, event.filename, completed=_ended_with(state, event, note), login="")


def _ended_with(
    state: RunState, event: ev.WatchItemCompleted | ev.WatchItemParked, note: str
) -> tuple[ItemEnd, ...]:
    before = state.completed if isinstance(event, ev.WatchItemCompleted) else state.set_aside
    title = state.title_of(event.filename)
    return (*before, ItemEnd(item=event.filename, title=title, note=note))


@on(ev.WatchItemParked)
def _parked(state: RunState, event: ev.WatchItemParked, _at: datetime) -> RunState:
    return _put_away(state, event.filename, set_aside=_ended_with(state, event, event.reason))


@on(ev.AttemptLost)
def _lost(state: RunState, event: ev.AttemptLost, _at: datetime) -> RunState:
    return state.without(event.filename)


@on(ev.WatchItemRetained)
def _put_back(state: RunState, event: ev.WatchItemRetained, _at: datetime) -> RunState:
    return _put_away(state, event.filename)


@on(ev.WatchWorkKept)
def _abandoned(state: RunState, event: ev.WatchWorkKept, _at: datetime) -> RunState:
    """End the wait of a candidate whose item has left the backlog; other work was never waiting."""
    is_candidate = event.ref.startswith(_CANDIDATES)
    return _put_away(state, event.filename) if is_candidate else state


@on(ev.WatchItemRetry)
def _item_retry(state: RunState, event: ev.WatchItemRetry, at: datetime) -> RunState:
    login = event.message if event.login else state.login
    wait = Wait(
        reason="login" if event.login else "retry",
        until=later(at, event.retry_in),
        attempt=event.attempt + 1 if event.counted else 0,
        max_attempts=event.max_attempts if event.counted else 0,
    )
    if state.slots and event.retry_in:  # the others go on
        parted = state.moved(event.filename, place="retry", slot=0, stage_began=at, wait=wait)
        return changed(parted, login=login)
    if state.slots:
        return _put_away(state, event.filename, login=login)
    return state.between(wait=wait if event.retry_in else None, login=login)


@on(ev.WatchBacklogWaiting)
def _backlog_empty(state: RunState, _event: object, _at: datetime) -> RunState:
    none = {"is_blocked": False, "questions": ()}
    is_idle = all(one.place == "proposed" for one in state.items)
    return state.between(kind="watch", is_idle=is_idle, **none)


@on(ev.WatchSpecIssueWaiting)
def _issue_waiting(state: RunState, _event: object, _at: datetime) -> RunState:
    return state.between(kind="watch", is_idle=True, is_blocked=True)


@on(ev.WatchAuditStarted)
def _audit(state: RunState, _event: object, at: datetime) -> RunState:
    return state.between().staged("audit", at)


@on(ev.WatchAuditEnded, ev.WatchAuditFailed, ev.WatchAuditInterrupted)
def _audit_ended(state: RunState, _event: object, _at: datetime) -> RunState:
    return state.between(is_idle=True)


# The loops of sessions


@on(ev.DeliverSessionStarted)
def _delivery_session(state: RunState, event: ev.DeliverSessionStarted, at: datetime) -> RunState:
    model = event.model or state.model
    return state.staged(event.instruction, at, iteration=event.session, model=model, kind="deliver")


@on(ev.DeliverSessionEnded, ev.PlanBuildSessionEnded)
def _session_over(
    state: RunState, event: ev.DeliverSessionEnded | ev.PlanBuildSessionEnded, _at: datetime
) -> RunState:
    return changed(state, stage_outcome=event.outcome)


@on(ev.DeliverablesListed)
def _deliverables(state: RunState, _event: ev.DeliverablesListed, _at: datetime) -> RunState:
    return changed(state, kind="deliver")


@on(ev.PlanBuildPhaseStarted)
def _phase(state: RunState, event: ev.PlanBuildPhaseStarted, at: datetime) -> RunState:
    return state.staged(event.phase, at, iteration=event.iteration, kind="loop")


@on(ev.JobsCounted)
def _jobs(state: RunState, event: ev.JobsCounted, _at: datetime) -> RunState:
    return changed(state, kind="loop", counted=event)


# Commands of a person


@on(ev.PauseAsked)
def _pause_asked(state: RunState, _event: object, _at: datetime) -> RunState:
    return state if state.paused_since else changed(state, is_pausing=True)


@on(ev.RunPaused)
def _run_paused(state: RunState, event: ev.RunPaused, at: datetime) -> RunState:
    if event.until is not None:
        hours = Wait(reason="hours", until=event.until)
        return changed(state, is_pausing=False, wait=hours, tools=())
    return changed(state, is_pausing=False, paused_since=state.paused_since or at, tools=())


@on(ev.ContinueAsked)
def _continue_asked(state: RunState, _event: object, _at: datetime) -> RunState:
    return changed(state, is_pausing=False, paused_since=None)


@on(ev.PauseEnded)
def _pause_ended(state: RunState, _event: object, _at: datetime) -> RunState:
    wait = None if state.wait is not None and state.wait.reason == "hours" else state.wait
    return changed(state, is_pausing=False, paused_since=None, wait=wait)


@on(ev.StopAsked)
def _stop_asked(state: RunState, _event: object, _at: datetime) -> RunState:
    return changed(state, is_stopping=True)


@on(ev.SteerAsked)
def _steer_asked(state: RunState, event: ev.SteerAsked, _at: datetime) -> RunState:
    return changed(state, steering=(*state.steering, event.text))


@on(ev.Steered)
def _steered(state: RunState, event: ev.Steered, _at: datetime) -> RunState:
    if event.text not in state.steering:
        return changed(state, steering=()) if state.steering and event.to == "prompt" else state
    place = state.steering.index(event.text)
    return changed(state, steering=state.steering[:place] + state.steering[place + 1 :])


# What a person should see at the end


@on(ev.CommitFailed)
def _commit_failed(state: RunState, event: ev.CommitFailed, _at: datetime) -> RunState:
    return changed(state, failed_commits=(*state.failed_commits, event.message))


@on(ev.PushFailed)
def _push_failed(state: RunState, event: ev.PushFailed, _at: datetime) -> RunState:
    return changed(state, failed_push=event.message)


@on(ev.PushPerformed)
def _pushed(state: RunState, _event: object, _at: datetime) -> RunState:
    return changed(state, failed_push="") if state.failed_push else state


@on(ev.GateChanged)
def _gate_changed(state: RunState, event: ev.GateChanged, _at: datetime) -> RunState:
    return changed(state, gate_changed=event.paths)


@on(ev.HistoryRewritten)
def _rewritten(state: RunState, event: ev.HistoryRewritten, _at: datetime) -> RunState:
    return changed(state, lost_base=event.base)


@on(ev.JobVerified)
def _job_verified(state: RunState, event: ev.JobVerified, at: datetime) -> RunState:
    verdict: Literal["verified", "reopened"] = "verified" if event.passed else "reopened"
    return _with_job(state, event, at, verdict, event.issues)


@on(ev.JobBlocked)
def _job_blocked(state: RunState, event: ev.JobBlocked, at: datetime) -> RunState:
    issues = next((job.issues for job in state.jobs if job.id == event.job_id), ())
    return _with_job(state, event, at, "blocked", issues)


def _with_job(
    state: RunState,
    event: ev.JobVerified | ev.JobBlocked,
    at: datetime,
    verdict: Literal["verified", "reopened", "blocked"],
    issues: tuple[str, ...],
) -> RunState:
    job = Job(id=event.job_id, description=event.description, at=at, state=verdict, issues=issues)
    if any(one.id == job.id for one in state.jobs):
        return changed(state, jobs=tuple(job if one.id == job.id else one for one in state.jobs))
    return changed(state, jobs=(*state.jobs, job))


_COUNTED: tuple[type[ev.Event], ...] = (
    ev.AttemptChosen,
    ev.CommitPerformed,
    ev.CommitSeen,
    ev.RoleViolated,
    ev.SnapshotTaken,
    ev.StageFinished,
    ev.StageStarted,
    ev.WatchFollowDelayed,
    ev.WatchFollowed,
    ev.WatchIssueReported,
    ev.WatchItemSkipped,
    ev.WatchWorkKept,
)
"""Events that change only what is counted: the tally, the stages, the items, the sessions."""

LASTING = frozenset(kind.__name__ for kind in (*STEPS, *_COUNTED) if not issubclass(kind, PASSING))
"""Tags of the events with lasting effects. Of the passing ones, and of `UsageUpdate`, which adds up
what a session has spent, only the latest matter."""
