"""Messages that are printed line by line while they are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, strategies as st
from reactivex import Subject

from cuggino import events as ev
from cuggino.operators import extract_markers, marker_tags
from cuggino_cli.screen.fragments import Verbosity
from cuggino_cli.screen.messages import Partial
from cuggino_cli.screen.panel import DeliverStatus
from cuggino_cli.screen.printers import DeliverPrinter, LoopPrinter, RunPrinter
from cuggino_cli.screen.render import Printer
from cuggino_cli.screen.status import RunStatus

from .live_lines import Bench
from .screen import Screen

CALL = ev.ToolCall(name="Bash", input={"command": "ls"})
OVER = ev.SessionEnded(outcome="completed")

SCREENS: dict[str, Callable[[], Printer]] = {
    "run": RunPrinter,
    "deliver": partial(DeliverPrinter, words=False),
    "loop": LoopPrinter,
}
"""The printer of each loop."""
OTHERS: dict[str, Callable[[], Printer]] = {"still": partial(LoopPrinter, stream=False)}
"""Printers with other options."""
STATUS: dict[str, RunStatus] = {"deliver": DeliverStatus()}


def delta(text: str, message_id: str = "m", parent: str | None = None) -> ev.MessageDelta:
    return ev.MessageDelta(text=text, message_id=message_id, parent_tool_use_id=parent)


def message(text: str, message_id: str = "m", parent: str | None = None) -> ev.AgentMessage:
    return ev.AgentMessage(text=text, message_id=message_id, parent_tool_use_id=parent)


def bench_of(
    kind: str = "run",
    *,
    verbosity: Verbosity = Verbosity.VERBOSE,
    columns: int = 60,
    **options: Any,
) -> Bench:
    """Return a subscription to a loop of this kind."""
    printer, status = {**SCREENS, **OTHERS}[kind], STATUS.get(kind)
    return Bench(printer, verbosity=verbosity, screen=Screen(columns), status=status, **options)


@pytest.mark.parametrize("kind", SCREENS)
def test_lines_are_shown_as_they_are_written(kind: str) -> None:
    """A line is printed at its newline, the last one with the message, and none twice."""
    bench = bench_of(kind)
    assert "" == bench.say(delta("Fir"))
    assert "First\n" == bench.say(delta("st\nSec"))
    assert "First\nSecond\n\n" == bench.say(delta("ond\n\nLa"))
    bench.say(message("First\nSecond\n\nLast"), CALL)
    assert ["First", "Second", "", "Last", "▶ Bash: ls"] == bench.screen.visible()


@pytest.mark.parametrize(
    ("kind", "verbosity"),
    [
        *(
            (kind, level)
            for kind in ("run", "deliver")
            for level in (Verbosity.QUIET, Verbosity.NORMAL)
        ),
        ("loop", Verbosity.QUIET),
    ],
)
def test_without_verbose_deltas_show_nothing(kind: str, verbosity: Verbosity) -> None:
    """At other levels a message is printed only when complete, but for the stream of the loop."""
    bench, without = bench_of(kind, verbosity=verbosity), bench_of(kind, verbosity=verbosity)
    assert "" == bench.say(delta("a\nb\n"), delta("c"))
    assert without.say(message("a\nb\nc"), CALL) == bench.say(message("a\nb\nc"), CALL)


def test_the_loop_writes_each_chunk_as_it_comes() -> None:
    """Without `--verbose` the loop streams each chunk at once, and no text twice (LOP-081)."""
    bench = bench_of("loop", verbosity=Verbosity.NORMAL)
    assert "Fir" == bench.say(delta("Fir"))
    assert "First\nSec" == bench.say(delta("st\nSec"))
    assert "First\nSecond\n▶ Bash: ls\n" == bench.say(message("First\nSecond"), CALL)
    by_a_sub_agent = delta("aside", "m2", parent="t")
    assert "First\nSecond\n▶ Bash: ls\n" == bench.say(by_a_sub_agent)


def test_the_loop_goes_on_when_verbosity_changes() -> None:
    """A message that began by lines goes on by chunks, and ends as it would have."""
    bench = bench_of("loop")
    assert "a\n" == bench.say(delta("a\nb"))
    bench.controls.verbosity = Verbosity.NORMAL
    assert "a\nbc" == bench.say(delta("c"))
    assert "a\nbcd\n" == bench.say(message("a\nbcd"), OVER)


def test_the_loop_without_a_stream() -> None:
    """With `stream` off nothing is written before the end of the session."""
    bench = bench_of("still", verbosity=Verbosity.NORMAL)
    assert "" == bench.say(delta("a\n"), delta("b"), message("a\nb"))
    assert "a\nb\n" == bench.say(OVER)


@pytest.mark.parametrize("kind", SCREENS)
@given(
    st.lists(st.text(alphabet="ab \n\r\t\x1b\u202e\x9b漢👍🏽", max_size=5), max_size=8),
    st.sampled_from([20, 40]),
)
@example(["\r\r\n"], 20)
@example(["a\r", "\n"], 20)
def test_deltas_add_up_to_the_message(kind: str, pieces: list[str], columns: int) -> None:
    """Any split of a text gives the same output, and nothing in it is active."""
    text = "".join(pieces) + "."
    whole, split = bench_of(kind, columns=columns), bench_of(kind, columns=columns)
    whole.say(message(text), OVER)
    written = split.say(*map(delta, pieces), delta("."), message(text), OVER)
    assert whole.screen.visible() == split.screen.visible()
    assert not {"\x1b", "\u202e", "\x9b", "\r"} & set(written)


@pytest.mark.parametrize("kind", SCREENS)
def test_deltas_have_the_message_colors(kind: str) -> None:
    """Each piece has the style of the whole message and resets it at its end."""
    bench = bench_of(kind, color=True)
    text = bench.say(delta("a\nb"), message("a\nb"), OVER)
    expected = "a\nb\n" if kind == "loop" else "\x1b[2ma\x1b[0m\n\x1b[2mb\x1b[0m\n"
    assert text.startswith(expected)


@pytest.mark.parametrize("kind", SCREENS)
def test_drawing_stays_below_the_deltas(kind: str) -> None:
    """On a terminal the spinner or the list stays below the lines, and its time advances."""
    bench = bench_of(kind, live=True, columns=40)
    bench.say(delta("漢字 " * 15 + "\nhalf"))
    lines = bench.seen_at(3.15)
    assert ("漢字" * 15) in "".join(lines).replace(" ", "")
    assert "3s" in "".join(lines[-2:])
    assert not any("half" in line for line in lines)
    bench.say(message("漢字 " * 15 + "\nhalf"))
    assert "half" in bench.seen_at(4.15)


@pytest.mark.parametrize("kind", SCREENS)
def test_agents_and_tools_interleave_by_line(kind: str) -> None:
    """Lines of several agents and their tools interleave as whole lines."""
    bench = bench_of(kind)
    bench.say(delta("main 1\nmai"), delta("sub 1\nsu", "s", "t"), CALL)
    bench.say(delta("n 2\nmain"), delta("b 2\nsub", "s", "t"))
    bench.say(message("sub 1\nsub 2\nsub 3", "s", "t"), message("main 1\nmain 2\nmain 3"))
    lines = bench.screen.getvalue().splitlines()
    expected = ["main 1", "sub 1", "▶ Bash: ls", "main 2", "sub 2", "sub 3", "main 3"]
    assert expected == lines


@pytest.mark.parametrize("kind", SCREENS)
def test_retracted_message_is_replaced(kind: str) -> None:
    """Its complete lines stay, the partial one is removed, and the replacement is shown whole."""
    bench = bench_of(kind)
    bench.say(delta("old 1\nold"), ev.SystemMessage(text="Retrying"), delta("new 1\nne", "m2"))
    bench.say(message("new 1\nnew 2", "m2"), delta("x\n", "m3"), message("y\nz", "m4"))
    expected = ["old 1", "[System] Retrying", "new 1", "new 2", "x", "y", "z"]
    assert expected == bench.screen.getvalue().splitlines()


def test_message_that_differs_from_its_deltas() -> None:
    """A message that differs from its deltas is shown whole."""
    bench = bench_of()
    assert "a\nA\nb\n" == bench.say(delta("a\nb"), message("A\nb"))
    assert "a\nA\nb\nc\n" == bench.say(message("c", "other"))


def test_answer_at_the_end_hides_deltas() -> None:
    """When the answer is printed at the end, its deltas show nothing."""
    bench = bench_of("still")
    assert "▶ Bash: ls\n" == bench.say(delta("a\nb"), message("a\nb"), CALL)
    assert bench.say(OVER).startswith("▶ Bash: ls\na\nb\n")


def test_markers_keep_their_place() -> None:
    """After `extract_markers`, a marker shows in its place and its tags are hidden."""
    text = "One\ntwo <NOTE>a\nb</NOTE> three\nfour"
    bench = bench_of()
    source: Subject[ev.Event] = Subject()
    source.pipe(extract_markers(marker_tags(ev.Note))).subscribe(lambda event: bench.at(0, event))
    for char in text:
        source.on_next(delta(char))
    assert "One\ntwo\n\n[NOTE] a\nb\n\nthree\n" == bench.say()
    source.on_next(message(text))
    assert "One\ntwo\n\n[NOTE] a\nb\n\nthree\nfour\n" == bench.say()


FENCED = st.lists(st.sampled_from(["a", "\n", " ", "```\n", "<NOTE>", "</NOTE>"]), max_size=12)


@given(FENCED.map("".join), st.lists(st.integers(0, 40), max_size=12))
def test_no_line_is_shown_twice_or_lost(text: str, places: Sequence[int]) -> None:
    """For any split after `extract_markers`, each line is printed once, in order."""
    ends = sorted({place % (len(text) + 1) for place in places} | {0, len(text)})
    deltas = [delta(text[a:b]) for a, b in pairwise(ends)]

    def lines(events: Sequence[ev.Event]) -> list[str]:
        source: Subject[ev.Event] = Subject()
        chunks, given = Partial(), list[str]()

        def keep(event: ev.Event) -> None:
            match chunks.read(event):
                case ev.AgentMessage(text=shown):
                    given.extend(line.strip() for line in shown.split("\n") if line.strip())
                case ev.Note(content=content):
                    given.append(f"[{content}]")
                case _:
                    pass

        source.pipe(extract_markers(marker_tags(ev.Note))).subscribe(keep)
        for event in events:
            source.on_next(event)
        source.on_completed()
        return given

    assert lines([message(text)]) == lines([*deltas, message(text)])
