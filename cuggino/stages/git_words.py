"""What git said, in few words."""

from __future__ import annotations

import re

_CREDENTIALS = re.compile(r"(\w+://)[^/@\s']+@")


def gist(text: str, count: int = 3) -> str:
    """What git or a hook said, in few words: from git's first error on, else the last lines."""
    return _shortened([line.strip() for line in text.splitlines() if line.strip()], count)


def push_gist(text: str) -> str:
    """What `git push --porcelain` and the remote said, without advice and without credentials.

    A rejection gives the remote's own words and git's reason, such as `[rejected] (fetch first)`.
    """
    lines = [line.strip() for line in _CREDENTIALS.sub(r"\1", text).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("To ", "hint:", "Done"))]
    # `!<TAB>from:to<TAB>reason`
    rejections = [line.split("\t")[-1] for line in told if line.startswith("!\t")]
    if rejections:
        remote = [line for line in told if line.startswith("remote:") and line != "remote:"]
        return " / ".join([*rejections[:1], *remote[-2:]])
    said = [line for line in told if not line.startswith("error: failed to push some refs")]
    return _shortened(said or told)


def _shortened(lines: list[str], count: int = 3) -> str:
    errors = (n for n, line in enumerate(lines) if line.startswith(("fatal:", "error:")))
    start = next(errors, max(len(lines) - count, 0))
    return " / ".join(lines[start : start + count])
