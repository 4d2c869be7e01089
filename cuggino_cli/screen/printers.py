"""What each loop prints of its events: one printer a loop, on the one `Screen`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final, Literal, TypeVar, get_args

from reactivex import Observable, defer
from reactivex.operators import do_action

from cuggino import events as ev
from cuggino.config import LogLevel
from cuggino.runs.words import Words, quota_wait_words, words
from cuggino_cli.screen.columns import cut
from cuggino_cli.screen.controls import Controls
from cuggino_cli.screen.deliver_debug import debug_line, sent_line
from cuggino_cli.screen.event_lines import EventLines
from cuggino_cli.screen.format import fragments_of, lines_of
from cuggino_cli.screen.fragments import Fragment, Verbosity
from cuggino_cli.screen.messages import Partial
from cuggino_cli.screen.render import Printer, Screen, with_printer
from cuggino_cli.screen.terminal import ColorMode, standard_lines
from cuggino_cli.screen.text import flat

E = TypeVar("E", bound=ev.Event)

COMPLAINTS: Final = frozenset({"warning", "failure", "problem", "error"})
"""Tones of lines that go to standard error (AUT-251)."""


def recorded_printer(kind: str, project: str) -> Printer:
    """Return the printer for a recorded run of this kind (`RunStarted`)."""
    match kind:
        case "deliver":
            return DeliverPrinter(project=project)
        case "loop":
            return LoopPrinter(project=project)
        case _:
            return RunPrinter(project=project)


def with_cli_output(
    *,
    verbosity: Literal["quiet", "normal", "verbose"] = "normal",
    color: ColorMode = "auto",
    project: str | None = None,
    bell: bool = True,
    stamps: bool = True,
    clock: Callable[[], datetime] | None = None,
) -> Callable[[Observable[E]], Observable[E]]:
    """Print each event as the command line does, then emit it unchanged (CUG-130).

    ::

        from cuggino_cli import with_cli_output

        cuggino.run(runtime.run(focus="the login page").pipe(with_cli_output()))

    Any stream of events can be printed, also that of a single agent. `verbosity` and `color` are
    those of the command line's options: `verbose` prints messages line by line while they are
    streamed. With `stamps` each line begins with its time. `bell` lets the terminal's bell ring
    when a person is needed. Paths in `project` are printed relative to it. `clock` gives the times;
    default: the scheduler given at `subscribe`. The lines go to standard output.

    Errors: an error of the output (BrokenPipeError) disposes the source and goes to `on_error`, as
    does a TypeError if an item is no event.
    """
    _require_one_of("verbosity", verbosity, ("quiet", "normal", "verbose"))
    _require_one_of("color", color, get_args(ColorMode))

    def operator(source: Observable[E]) -> Observable[E]:
        def begin(_scheduler: object) -> Observable[E]:
            lines = standard_lines(color)  # standard output may be another one by now
            controls = Controls(lines, verbosity=Verbosity[verbosity.upper()])
            printed = with_printer(
                controls,
                lambda: RunPrinter(project=project or ""),
                bell=bell,
                stamps=stamps,
                clock=clock,
            )
            return source.pipe(do_action(_require_event), printed)

        return defer(begin)

    return operator


def _require_one_of(name: str, value: object, values: tuple[str, ...]) -> None:
    if value not in values:
        raise ValueError(f"{name} must be one of {', '.join(values)}, not {value!r}")


def _require_event(item: object) -> None:
    if not isinstance(item, ev.Event):
        raise TypeError(
            f"with_cli_output() prints events of cuggino.events, not {type(item).__name__}: "
            "put it before the operator that maps the events"
        )


class RunPrinter:
    """A coding loop or a watch; in a watch with slots, each item has lines of its own."""

    def __init__(self, *, project: str = "") -> None:
        self._project = project
        self._lines: dict[str | None, EventLines] = {None: EventLines(project)}
        """The lines of each item, and those of no item."""
        self._slots: dict[str, str] = {}
        """The prefix of each item's lines: its slot and its name."""
        self._landing: str | None = None
        """The item that is being landed."""
        self._waits = False
        """All slots wait for a usage limit."""
        self._hands = False
        """Several hands work on the tasks of a run."""
        self._item = ""
        """The item that a watch began last."""

    def show(self, event: ev.Event, screen: Screen) -> None:
        """Print the event, with several slots behind that of its item."""
        self._follow(event)
        if self._slots and isinstance(event, ev.QuotaWaiting | ev.QuotaLifted):
            waited, self._waits = self._waits, isinstance(event, ev.QuotaWaiting)
            if waited == self._waits:
                return  # another slot has reported it, and all wait for it
            event = event.model_copy(update={"item": None})
        if self._item and not self._slots and isinstance(event, ev.StageCost):
            event = event.of_item(event.item or self._item)  # its total is that of the watch
        lines, slot = self._place(event)
        if self._hands and isinstance(event, ev.StageCost):
            event = event.model_copy(update={"item": None})  # its total is that of the run
        if lines.repeats(event):
            return
        fragments = lines.fragments(event, screen.verbosity, at=screen.at)
        if fragments is not None:
            screen.print(fragments, slot=slot)

    def _follow(self, event: ev.Event) -> None:
        """Note which item is in which slot, and which one is being landed."""
        match event:
            case ev.WatchProcessingItem(filename=item, slot=slot):
                self._item = item
                if not slot:
                    return
                self._slots[item] = f"[{slot} {_short(item)}] "
                self._lines[item] = EventLines(self._project)
            case ev.HandsStarted():
                self._hands = True
            case ev.HandsEnded():
                self._hands, self._item = False, ""
            case ev.WatchSlotPrepared(filename=item, folder=folder):
                self._lines[item] = EventLines(folder)
            case ev.WatchLanding(filename=item):
                self._landing = item
            case ev.WatchLanded() | ev.WatchProposed() | ev.WatchSentBack():
                if event.filename == self._landing:
                    self._landing = None
            case _:
                pass

    def _place(self, event: ev.Event) -> tuple[EventLines, str]:
        """Return the lines that the event belongs to, and what is printed before it."""
        own, item = self._lines[None], event.item
        match event:
            case (
                ev.SetupCommandStarted()
                | ev.SetupCommandOutput()
                | ev.CheckCommandStarted()
                | ev.CheckCommandOutput()
            ) if self._slots and self._landing and item in (None, self._landing):
                return own, f"[→ {_short(self._landing)}] "
            case _ if item in self._slots:
                return self._lines[item], self._slots[item]
            case _:
                return own, ""


