"""The chat services by which a person is asked: the setting `chat`."""

import re
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from cuggino.edited_files import SECRET, Section, matching


def _reference(value: str) -> str:
    if not re.fullmatch(r"env:[A-Za-z_]\w*|file:~?/.*", value, re.ASCII):
        # Not a `ValueError`, as its message would show the value, which may be the token itself.
        raise PydanticCustomError(SECRET, 'must be "env:NAME" or "file:/whole/path", not a secret')
    return value


Secret: TypeAlias = Annotated[str, AfterValidator(_reference)]
"""Where a secret is: in a variable, or in a file."""
_Url: TypeAlias = Annotated[
    str, matching(r"https?://[^\s/@?#]+(/[^\s@?#]*)?", 'must be a URL such as "https://ntfy.sh"')
]


class TelegramSettings(Section):
    """A bot of Telegram, and the chat that it talks to."""

    token: Secret
    """The bot's token: `env:NAME` of a variable, or `file:PATH`."""
    chat: int
    """The id of the chat; messages from all others are ignored."""
    url: _Url = "https://api.telegram.org"
    """The server of the bot API."""


class NtfySettings(Section):
    """A topic of ntfy."""

    topic: Secret
    """The topic for questions and reports: `env:NAME` or `file:PATH`, as who knows it can read it.
    Answers come to the topic with `-answers` after its name."""
    token: Secret | None = None
    """The access token of a protected server: `env:NAME` or `file:PATH`."""
    url: _Url = "https://ntfy.sh"
    """The server."""


class OwnChannelSettings(Section):
    """A channel of your own."""

    channel: str = Field(pattern=r"\S")
    """The import path of a class or function, `package.module:Class`, or the name of an entry point
    of the group `cuggino.chat`."""
    options: dict[str, Any] = Field(default={})
    """Its keyword arguments. A text that is `env:NAME` or `file:PATH` stands for that secret."""


class ChatSettings(Section):
    """The chat services; each gets every question, and the first answer counts."""

    telegram: TelegramSettings | None = None
    """A bot of Telegram."""
    ntfy: NtfySettings | None = None
    """A topic of ntfy."""
    own: OwnChannelSettings | None = None
    """A channel of your own."""

    @property
    def secrets(self) -> list[str]:
        """Return where the secrets are, as `env:NAME` and `file:PATH`."""
        services = (self.telegram, self.ntfy)
        given = [value for one in services if one for value in one.model_dump().values()]
        given += self.own.options.values() if self.own else ()
        return [value for value in given if is_reference(value)]


def is_reference(value: object) -> bool:
    """Return whether a value stands for a secret."""
    return isinstance(value, str) and value.startswith(("env:", "file:"))
