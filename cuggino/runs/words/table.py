"""The sentences that need nothing but the fields of their event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from cuggino import events as ev
from cuggino.runs.words.base import Words

_plain, _loop, _watch, _control = (
    partial(Words, title) for title in ("", "Loop", "Watch", "Control")
)

_SENTENCES: Mapping[type[ev.Event], Words] = MappingProxyType(
    {
        # An agent's session
        ev.ToolResult: _plain("{e.output}", "quiet", "verbose"),
        ev.AgentMessage: _plain("{e.text}", "quiet", "verbose"),
        ev.Thinking: Words("Thinking", "{e.text}", "quiet", "verbose"),
        ev.SystemMessage: Words("System", "{e.text}", "quiet", "verbose"),
        ev.UserMessage: Words("User", "{e.text}", "quiet", "verbose"),
        ev.McpServerFailed: Words("Agent", "MCP server {e.server} did not start", "warning"),
        # The coding loop
        ev.IterationStart: _loop("=== Iteration {e.iteration}/{e.max_iterations} ===", "heading"),
        ev.PlanningStart: Words("Planning", "Starting..."),
        ev.ImplementingStart: Words("Implementing", "Starting..."),
        ev.ReviewingStart: Words("Reviewing", "Starting..."),
        ev.PlanWritten: _plain("{e.text}", "quiet", "verbose"),
        ev.CommitPerformed: Words("Commit", "{e.commit_hash}: {e.message}", "commit", "normal"),
        ev.CommitFailed: Words("Commit", "Failed: {e.message}", "failure"),
        ev.PushPerformed: Words("Push", "{e.commit_hash} → {e.remote}", "commit", "normal"),
        ev.PushFailed: Words("Push", "Failed: {e.message}", "failure"),
        ev.NotInCommit: Words("Commit", "{e.message}", "warning"),
        ev.CheckVerdict: Words("Check", "{e.message}", "quiet", "normal"),
        ev.CheckWeakened: Words("Check", "{e.message}", "warning"),
        ev.CheckUnmeasured: Words("Check", "{e.message}", "warning"),
        ev.CheckFlaky: Words("Check", "Flaky: {e.message}", "warning"),
        ev.TaskLimitReached: _loop("Task limit ({e.max_tasks}) reached", "warning"),
        ev.TaskLeft: _loop("Left undone: {e.filename}: {e.reason}", "warning"),
        ev.ApprovalBlocked: _loop("Approval does not count: {e.message}", "warning"),
        ev.LoopMaxIterations: _loop("Max iterations ({e.max_iterations}) reached", "caution"),
        ev.LoopStalled: _loop("Stalled: {e.message}", "problem"),
        # Supervision
        ev.StageInferred: Words(
            "Agent", "Ended without a marker; its files count as {e.counted}", "warning"
        ),
        ev.SnapshotFailed: Words("Snapshot", "Not taken before {e.stage}: {e.message}", "warning"),
        ev.HistoryRewritten: _loop(
            "The commit that the run began with, {e.base:.12}, is no longer in the history",
            "warning",
        ),
        ev.PauseAsked: _control("Pausing after this stage", "caution"),
        ev.ContinueAsked: _control("Asked to continue", "quiet", "verbose"),
        ev.SteerAsked: _control("Message: {e.text}", "success"),
        ev.ControlIgnored: _control("Ignored {e.source}: {e.reason}", "warning"),
        # The watch
        ev.WatchSpecIssueWaiting: _watch("Spec issue detected, waiting for resolution..."),
        ev.WatchItemRetained: _watch("Retained: {e.filename} (content changed during loop)"),
        ev.WatchItemParked: _watch("Parked: {e.filename}: {e.reason}", "problem"),
        ev.WatchItemSkipped: _watch("Skipped: {e.filename}: {e.reason}", "warning"),
        ev.WatchItemHeld: _watch("Held: {e.filename}: {e.reason}", "warning"),
        ev.WatchPolling: _watch("Polling {e.folder}: {e.reason}", "warning"),
        ev.NotificationFailed: _watch("Notification failed: {e.message}", "warning"),
        ev.WatchAuditStarted: _watch("Starting audit agent...", "info"),
        ev.WatchAuditEnded: _watch("Audit agent finished.", "info"),
        ev.WatchAuditInterrupted: _watch("Audit agent interrupted, work arrived.", "info"),
        ev.WatchAuditFailed: _watch("Audit agent failed: {e.message}", "warning"),
        ev.WatchTbdItemFound: _watch("TBD item found: {e.filename}", "commit"),
        ev.WatchWorkKept: _watch("Work in slot {e.slot} kept as {e.ref}: {e.reason}", "warning"),
        ev.WatchSlotsChanged: _watch(
            "Slots at work: {e.active} of {e.slots}: {e.reason}", "warning"
        ),
        ev.WatchLanding: _watch("Landing: {e.filename} ({e.commit:.7} on {e.trunk:.7})"),
        ev.WatchFollowed: _watch("{e.branch} is at {e.commit:.7}"),
        ev.WatchFollowHealed: _watch(
            "Put back: {e.restored} files of {e.branch} that a killed process had half moved; "
            "kept as {e.kept}",
            "warning",
        ),
        ev.WatchTrunkMoved: _watch("Trunk is at {e.commit:.7}: {e.reason}"),
        # The deliver loop, as Autonoe writes it
        ev.DeliverWarning: _plain("{e.message}", "warning"),
        ev.DeliverSessionStarted: _plain("Session {e.session} started", "info"),
        ev.DeliverSessionRetry: _plain(
            "Session error ({e.attempt}/{e.max_retries}), starting new session...", "warning"
        ),
        # The plan/build loop, as Lopen writes it
        ev.PlanBuildWarning: _plain("{e.message}", "warning"),
        ev.SubAgentEnded: _plain("[sub-agent] done", "tool", "normal"),
        ev.FileTouched: _plain("[file] {e.path}", "tool", "normal"),
        ev.CommitSeen: _plain("[commit] {e.commit_hash} {e.subject}", "commit", "normal"),
        ev.DoneFileRejected: _plain("lopen.loop.done removed: {e.reason}", "warning"),
    }
)


def plain_words(event: ev.Event) -> Words | None:
    """Return the sentence of the event if the table has one."""
    sentence = _SENTENCES.get(type(event))
    return None if sentence is None else replace(sentence, text=sentence.text.format(e=event))