class DeliverPrinter:
    """A deliver loop. Its own lines and the agent's messages are Autonoe's: literal.

    Args:
        project: the folder that paths are relative to.
        opening: the first lines; printed with the first event, so that a run that fails to start
            prints none.
        instruction: returns the instruction of a session; if given, everything sent and received
            is printed, for debugging.
        words: show the agent's messages, not only with `VERBOSE`.
    """

    def __init__(
        self,
        *,
        project: str = "",
        opening: Iterable[str] = (),
        instruction: Callable[[ev.DeliverInstruction], str] | None = None,
        words: bool = True,
    ) -> None:
        self._opening = tuple(opening)
        self._instruction = instruction
        least = Verbosity.NORMAL if words else Verbosity.VERBOSE
        self._lines = EventLines(project, messages=least)

    def show(self, event: ev.Event, screen: Screen) -> None:
        """Print the event, between what is sent and received when debugging."""
        opening, self._opening = self._opening, ()
        _print_words(screen, (Words("", text, "info") for text in opening))
        if self._instruction is not None and (received := debug_line(event)):
            _print_debug(screen, received)
        if not self._lines.repeats(event):
            self._show(event, screen)
        if self._instruction is not None and isinstance(event, ev.DeliverSessionStarted):
            _print_debug(screen, sent_line(self._instruction(event.instruction)))

    def _show(self, event: ev.Event, screen: Screen) -> None:
        match event:
            case ev.QuotaWaiting():
                _print_words(screen, quota_wait_words(event).lines)
            case ev.DeliverEvent():
                if isinstance(event, ev.DeliverSessionEnded):
                    event = self._lines.without_printed(event)
                _print_words(screen, lines_of(event, screen.verbosity))
            case (
                ev.SessionEnded()
                | ev.NoProgress()
                | ev.RateLimited(status="rejected", overage=False)
            ):
                pass  # the end of the session or of the run reports it
            case _:
                _print_event(screen, self._lines, event, screen.verbosity)


