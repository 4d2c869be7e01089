"""The generated pages and the picture are up to date."""

from __future__ import annotations

import re

import pytest

from cuggino.config import Config
from cuggino.events import dump_event, parse_event
from cuggino_cli.main import main
from tests.documents import DOCUMENTS, ROOT
from tests.documents.config import GROUPS, users
from tests.documents.page import PAGE, make_page
from tests.documents.picture import PICTURE, lines_to_compare, picture, words
from tests.documents.recording import Line, Span, lines_of, record_demo
from tests.screen.samples import all_event_types, own_fields
from tests.web.chromium import program

_RUN = re.compile(
    r"(SandboxChosen )?(SetupCommandStarted SetupCommandOutput )?"
    r"(CheckCommandStarted CheckCommandOutput Baseline )?"
    r"(IterationStart PlanningStart (\w+ )*?PlanComplete "
    r"(SetupCommandStarted SetupCommandOutput )?"
    r"(ImplementingStart (CheckCommandStarted CheckCommandOutput )?"
    r"(\w+ )*?(Progress|Done) (CommitPerformed )?)+"
    r"ReviewingStart (GateChanged )?(CheckCommandStarted CheckCommandOutput )*"
    r"(\w+ )*?(Approved|RequestChanges) )+"
    r"(CheckVerdict )?LoopApproved "
)
"""The order of an approved run as documented in `cuggino_cli/help/events.md`."""


@pytest.mark.parametrize("path", DOCUMENTS)
def test_documents_are_fresh(path: str) -> None:
    """A page equals the output of `python -m tests.documents`."""
    assert DOCUMENTS[path]() == (ROOT / path).read_text(encoding="utf-8")


def test_every_event() -> None:
    """Each event has a heading with all of its fields below."""
    page = (ROOT / "cuggino_cli/help/events.md").read_text(encoding="utf-8")
    for cls in all_event_types():
        _, _, rest = page.partition(f"\n### {cls.__name__}\n")
        fields = re.findall(r"^- `(\w+)`:", rest.split("\n#")[0], re.MULTILINE)
        assert own_fields(cls) == fields, cls.__name__


def test_every_key() -> None:
    """The groups have each key of the configuration once, with existing commands."""
    keys = [key for group in GROUPS.values() for key in group]
    assert sorted(Config.model_fields) == sorted(keys)
    assert {"run", "watch", "deliver", "loop", "plan"} == {
        who for key in keys for who in users(key)
    }


@pytest.mark.parametrize(("command", "loop"), [("deliver", "deliver"), ("loop", "plan_build")])
def test_loop_reads_only_its_own_keys(command: str, loop: str) -> None:
    """The source of a loop reads no key that the table assigns to other commands only."""
    files = [path for path in (ROOT / "cuggino/loops").rglob("*.py") if loop in str(path)]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    followed = {key for key in Config.model_fields if command in users(key)}
    read = set(re.findall(r"\boptions\.(\w+)", text)) & Config.model_fields.keys()
    assert read
    assert read - {"specs_path"} <= followed


@pytest.mark.real_agent
@pytest.mark.usefixtures("temporary")
def test_picture_shows_the_demo() -> None:
    """The picture shows the current output of the demo, wrapped by the length of a path or not."""
    shown = words((ROOT / PICTURE).read_text(encoding="utf-8"))
    recorded = ["$ cuggino demo", *lines_to_compare(record_demo())]
    assert " ".join(recorded).split() == " ".join(shown).split()


@pytest.mark.real_agent
@pytest.mark.usefixtures("temporary")
def test_order_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The events of the demo have the documented order."""
    assert 0 == main(["demo", "--json"])
    events = [parse_event(line) for line in capsys.readouterr().out.splitlines()]
    tags = "".join(f"{event.tag} " for event in events)
    assert _RUN.fullmatch(tags)
    assert events == [parse_event(dump_event(event)) for event in events]


def test_terminal_output_is_parsed() -> None:
    """Erased and overwritten text is dropped; colors stay with their text."""
    sent = [
        (0.5, "one\r\n"),
        (1.0, "\x1b[2K\rWorking"),
        (1.5, "\x1b[2K\r\x1b[1m\x1b[32m[OK]\x1b[0m two\r\n"),
    ]
    one = Line(0.5, (Span("one", ()),))
    two = Line(1.5, (Span("[OK]", (1, 32)), Span(" two", ())))
    assert [one, two] == list(lines_of(sent))


def test_picture_is_small_and_has_no_scripts() -> None:
    """The picture is small and loads nothing else."""
    svg = (ROOT / PICTURE).read_text(encoding="utf-8")
    assert len(svg.encode()) < 60_000
    assert not re.search(r"<script|<foreignObject|href|url\((?!#)|@import", svg)


def test_line_wider_than_the_terminal() -> None:
    """A line wider than the terminal takes two rows but compares as one line."""
    line = Line(1.0, (Span("x" * 90, (1,)), Span("y" * 20, ())))
    svg = picture([line])
    assert 3 == len(re.findall(r"^<text y=", svg, re.MULTILINE))
    assert ["$ cuggino demo", "x" * 90 + "y" * 20] == words(svg)
    assert lines_to_compare([line]) == words(svg)[1:]


def test_markup_is_escaped() -> None:
    """Markup characters are escaped."""
    line = Line(1.0, (Span("a < b && c", (2,)),))
    assert ["$ cuggino demo", "a < b && c"] == words(picture([line]))


@pytest.mark.real_agent
@pytest.mark.skipif(program() is None, reason="Chromium is not installed")
def test_page_is_photographed() -> None:
    """A watch is played and its page photographed; this compares no pixels."""
    assert make_page().startswith(b"\x89PNG")


def test_picture_of_the_page_is_small() -> None:
    """The picture of the live page is a small PNG of the width that the command makes."""
    png = (ROOT / PAGE).read_bytes()
    assert len(png) < 150_000
    assert b"\x89PNG\r\n\x1a\n" == png[:8]
    assert 1100 == int.from_bytes(png[16:20], "big")
