"""The table of the help page `exit-codes`, for tests that compare other places with it."""

from __future__ import annotations

import re

from cuggino_cli.help import page


def exit_codes() -> list[tuple[int, str]]:
    """Return each exit code with its meaning."""
    rows = re.findall(r"^\| (\d+) \| (.+?) \|$", page("exit-codes"), re.MULTILINE)
    return [(int(code), meaning) for code, meaning in rows]
