"""A home of its own for each session of the Gemini CLI, with all that is in the user's.

The settings of a session can be given to the program in a file of its home alone: it takes its
`system settings` only from files that root owns. So each session gets a folder in which the user's
`.gemini` is linked file by file (logins, sessions, extensions, rules), and what is for this session
is a file of its own: the settings (those of the user, in which ours are put) and what the model is
told besides. The folder also holds the temporary files, and is removed at the end.

The project's own `.gemini/settings.json` would count for more than these settings. Where that must
not be, the session is begun as in a folder that is not trusted (`distrust`), where the program does
not read it.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cuggino.errors import ConfigError, StorageError

GEMINI = ".gemini"
_CONTEXT = "GEMINI.md"
_KEPT = ("tmp", "history")
"""Folders of the user's `.gemini` in which sessions are kept."""

_COMMENTS = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n\r]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_IMPORT = re.compile(r"(?:^|[ \t\r\n])@[A-Za-z./]")
"""What the program would take for the name of a file to be put in."""
_TICKS = re.compile("`+")


class Home:
    """The folder of one session; `remove` it at the end."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """Raises: StorageError, ConfigError (the user's settings cannot be read)."""
        self.user = Path(env.get("GEMINI_CLI_HOME") or env.get("HOME") or Path.home())
        try:
            self.path = Path(tempfile.mkdtemp(prefix="cuggino-gemini-"))
        except OSError as error:
            raise _cannot(error) from error
        self.gemini = self.path / GEMINI
        self.temp = self.path / "tmp"
        self.own = self.path / f"{self.path.name}-guard"
        """For what decides over the session; its name, which no other file has, is protected."""
        try:
            self.gemini.mkdir()
            self.temp.mkdir()
            self.own.mkdir(mode=0o700)
            self._link()
        except OSError as error:
            self.remove()
            raise _cannot(error) from error

    def remove(self) -> None:
        """Remove the folder; what is linked in it stays."""
        shutil.rmtree(self.path, ignore_errors=True)

    def user_settings(self) -> dict[str, Any]:
        """The user's settings.

        Raises:
            ConfigError: they cannot be read.
        """
        return _read_settings(self.user / GEMINI / "settings.json", strict=True)

    def write_settings(self, settings: Mapping[str, Any]) -> None:
        """Make these the settings of the session."""
        self.write("settings.json", json.dumps(settings))

    def distrust(self) -> dict[str, str]:
        """The environment in which the program does not read the project's settings.

        It takes `security.folderTrust.enabled` and `--skip-trust`, which counts from then on.
        """
        return {
            "GEMINI_CLI_TRUSTED_FOLDERS_PATH": str(self.keep("trusted.json", "{}")),
            "GEMINI_CLI_TRUST_WORKSPACE": "",
        }

    def write_context(self, text: str, *, settings: Mapping[str, Any]) -> None:
        """Add to what the program tells the model first, by its settings."""
        name = _context_name(settings) or _CONTEXT
        users = self.user / GEMINI / name
        more = users.read_text(encoding="utf-8", errors="replace") if users.is_file() else ""
        self.write(name, _as_context(text) + (f"\n\n{more}" if more else "\n"))

    def write(self, name: str, text: str) -> Path:
        """Write this file in the session's `.gemini`, in the place of the user's.

        Raises:
            StorageError: it cannot be written.
        """
        path = self.gemini / name
        try:
            if (first := self.gemini / Path(name).parts[0]).is_symlink():
                first.unlink()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            raise _cannot(error) from error
        return path

    def keep(self, name: str, text: str) -> Path:
        """Write this file where no tool of a guarded session may write.

        Raises:
            StorageError: it cannot be written.
        """
        path = self.own / name
        try:
            path.write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            raise _cannot(error) from error
        return path

    def write_command(self, prompt: str) -> str:
        """Make the prompt a command of this session; gives the words that call it."""
        folder = self.gemini / "commands"
        if folder.is_symlink():
            folder.unlink()
        name, word = self.path.name, _hidden(prompt)
        text = prompt.replace(word, _ARGUMENTS) if word else prompt
        try:
            folder.mkdir()
            quoted = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
            (folder / f"{name}.toml").write_text(
                f"prompt = {quoted}\n", encoding="utf-8", errors="replace"
            )
        except OSError as error:
            raise _cannot(error) from error
        return f"/{name} {word}".rstrip()

    def _link(self) -> None:
        gemini = self.user / GEMINI
        for kept in _KEPT:
            (gemini / kept).mkdir(parents=True, exist_ok=True)
        for entry in gemini.iterdir():
            (self.gemini / entry.name).symlink_to(entry.absolute())
        for name in (".agents", ".env"):
            if (self.user / name).exists():
                (self.path / name).symlink_to((self.user / name).absolute())


_ARGUMENTS = "{{args}}"
_TRIGGERS = (_ARGUMENTS, "!{", "@{")
"""What the program would replace in the text of a command."""


_IGNORED = ("/", "?", "<session_context>", "<hook_context>")
"""Beginnings of what the program takes for none of the conversation."""


def as_said(prompt: str) -> str:
    """The prompt, behind a space of no width if it would be taken for a command or for noise."""
    return f"\u200b{prompt}" if prompt.lstrip().startswith(_IGNORED) else prompt


def is_verbatim(prompt: str) -> bool:
    """Whether the program passes the prompt on as it is: there is no name of a file in it."""
    return "@" not in prompt


def fits_command(prompt: str) -> bool:
    """Whether the prompt can be the text of a command, in which one thing may be hidden."""
    return sum(trigger in prompt for trigger in _TRIGGERS) <= 1


def _hidden(prompt: str) -> str:
    return next((trigger for trigger in _TRIGGERS if trigger in prompt), "")


def context_of_project(project: Path) -> dict[str, Any]:
    """The settings of the project that say in which files it tells the model about itself."""
    found = _read_settings(project / GEMINI / "settings.json", strict=False)
    if _context_name(found) is None:
        return {}
    return {"context": {"fileName": found["context"]["fileName"]}}


def _as_context(text: str) -> str:
    """The text, fenced if something in it looks like an import."""
    if _IMPORT.search(text) is None:
        return text
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _context_name(settings: Mapping[str, Any]) -> str | None:
    context = settings.get("context")
    names = context.get("fileName") if isinstance(context, dict) else None
    if isinstance(names, list):
        names = names[0] if names else None
    if not isinstance(names, str) or not names or ".." in names or names.startswith("/"):
        return None
    return names


def _read_settings(path: Path, *, strict: bool) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        found = json.loads(_COMMENTS.sub(_uncommented, text))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        if not strict:
            return {}
        hint = "repair the file, or move it out of the way"
        raise ConfigError(f"{path} cannot be read: {error}", hint=hint) from error
    return found if isinstance(found, dict) else {}


def _uncommented(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else " "


def _cannot(error: OSError) -> StorageError:
    return StorageError(
        "prepare session",
        f"no folder for the session of the agent: {error.strerror or error}",
        hint="check the folder for temporary files (TMPDIR)",
    )
