"""Whether an approval answers a finding with a clause of the specification."""

from __future__ import annotations

import pytest

from cuggino.gate import is_answered

SPEC = "# App\n\n- The function `f` returns 2 from now on.\n- All else stays.\n"


@pytest.mark.parametrize(
    "answer",
    [
        "C1: the function f returns 2 from now on",
        "All fine.\n\nC1 - section 1: *The function `f`\nreturns* 2.",
        "C2: nothing. (C1) because 'function f returns 2' is what was asked for",
    ],
)
def test_answered(answer: str) -> None:
    """A quotation counts whatever its case, punctuation and markup."""
    assert is_answered("C1", answer, ["unrelated words that are long enough", SPEC])


@pytest.mark.parametrize(
    "answer",
    [
        *("", "ok", "C1: ok", "C1", "C1: the specification wants it", "C1: function f"),
        "The function f returns 2 from now on",
        "C11: the function f returns 2 from now on",
        "The function f returns 2 from now on, see C1",
    ],
)
def test_not_answered(answer: str) -> None:
    """The id has to stand before the quotation, and a quotation takes several words in a row."""
    assert not is_answered("C1", answer, [SPEC])


@pytest.mark.parametrize("text", ["x", "fix it", ""])
def test_too_short_to_be_quoted(text: str) -> None:
    """A task of a word or two can be quoted by chance."""
    assert not is_answered("C1", f"C1: {text}", [text])


def test_a_short_text() -> None:
    """The whole of it is a quotation, and so is the whole of a short line."""
    assert is_answered("C1", "C1: `Drop Python two`", ["Drop Python two."])
    assert is_answered("C1", "C1: f returns 2", ["# App\n\nf returns 2\n"])
    assert not is_answered("C1", "C1: f returns 3", ["# App\n\nf returns 2\n"])