class LoopPrinter:
    """A plan/build loop. Its own lines and the agent's messages are Lopen's: literal.

    Args:
        project: the folder that paths are relative to.
        stream: show the agent's messages as they arrive; else all of a session at its end.
        log_level: `info` hides lines that need `VERBOSE`; `error` also hides warnings, and lines
            that need `NORMAL` (LOP-032).
    """

    def __init__(
        self, *, project: str = "", stream: bool = True, log_level: LogLevel = "all"
    ) -> None:
        self._lines = EventLines(project)
        self._stream = stream
        self._log_level = log_level
        self._partial = Partial()
        self._is_verifying = False

    def show(self, event: ev.Event, screen: Screen) -> None:
        """Print the event; a message as it arrives (LOP-081)."""
        if isinstance(event, ev.AgentMessage | ev.MessageDelta):
            self._show_message(event, screen)
            return
        ends = (
            ev.SessionEnded
            | ev.PlanBuildPhaseStarted
            | ev.PlanBuildSessionRetry
            | ev.PlanBuildEnded
        )
        if isinstance(event, ends):
            screen.messages.end()
        if not self._lines.repeats(event):
            self._show(event, screen)
        if isinstance(event, ev.PlanBuildPhaseStarted):
            self._is_verifying = event.phase == "verify"

    def _show_message(self, event: ev.AgentMessage | ev.MessageDelta, screen: Screen) -> None:
        """Write a message, with `stream` while the agent writes it; with `VERBOSE` by lines.

        Only `VERBOSE` shows those of sub-agents and verifiers.
        """
        is_verbose = screen.verbosity >= Verbosity.VERBOSE
        part: ev.Event | None = event
        if self._stream:
            part = self._partial.read(event, by_line=is_verbose)
        if not isinstance(part, ev.AgentMessage) or screen.verbosity < Verbosity.NORMAL:
            return
        if not is_verbose and (self._is_verifying or part.parent_tool_use_id is not None):
            return
        if is_verbose and isinstance(event, ev.MessageDelta):
            # A carriage return at the end of the line is not part of the newline.
            part = part.model_copy(update={"text": f"{part.text}\r\n"})
        (screen.messages.write if self._stream else screen.messages.keep)(part)

    def _show(self, event: ev.Event, screen: Screen) -> None:
        verbosity = min(screen.verbosity, _LEVELS[self._log_level])
        match event:
            case ev.PlanBuildEvent():
                lines = lines_of(event, verbosity)
                if self._log_level == "error":
                    lines = [line for line in lines if line.tone != "warning"]
                _print_words(screen, lines)
            case ev.ToolCall(name=name) if name in _SHOWN_BY_THE_LOOP and (
                screen.verbosity < Verbosity.VERBOSE
            ):
                pass
            case ev.NoProgress() | ev.RateLimited(status="rejected", overage=False):
                pass  # the loop reports it, as the next one
            case ev.SessionEnded(outcome=outcome) if outcome != "completed":
                pass
            case _ if self._log_level == "error" and _tone(event) == "warning":
                pass
            case _:
                _print_event(screen, self._lines, event, verbosity)


_SHOWN_BY_THE_LOOP: Final = ("Write", "Edit", "MultiEdit", "NotebookEdit", "Task", "Agent")
"""Tools whose calls are shown as `[file]` and `[sub-agent]`."""

_LEVELS: Final[dict[LogLevel, Verbosity]] = {
    "all": Verbosity.VERBOSE,
    "info": Verbosity.NORMAL,
    "error": Verbosity.QUIET,
}
"""The highest verbosity of lines, other than messages."""


def _print_words(screen: Screen, lines: Iterable[Words]) -> None:
    """Print the literal lines of a loop."""
    for line in lines:
        screen.print(fragments_of(line), is_complaint=line.tone in COMPLAINTS, is_literal=True)


def _print_debug(screen: Screen, text: str) -> None:
    screen.print([Fragment("debug", f"[debug] {text}")], is_literal=True)


def _print_event(screen: Screen, lines: EventLines, event: ev.Event, verbosity: Verbosity) -> None:
    """Print an event of the agent or of supervision; only messages are literal."""
    fragments = lines.fragments(event, verbosity, at=screen.at)
    if fragments is not None:
        is_literal = isinstance(event, ev.AgentMessage | ev.MessageDelta)
        is_complaint = _tone(event) in COMPLAINTS
        screen.print(fragments, is_complaint=is_complaint, is_literal=is_literal)


def _tone(event: ev.Event) -> str:
    spoken = words(event)
    return spoken.tone if spoken is not None else ""


def _short(filename: str) -> str:
    return cut(flat(filename.removesuffix(".md")), _NAME)


_NAME: Final = 20
"""Columns of an item's name before its lines."""
