"""The numbers of backlog items, whose order is that of their names."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBER = re.compile(r"([0-9]{3,6}|9{3,}[0-9]{3})(?=[-.])")
"""What a name begins with. Longer ones are dates, but those which `next_number` makes."""


def next_number(names: Iterable[str]) -> str:
    """The number for a name that comes behind all of these which begin with one.

    It counts on from the last one, in its width: `001`, `002`, ..., `999`. As names are sorted by
    their characters, `1000-x` would come before `101-x`: behind `999` comes `999001`, behind
    `999999` comes `999999001`.
    """
    numbers = [found[1] for name in names if (found := _NUMBER.match(name))]
    last = max(numbers, default="000")
    if not last.strip("9"):
        return f"{last}001"
    return str(int(last) + 1).zfill(len(last))
