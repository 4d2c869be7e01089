"""The reading of a message as a value: what `extract_markers` keeps of one."""

from __future__ import annotations

from hypothesis import example, given, strategies as st

from cuggino.operators.markers.reading import Piece, Reading
from cuggino.operators.markers.tags import FreeTags, LineTags
from tests.operators.written import QUOTED_TEXTS, split

FRESH = Reading(FreeTags(frozenset({"NOTE"})), LineTags(frozenset({"DONE"})))
TEXTS = st.lists(
    st.sampled_from(["<NOTE>", "</NOTE>", "<NOTE>n</NOTE>"]) | QUOTED_TEXTS, max_size=6
).map("".join)


def read(reading: Reading, *pieces: str) -> tuple[list[Piece], Reading]:
    """Return all the pieces of a part that comes in pieces."""
    found: list[Piece] = []
    for piece in pieces:
        reading, markers = reading.feed(piece)
        for marker in markers:
            found += marker.pieces()
    rest, reading = reading.finish(is_last=False)
    return found + rest, reading


@given(st.lists(TEXTS, min_size=1, max_size=3), TEXTS, st.lists(st.integers(0, 99), max_size=20))
@example(["> ```\n<DONE>x</DONE>\n\nb", "<NOTE>n</NOTE>"], "", [23])
@example(["<NOTE>", ""], "", [])
@example(["<DONE>\n> ~~~\nx</DONE>\n\nb"], "", [21])
def test_a_part_in_pieces_is_the_whole_part(
    parts: list[str], other: str, places: list[int]
) -> None:
    """A part has the same pieces whole, cut anywhere, or read again after something else."""
    whole = cut = single = FRESH
    for part in parts:
        whole.feed(other)  # a value: what is read from here changes nothing
        expected, whole = whole.read_part(part, is_last=False)
        seen, cut = read(cut, *split(part, places))
        assert expected == seen
        seen, single = read(single, *part)
        assert expected == seen
    assert whole.end_message() == cut.end_message() == single.end_message()
