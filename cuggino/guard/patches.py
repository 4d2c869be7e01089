"""Files that a patch in the format of `apply_patch` may touch.

It needs only the standard library, because the programs of guards import it.
"""

from __future__ import annotations

import re

_PATCHED = re.compile(
    r"^[^\S\n]*\*\*\*[^\S\n]*(?:(?:Add|Update|Delete)[^\S\n]+File|Move[^\S\n]+to)[^\S\n]*:(.*)$",
    re.MULTILINE,
)
"""A header of a patch with any spacing, which the program accepts too."""


def patched_files(patch: str) -> list[str]:
    """Return the files that a patch may touch, each name as written and with blanks stripped."""
    names = [
        name
        for told in _PATCHED.findall(patch)
        # If it is unclear which blanks belong to a name, both files count. JavaScript also
        # treats U+FEFF as a blank.
        for name in (told.strip().strip("\ufeff").strip(), told.removeprefix(" ").rstrip("\r"))
    ]
    return [name for name in dict.fromkeys(names) if name]
