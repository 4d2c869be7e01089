"""The home and settings of a session of the Gemini CLI.

The program accepts the settings of a session only from a file in its home, as its `system settings`
must be owned by root. So each session gets a folder in which the user's `.gemini` is linked file by
file (logins, sessions, extensions, rules). The session's own files replace the links: its settings
(the user's merged with ours) and additional context for the model. The folder also holds the
temporary files, and is removed at the end.

The project's own `.gemini/settings.json` would override these settings. To prevent that, the
session starts as if in an untrusted folder (`distrust`), where the program does not read it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from cuggino.agents.base.private_files import private_folder
from cuggino.errors import ConfigError, StorageError

GEMINI = ".gemini"
_CONTEXT = "GEMINI.md"
_KEPT = ("tmp", "history")
"""Folders of the user's `.gemini` that hold sessions."""

_COMMENTS = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n\r]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_IMPORT = re.compile(r"(?:^|[ \t\r\n])@[A-Za-z./]")
"""Text that the program would take for the name of a file to include."""
_TICKS = re.compile("`+")


class Home:
    """The folder of one session, removed with the stack."""

    def __init__(self, env: Mapping[str, str], stack: ExitStack) -> None:
        """Raises: StorageError, ConfigError (the user's settings cannot be read)."""
        self.user = Path(env.get("GEMINI_CLI_HOME") or env.get("HOME") or Path.home())
        try:
            self.path = private_folder(stack)  # removed without what its links point to
            self.gemini = self.path / GEMINI
            self.temp = self.path / "tmp"
            self.own = self.path / f"{self.path.name}-guard"
            """Files that control the session; its unique name is protected by the guard."""
            self.gemini.mkdir()
            self.temp.mkdir()
            self.own.mkdir(mode=0o700)
            self._link()
        except OSError as error:
            raise _cannot(error) from error

    def user_settings(self) -> dict[str, Any]:
        """Return the user's settings.

        Raises:
            ConfigError: they cannot be read.
        """
        return _read_settings(self.user / GEMINI / "settings.json", strict=True)

    def write_settings(self, settings: Mapping[str, Any]) -> None:
        self.write("settings.json", json.dumps(settings))

    def distrust(self) -> dict[str, str]:
        """Return variables that keep the program from reading the project's settings.

        This requires `security.folderTrust.enabled` and `--skip-trust`.
        """
        return {
            "GEMINI_CLI_TRUSTED_FOLDERS_PATH": str(self.keep("trusted.json", "{}")),
            "GEMINI_CLI_TRUST_WORKSPACE": "",
        }

    def write_context(self, text: str, *, settings: Mapping[str, Any]) -> None:
        """Add to the context that the program sends to the model first."""
        name = _context_name(settings) or _CONTEXT
        users = self.user / GEMINI / name
        more = users.read_text(encoding="utf-8", errors="replace") if users.is_file() else ""
        self.write(name, _as_context(text) + (f"\n\n{more}" if more else "\n"))

    def write(self, name: str, text: str) -> Path:
        """Write a file in the session's `.gemini`, in place of the user's.

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
        """Write a file where no tool of a guarded session may write.

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
        """Write the prompt as a command of this session, and return the words that invoke it."""
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
"""Text that the program replaces in a command."""


_IGNORED = ("/", "?", "<session_context>", "<hook_context>")
"""Prefixes that the program does not treat as conversation."""


def as_said(prompt: str) -> str:
    """Prefix the prompt with a zero-width space if it would be taken for a command or noise."""
    return f"\u200b{prompt}" if prompt.lstrip().startswith(_IGNORED) else prompt


def is_verbatim(prompt: str) -> bool:
    """Return whether the program passes the prompt on unchanged: it names no file."""
    return "@" not in prompt


def fits_command(prompt: str) -> bool:
    """Return whether the prompt can be a command, in which one trigger can be hidden."""
    return sum(trigger in prompt for trigger in _TRIGGERS) <= 1


def _hidden(prompt: str) -> str:
    return next((trigger for trigger in _TRIGGERS if trigger in prompt), "")


def context_of_project(project: Path) -> dict[str, Any]:
    """Return the project's settings for the names of its context files."""
    found = _read_settings(project / GEMINI / "settings.json", strict=False)
    if _context_name(found) is None:
        return {}
    return {"context": {"fileName": found["context"]["fileName"]}}


def _as_context(text: str) -> str:
    """Fence the text if it seems to contain an import."""
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


ATTEMPTS = 3
"""Attempts to reach the API, instead of ten in several silent minutes."""

_OURS: dict[str, Any] = {
    "general": {
        "maxAttempts": ATTEMPTS,
        "enableAutoUpdate": False,
        "enableAutoUpdateNotification": False,
    },
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "ide": {"enabled": False},
    # A command must not wait for a person in a terminal.
    "tools": {"shell": {"enableInteractiveShell": False}},
}

GUARDED: dict[str, Any] = {
    "hooksConfig": {"enabled": True},
    # The agent could write it, and change what runs before the commands of the next session.
    "advanced": {"ignoreLocalEnv": True},
}

DISTRUST: dict[str, Any] = {"security": {"folderTrust": {"enabled": True}}}
"""Used with `Home.distrust`."""

_AUTH = (
    ("GOOGLE_GENAI_USE_GCA", "oauth-personal"),
    ("GOOGLE_GENAI_USE_VERTEXAI", "vertex-ai"),
    ("GEMINI_API_KEY", "gemini-api-key"),
)
"""Authentication chosen by the environment; the program does not look if the API has an address."""


def session_settings(
    user: Mapping[str, Any],
    given: Mapping[str, object],
    *,
    env: Mapping[str, str],
    mcp_servers: Mapping[str, object],
    hooks: Mapping[str, Any],
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Merge the user's settings with ours, those given, `more`, and the guard's hooks."""
    settings = merged(merged(merged(user, _OURS), given), more or {})
    settings = merged(settings, {"security": {"auth": {}}})
    auth = settings["security"]["auth"]
    if "selectedType" not in auth:
        chosen = next((kind for name, kind in _AUTH if env.get(name)), None)
        if chosen is not None:
            auth["selectedType"] = chosen
    servers = {name: _server(server) for name, server in mcp_servers.items()}
    settings = merged(settings, {"mcpServers": servers} if servers else {})
    others = settings.get("hooks")
    others = others if isinstance(others, dict) else {}
    mine = {event: [*_list(others.get(event)), *entries] for event, entries in hooks.items()}
    settings["hooks"] = {**others, **mine}
    return settings


def _server(server: object) -> object:
    """Convert a server to this program's name for its address; other keys stay."""
    if not isinstance(server, Mapping):
        return server
    told = {str(key): value for key, value in server.items()}
    if told.pop("type", None) == "http" and "url" in told:
        told["httpUrl"] = told.pop("url")
    return told


def merged(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two settings recursively; `high` wins."""
    made = dict(low)
    for key, value in high.items():
        below = made.get(key)
        if isinstance(value, Mapping):
            made[key] = merged(below if isinstance(below, Mapping) else {}, value)
        else:
            made[key] = value
    return made


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
