"""Events as labeled text: the sentence of each, laid out for a terminal."""

from __future__ import annotations

from typing import Final

from cuggino import events as ev
from cuggino.runs.words import Words, words
from cuggino_cli.screen.fragments import Fragment, Verbosity, joined
from cuggino_cli.screen.text import clip, inert

_OUTPUT_LIMIT = 500
_RESULT_LINES = 5
_NUMBERS = tuple(f"{number:5}→" for number in range(1, _RESULT_LINES + 1))

_BELOW_AN_EMPTY_LINE: Final = (
    *(ev.IterationStart, ev.PlanningStart, ev.ImplementingStart, ev.ReviewingStart),
    *(ev.CommitPerformed, ev.CommitFailed, ev.NotInCommit, ev.PushPerformed, ev.PushFailed),
    *(ev.CheckWeakened, ev.CheckUnmeasured, ev.TaskLimitReached),
    *(ev.ApprovalBlocked, ev.LoopApproved, ev.LoopMaxIterations, ev.LoopSpecIssue, ev.LoopStalled),
)


def format_event(event: ev.Event, *, verbosity: Verbosity) -> list[Fragment] | None:
    """Return the event as fragments, without the final newline; None shows nothing (CUG-130).

    `VERBOSE` is the wording of CUG-131 to CUG-133. `NORMAL` and `QUIET` leave out events and reduce
    the output of commands to one line (CUG-136). Pings and unknown events show nothing.
    """
    lines = lines_of(event, verbosity)
    if not lines:
        return None
    if isinstance(event, ev.CommandOutputEvent) and verbosity >= Verbosity.VERBOSE:
        return _command_output(event, lines[0])
    fragments = joined(_laid_out(event, line) for line in lines)
    if isinstance(event, _BELOW_AN_EMPTY_LINE):
        fragments.insert(0, Fragment("plain", "\n"))
    if _calls(event):
        fragments.append(Fragment("bell", ""))
    return fragments


def lines_of(event: ev.Event, verbosity: Verbosity) -> list[Words]:
    """Return the sentences of the event that this verbosity shows."""
    spoken = words(event)
    lines = spoken.lines if spoken is not None else ()
    shown = [line for line in lines if verbosity >= Verbosity[line.verbosity.upper()]]
    if isinstance(event, ev.DeliverEnded) and len(shown) > 2:
        shown.insert(-1, Words("", "", "plain"))  # the last line stands apart (AUT-244)
    return shown


def fragments_of(line: Words) -> list[Fragment]:
    """Return `[title] text`, or the text alone if it has no title."""
    return [Fragment(line.tone, f"[{line.title}] {line.text}" if line.title else line.text)]


def _laid_out(event: ev.Event, line: Words) -> list[Fragment]:
    match event:
        case ev.ToolCall():
            return [Fragment(line.tone, f"▶ {line.text}")]
        case ev.ToolResult():
            return [Fragment(line.tone, numbered_lines(line.text))]
        case ev.LlmMarkerEvent():
            head, rest = Fragment(line.tone, f"[{line.title}]"), f" {line.text}\n"
            return [Fragment("plain", "\n"), head, Fragment("plain", rest)]
        case _:
            return fragments_of(line)


def _calls(event: ev.Event) -> bool:
    """Return whether the event calls a person."""
    match event:
        case ev.LoopSpecIssue():
            return event.item is not None  # other items go on, so nothing else calls
        case ev.WatchItemRetry():
            return event.login
        case _:
            return isinstance(
                event, ev.WatchBacklogWaiting | ev.WatchSpecIssueWaiting | ev.WatchItemParked
            )


def _command_output(event: ev.CommandOutputEvent, end: Words) -> list[Fragment]:
    """Return the output or its file, and how the command ended."""
    code = event.exit_code
    if event.file_path is not None and not event.output:
        exit_code = "" if code is None else f" (exit {code})"
        return [Fragment(end.tone, f"[{end.title}] Output: {event.file_path}{exit_code}")]
    if not event.output and code is not None:
        return fragments_of(end)
    output = clip(event.output, _OUTPUT_LIMIT)
    shown = [Fragment(end.tone, f"[{end.title}] Output:\n{output}")]
    failed = Fragment("failure", f"[{end.title}] {end.text}")
    return joined([shown, [failed]]) if code else shown


def numbered_lines(output: str) -> str:
    """Number the first five lines, and count the lines if there are more."""
    lines = output.split("\n", _RESULT_LINES)
    if len(lines) > _RESULT_LINES:
        lines[-1] = ""  # the rest is only counted
    lines = inert("\n".join(lines)).split("\n")[:_RESULT_LINES]
    shown = [number + line for number, line in zip(_NUMBERS, lines, strict=False)]
    if (count := output.count("\n") + 1) > _RESULT_LINES:
        shown += ["  ...", f"  (showing {_RESULT_LINES} of {count} lines)"]
    return "\n".join(shown)
