"""The documents that are written from the code are as it is now."""

from __future__ import annotations

import re

import pytest

from cuggino.config import Config
from cuggino.events import dump_event, parse_event
from cuggino_cli.config_keys import GROUPS
from cuggino_cli.main import main
from tests.cli_output.samples import all_event_types
from tests.documents import DOCUMENTS, ROOT
from tests.documents.picture import PICTURE, lines_to_compare, picture, words
from tests.documents.recording import Line, Span, lines_of, record_demo

_RUN = re.compile(
    r"(IterationStart PlanningStart (\w+ )*?PlanComplete (SetupCommandOutput )?"
    r"(ImplementingStart (CheckCommandOutput )?(\w+ )*?(Progress|Done) (CommitPerformed )?)+"
    r"ReviewingStart (CheckCommandOutput )?(\w+ )*?(Approved|RequestChanges) )+"
    r"LoopApproved "
)
"""What `docs/events.md` says of the order of a run that is approved."""


@pytest.mark.parametrize("path", DOCUMENTS)
def test_documents_are_fresh(path: str) -> None:
    """A document is what `python -m tests.documents` would write now."""
    assert DOCUMENTS[path]() == (ROOT / path).read_text(encoding="utf-8")


def test_every_event_is_told() -> None:
    """Each event has a heading of its own, with all of its fields below it."""
    page = (ROOT / "docs/events.md").read_text(encoding="utf-8")
    for cls in all_event_types():
        _, _, rest = page.partition(f"\n### {cls.__name__}\n")
        fields = re.findall(r"^- `(\w+)`:", rest.split("\n#")[0], re.MULTILINE)
        assert list(cls.model_fields) == fields, cls.__name__


def test_every_key_is_told_once() -> None:
    """The groups have each key of the configuration once, and name commands that exist."""
    keys = [key for group in GROUPS.values() for key in group]
    assert sorted(Config.model_fields) == sorted(keys)
    followers = {who for group in GROUPS.values() for names in group.values() for who in names}
    assert followers == {"run", "watch", "deliver", "loop", "plan"}


_SOURCES = {
    "deliver": ("deliver", "deliver_course", "deliver_session", "deliver_setup", "delivering"),
    "loop": (
        "plan_build",
        "plan_build_acts",
        "plan_build_session",
        "planning_building",
        "job_gate",
    ),
}


@pytest.mark.parametrize("command", _SOURCES)
def test_who_follows_a_key(command: str) -> None:
    """A key that is not for a loop is not read where that loop is written, but for the specs."""
    folder = ROOT / "cuggino/loops"
    text = "\n".join((folder / f"{n}.py").read_text(encoding="utf-8") for n in _SOURCES[command])
    followed = {key for group in GROUPS.values() for key, who in group.items() if command in who}
    read = set(re.findall(r"\boptions\.(\w+)", text)) & Config.model_fields.keys()
    assert read - {"specs_path"} <= followed


def test_the_picture_is_of_the_demo() -> None:
    """The picture shows what the demo says now."""
    shown = words((ROOT / PICTURE).read_text(encoding="utf-8"))
    recorded = record_demo()
    assert ["$ cuggino demo", *lines_to_compare(recorded)] == shown


def test_the_order_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The events of the demo come in the order that is documented."""
    assert 0 == main(["demo", "--json"])
    said = [parse_event(line) for line in capsys.readouterr().out.splitlines()]
    tags = "".join(f"{event.tag} " for event in said)
    assert _RUN.fullmatch(tags)
    assert said == [parse_event(dump_event(event)) for event in said]


def test_a_terminal_is_read() -> None:
    """What is erased or written over is no line; colours stay with their text."""
    sent = [
        (0.5, "one\r\n"),
        (1.0, "\x1b[2K\rWorking"),
        (1.5, "\x1b[2K\r\x1b[1m\x1b[32m[OK]\x1b[0m two\r\n"),
    ]
    one = Line(0.5, (Span("one", ()),))
    two = Line(1.5, (Span("[OK]", (1, 32)), Span(" two", ())))
    assert [one, two] == list(lines_of(sent))


def test_the_picture_is_small_and_has_no_scripts() -> None:
    """A forge shows it: it is small, and asks for nothing but itself."""
    svg = (ROOT / PICTURE).read_text(encoding="utf-8")
    assert len(svg.encode()) < 60_000
    assert not re.search(r"<script|<foreignObject|href|url\((?!#)|@import", svg)


def test_a_line_wider_than_the_terminal() -> None:
    """It takes two rows of the picture, and is one line for who compares."""
    line = Line(1.0, (Span("x" * 90, (1,)), Span("y" * 20, ())))
    svg = picture([line])
    assert 3 == len(re.findall(r"^<text y=", svg, re.MULTILINE))
    assert ["$ cuggino demo", "x" * 90 + "y" * 20] == words(svg)
    assert lines_to_compare([line]) == words(svg)[1:]


def test_signs_of_markup_are_text() -> None:
    """What is markup in an SVG is text in the picture."""
    line = Line(1.0, (Span("a < b && c", (2,)),))
    assert ["$ cuggino demo", "a < b && c"] == words(picture([line]))
