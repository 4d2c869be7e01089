"""Which files a patch in the format of `apply_patch` may touch.

Nothing but the standard library: programs of guards need it as well.
"""

from __future__ import annotations

import re

_PATCHED = re.compile(
    r"^[^\S\n]*\*\*\*[^\S\n]*(?:(?:Add|Update|Delete)[^\S\n]+File|Move[^\S\n]+to)[^\S\n]*:(.*)$",
    re.MULTILINE,
)
"""A header of a patch, however it is spaced: the program is not strict about that."""


def patched_files(patch: str) -> list[str]:
    """The files that a patch may touch; each name as it stands, and without blanks around it."""
    names = [
        name
        for told in _PATCHED.findall(patch)
        # Where it is not known which blanks belong to a name, both files count. JavaScript also
        # takes U+FEFF for a blank.
        for name in (told.strip().strip("\ufeff").strip(), told.removeprefix(" ").rstrip("\r"))
    ]
    return [name for name in dict.fromkeys(names) if name]
