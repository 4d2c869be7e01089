"""The exit codes of commands, which the Gemini CLI tells the model and its hooks, and nobody else.

A hook that is run behind each command (`AfterTool`) keeps what it is told in a folder, from where
it is read when the command's result comes. Without it a command that failed counts as done.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

from cuggino.agents.gemini.tools import unmarked
from cuggino.agents.gemini.watch import same_text
from cuggino.agents.json_values import dict_or_empty
from cuggino.errors import StorageError

SHELL = "run_shell_command"

_END = "</untrusted_context>"
_CODE = re.compile(
    r"^Exit Code: (\d{1,9})\n"
    r"(?:(?:Signal|Background PIDs|Process Group PGID): .*\n)*" + re.escape(_END),
    re.MULTILINE,
)
"""At the end of what the model is told; what a command printed comes before."""


class Exits:
    """The exit codes of one session, kept in this folder."""

    def __init__(self, folder: Path) -> None:
        """Raises: StorageError."""
        self._folder = folder / "exits"
        self._script = folder / "exits.sh"
        self._codes: list[tuple[str, int]] = []
        place = shlex.quote(str(self._folder))
        try:
            self._folder.mkdir()
            self._script.write_text(
                f"cat > {place}/$$.part && mv {place}/$$.part {place}/$$.json\necho '{{}}'\n"
            )
        except OSError as error:
            why = error.strerror or str(error)
            raise StorageError("prepare session", f"no folder for the session: {why}") from error

    def hooks(self) -> dict[str, Any]:
        """The settings by which the program tells them."""
        command = f"/bin/sh {shlex.quote(str(self._script))}"
        entry = {"type": "command", "command": command, "timeout": 10_000}
        return {"AfterTool": [{"matcher": f"^{SHELL}$", "hooks": [entry]}]}

    def code(self, arguments: Any) -> int:
        """That of a command which was called so and has ended, 0 if it is not known."""
        self._read()
        key = same_text(arguments)
        for found in self._codes:
            if found[0] == key:
                self._codes.remove(found)
                return found[1]
        return 0

    def _read(self) -> None:
        for path in sorted(self._folder.glob("*.json")):
            try:
                told = dict_or_empty(json.loads(path.read_bytes()))
                path.unlink()
            except (OSError, ValueError, RecursionError):
                continue
            said = json.dumps(dict_or_empty(told.get("tool_response")).get("llmContent"))
            text = said.replace("\\n", "\n")
            key = same_text(unmarked(told.get("tool_input")))
            self._codes.append((key, _code_in(text)))


def _code_in(text: str) -> int:
    """What the program says at its end; a command may have printed the same words before."""
    code = 0
    for found in _CODE.finditer(text):
        code = int(found[1]) if found.end() > text.rfind(_END) else 0
    return code
