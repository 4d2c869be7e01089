"""The picture in the README: an animated SVG of a recorded terminal, without scripts.

Each new line pushes the others up, as in a terminal. It starts with the end of the run, which is
also shown with reduced motion or without support for animations.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from xml.sax.saxutils import escape, unescape

from tests.documents.recording import COLUMNS, Line, Span

PICTURE = "cuggino_cli/demo/demo.svg"

_ROWS = 26
_CELL, _LINE = 8.4, 18.0
_LEFT, _TOP, _BAR = 16.0, 12.0, 34.0
_END_SECONDS, _FIRST_SECONDS = 6.0, 3.0
"""The time for which the end of the run is shown, and for which it is shown at first."""
_COLORS = {31: "r", 32: "g", 33: "y", 34: "b", 35: "m", 36: "c"}
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_KEYS = "p pause  s steer  v more  q stop"
_STYLE = """\
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;\
white-space:pre;fill:#d5d9e0}
.B{font-weight:700}.d{opacity:.62}
.r{fill:#ff7b72}.g{fill:#56d364}.y{fill:#e3b341}.b{fill:#79c0ff}.m{fill:#d2a8ff}.c{fill:#76e3ea}"""


def picture(lines: Sequence[Line]) -> str:
    """Return the SVG of the recorded lines, with the command above."""
    shown = [Line(0.0, (Span("$ ", (2,)), Span("cuggino demo", (1,)))), *_wrapped(lines)]
    seconds = shown[-1].seconds + _END_SECONDS
    width = round(2 * _LEFT + COLUMNS * _CELL)
    height = round(_BAR + 2 * _TOP + _ROWS * _LINE)
    end = -_LINE * max(len(shown) - _ROWS, 0)
    rows = "\n".join(filter(None, (_row(line, n) for n, line in enumerate(shown))))
    working = 100 * shown[-1].seconds / seconds
    times = f"{seconds:.1f}s step-end {_FIRST_SECONDS - seconds:.1f}s infinite"
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" \
height="{height}" role="img" aria-labelledby="t">
<title id="t">A run of cuggino demo: plan, tasks, a review that asks for changes, approval</title>
<style>
{_STYLE}
#l{{transform:translateY({end:g}px)}}#w{{visibility:hidden}}
@media (prefers-reduced-motion:no-preference){{
#l{{animation:l {times}}}
#w{{animation:w {times}}}
#s{{animation:s 1s steps({len(_SPINNER)}) infinite}}
@keyframes l{{{_scroll(shown, seconds)}}}
@keyframes w{{0%{{visibility:visible}}{working:.2f}%,to{{visibility:hidden}}}}
@keyframes s{{to{{transform:translateY(-{len(_SPINNER) * _LINE:g}px)}}}}
}}
</style>
<rect width="{width}" height="{height}" rx="10" fill="#161b22"/>
<circle cx="20" cy="18" r="6" fill="#ff5f57"/><circle cx="40" cy="18" r="6" fill="#febc2e"/>\
<circle cx="60" cy="18" r="6" fill="#28c840"/>
<clipPath id="a"><rect y="{_BAR:g}" width="{width}" height="{_foot() + 6 - _BAR:g}"/></clipPath>
<clipPath id="g"><rect y="{_foot() - _LINE + 4:g}" width="{width}" height="{_LINE:g}"/></clipPath>
<g clip-path="url(#a)"><g id="l">
{rows}
</g></g>
<g id="w"><rect y="{_foot() - _LINE + 4:g}" width="{width}" height="{_LINE:g}" fill="#161b22"/>\
<g clip-path="url(#g)"><g id="s">{_spinner()}</g></g>
<text x="{_LEFT + 2 * _CELL:g}" y="{_foot():g}">Working...</text>
<text class="d" x="{_LEFT + (COLUMNS - len(_KEYS)) * _CELL:g}" y="{_foot():g}">{_KEYS}</text></g>
</svg>
"""


def words(svg: str) -> list[str]:
    """Return the lines of text in the picture, without the parts that vary between runs."""
    lines: list[str] = []
    continued = False
    for row in re.findall(r"^<text y=.*$", svg, re.MULTILINE):
        text = unescape(re.sub(r"<[^>]*>", "", row))
        if continued:
            lines[-1] += text
        else:
            lines.append(text)
        continued = len(text) == COLUMNS  # the rest of a line that is wider than the terminal
    return list(map(same, lines))


def same(text: str) -> str:
    """Replace folders, ids, hashes and times, which vary between runs."""
    text = re.sub(r"/\S*cuggino-demo-\w+", "FOLDER", text)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", text)
    text = re.sub(r"^\d\d:\d\d:\d\d ", "AT ", text)
    text = re.sub(r"\b[0-9a-f]{7}\b", "HASH", text)
    return re.sub(r"\b\d+(m \d+)? ?s\b", "TIME", text).strip()


def lines_to_compare(lines: Sequence[Line]) -> list[str]:
    """Return the lines as `words` returns them, without the first line."""
    return [same(line.text) for line in lines if line.text.strip()]


def _foot() -> float:
    return _BAR + _TOP + (_ROWS - 1) * _LINE + 2


def _wrapped(lines: Sequence[Line]) -> list[Line]:
    """Merge adjacent empty lines, and wrap lines as a terminal does."""
    found: list[Line] = []
    for line in lines:
        if not line.text.strip() and found and not found[-1].text.strip():
            continue
        rest = list(line.spans)
        while rest:
            room, taken = COLUMNS, list[Span]()
            while rest and room:
                text, codes = rest.pop(0)
                taken.append(Span(text[:room], codes))
                if text[room:]:
                    rest.insert(0, Span(text[room:], codes))
                room -= len(text[:room])
            found.append(Line(line.seconds, tuple(taken)))
        if not line.spans:
            found.append(line)
    return found


def _row(line: Line, number: int) -> str:
    if not line.text.strip():
        return ""
    y = _BAR + _TOP + number * _LINE + 2
    spans = "".join(_span(span) for span in line.spans)
    return f'<text y="{y:g}" x="{_LEFT:g}">{spans}</text>'


def _span(span: Span) -> str:
    looks = [_COLORS[code] for code in span.codes if code in _COLORS]
    looks += ["B"] if 1 in span.codes else []
    looks += ["d"] if 2 in span.codes else []
    text = escape(span.text)
    return f'<tspan class="{" ".join(looks)}">{text}</tspan>' if looks else text


def _scroll(lines: Sequence[Line], seconds: float) -> str:
    """Return the keyframes that move the newest line to the row above the spinner."""
    steps = []
    for at, group in groupby(enumerate(lines), lambda pair: round(pair[1].seconds, 1)):
        last = max(number for number, _ in group)
        y = _LINE * (_ROWS - 2 - last)
        steps.append(f"{100 * at / seconds:.2f}%{{transform:translateY({y:g}px)}}")
    end = _LINE * (_ROWS - len(lines))
    steps[-1] = f"{100 * lines[-1].seconds / seconds:.2f}%,to{{transform:translateY({end:g}px)}}"
    return "\n".join(steps)


def _spinner() -> str:
    return "".join(
        f'<text x="{_LEFT:g}" y="{_foot() + n * _LINE:g}">{sign}</text>'
        for n, sign in enumerate(_SPINNER)
    )
