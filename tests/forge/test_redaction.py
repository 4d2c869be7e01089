"""Outgoing texts: no secrets, no home paths, nothing that a forge acts on, limited length."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import example, given, strategies as st

from cuggino.forge.redaction import (
    LONGEST,
    foreign,
    inline,
    outgoing,
    redacting,
    shortened,
)

TOKEN = "ghp_" + "aB3" * 12
NASTY = st.lists(
    st.sampled_from([*'@#!<>/-`ab7 \n\r\x0b\u2028%$~&"', "<!-- ", "Closes #7", "@ada", "/close"]),
    max_size=30,
).map("".join)


def test_secrets_and_paths_are_masked(tmp_path: Path) -> None:
    """Values of secret variables, tokens by their format, the project and homes."""
    redact = redacting(
        {"SHOP_TOKEN": "tr0ub4dor&3", "PLAIN": "visible"},
        {"OTHER_KEY": "an0ther-one"},
        home=Path("/srv/people/ada"),
        project=tmp_path / "shop",
    )
    text = (
        f"{TOKEN} tr0ub4dor&3 an0ther-one visible {tmp_path}/shop/a.py:3 /srv/people/ada/.ssh/id "
        "/home/bob/x /Users/eve/y C:\\Users\\eve\\z /root/.netrc https://x.org/home/bob /rooted"
    )
    assert redact(text) == (
        "⟦masked github token⟧ ⟦masked SHOP_TOKEN⟧ ⟦masked OTHER_KEY⟧ visible ./a.py:3 ~/.ssh/id "
        "~/x ~/y ~\\z ~/.netrc https://x.org/home/bob /rooted"
    )


def test_a_longer_name_is_another_folder() -> None:
    """Only whole names of folders are shortened."""
    redact = redacting({}, home=Path("/h/ada"), project=Path("/p/shop"))
    assert "/p/shopping /p/shop.old ./x ." == redact("/p/shopping /p/shop.old /p/shop/x /p/shop")
    assert "/h/adam ~." == redact("/h/adam /h/ada.")


@given(NASTY)
@example("@@a")
@example("<<!--")
@example("</")
def test_nothing_is_left_to_act_on(text: str) -> None:
    """However foreign text is made up, it mentions, links, hides and closes nothing."""
    for shown in (foreign(text), inline(text)):
        assert not re.search(r"(?<![a-z0-9_])@\w|#[0-9]|<[A-Za-z/!?]", shown), shown
        assert not re.search(r"^[ \t>]*/[A-Za-z]+(\s|$)", shown, re.MULTILINE), shown
    assert all(line.startswith(">") for line in foreign(text).splitlines())
    assert "\n" not in inline(text)


def test_shortened_visibly() -> None:
    """The number of missing characters is stated."""
    assert "abc\n\n[… 2 characters left out]" == shortened("abcde", 3)
    assert "abc" == shortened("abc", 3)
    assert "aa…" == inline("a" * 9, limit=3)


@given(st.integers(min_value=0, max_value=70_000))
@example(LONGEST)
@example(LONGEST + 1)
def test_never_longer_than_a_forge_accepts(length: int) -> None:
    """A secret that crosses the limit is masked first, and never cut in two."""
    text = "x" * length + " " + TOKEN + " " + "y" * 50
    result = outgoing(text, redacting({}))
    assert len(result) < 65_536
    assert "ghp_" not in result


def test_lone_surrogates_are_replaced() -> None:
    """Text that UTF-8 cannot encode would be refused."""
    assert "a?" == outgoing("a\ud800", redacting({}))
