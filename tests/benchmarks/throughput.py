"""From an agent's line to a printed line: CPU and memory, compared with `json.loads` alone."""

from __future__ import annotations

import functools
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import reactivex as rx

from cuggino.events import AgentMessage, Done, Note
from cuggino.operators import extract_markers, marker_tags
from tests.benchmarks.measuring import PEAK, Figure, in_turns, run, seconds
from tests.benchmarks.streams import write_large, write_program, write_stream

_FLOOR = """
import json, subprocess, sys
with subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE) as process:
    for line in process.stdout:
        json.loads(line)
"""


def _project(folder: Path) -> Path:
    (folder / ".specs").mkdir(parents=True)
    (folder / ".specs" / "a.md").write_text("A specification.\n")
    (folder / ".cuggino.json").write_text('{"guard": "off", "maxTokens": 1000000000000}')
    return folder


def _loop(program: Path, *words: str) -> list[str]:
    code = f"import sys; from cuggino_cli.main import main; sys.exit(main({list(words)!r}))"
    return [sys.executable, "-c", code, str(program)]


def lines(*, rounds: int = 6666) -> Iterator[Figure]:
    """Measure `cuggino run` on 200,000 lines, two thirds of them deltas."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stream = folder / "stream.jsonl"
        size = write_stream(stream, rounds=rounds) / 2**20
        count = rounds * 30 + 3
        program = write_program(folder / "claude", stream)
        project = _project(folder / "project")
        config = project / ".cuggino.json"
        config.write_text(config.read_text().replace("{", f'{{"agentPath": "{program}", ', 1))
        short = folder / "short.jsonl"
        write_stream(short, rounds=1)

        def floor() -> float:
            return run([sys.executable, "-c", _FLOOR, str(program)]).cpu

        def whole(*words: str) -> float:
            argv = _loop(program, "run", "--focus", "x", *words)
            took = run(argv, cwd=project, codes=(10,)).cpu
            for found in (project / ".cuggino" / "journal").glob("*"):
                found.unlink()
            for found in (project / ".cuggino" / "spec-issues").glob("*"):
                found.unlink()
            return took

        def start() -> float:
            text = stream.read_bytes()
            stream.write_bytes(short.read_bytes())
            try:
                return whole()
            finally:
                stream.write_bytes(text)

        (start_up,) = in_turns(3, start, warm=0)
        for label, words in (
            ("default output", ()),
            ("--verbose", ("--verbose",)),
            ("--json", ("--json",)),
        ):
            least, taken = in_turns(3, floor, functools.partial(whole, *words), warm=0)
            net = max(taken - start_up, 0.0)
            yield Figure(
                name=f"{count:,} lines ({size:.0f} MiB) through `cuggino run`, {label}, CPU",
                value=net,
                unit="s",
                floor=least,
                floor_name="pipe and json.loads",
                ratio=net / least,
                most=1.5,
            )


def memory(*, size: int = 2**30) -> Iterator[Figure]:
    """Compare the peak memory of `cuggino run` on a gibibyte with that on a short stream."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stream = folder / "stream.jsonl"
        write_stream(stream, rounds=1)
        program = write_program(folder / "claude", stream)
        project = _project(folder / "project")
        config = project / ".cuggino.json"
        config.write_text(config.read_text().replace("{", f'{{"agentPath": "{program}", ', 1))
        note = folder / "peak"

        def peak(act: str) -> float:
            code = f"{PEAK}\n{act}\nopen({str(note)!r}, 'w').write(str(peak()))"
            run([sys.executable, "-c", code], cwd=project)
            return float(note.read_text())

        works = "from cuggino_cli.main import main; assert main(['run', '--focus', 'x']) == 10"
        imported = peak("import cuggino_cli.commands.run, cuggino.runtime, cuggino.agents.claude")
        small = peak(works)
        written = write_large(stream, size=size)
        large = peak(works)
        yield Figure(
            name=f"peak on a stream of {written / 2**20:,.0f} MiB",
            value=large - imported,
            unit="MiB",
            floor=small - imported,
            floor_name="the same on 30 lines; both over what is imported",
            most=60.0,
        )


def markers(*, sizes: tuple[int, ...] = (1, 10, 100)) -> Iterator[Figure]:
    """Measure `extract_markers` on one message of each size in MiB, with partial markers."""
    tags = marker_tags(Note, Done)
    unit = "Some words about `<NOTE>` and a <b>tag</b> in a line of text.\n" * 50
    unit += "<NOTE>something worth remembering</NOTE>\n"
    first = 0.0
    for size in sizes:
        text = (unit * (size * 2**20 // len(unit) + 1))[: size * 2**20]
        message = rx.of(AgentMessage(text=text, message_id="m"))

        def act(message: rx.Observable[AgentMessage] = message) -> float:
            return seconds(lambda: message.pipe(extract_markers(tags)).subscribe())

        (took,) = in_turns(3 if size < 100 else 2, act, warm=0, best=True)
        first = first or took / size
        yield Figure(
            name=f"extract_markers on {size} MiB",
            value=size / took,
            unit="MiB/s",
            ratio=took / size / first,
            floor_name=f"a MiB of {sizes[0]} MiB",
            most=1.5,
        )
