"""The channels of a configuration, and their secrets."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib.metadata import entry_points
from pkgutil import resolve_name
from typing import Any

from cuggino.chat.channel import Channel
from cuggino.chat.ntfy import NtfyChannel
from cuggino.chat.telegram import TelegramChannel
from cuggino.config import CONFIG_FILE, ChatSettings, is_reference
from cuggino.errors import ConfigError
from cuggino.files import describe, read_regular
from cuggino.sandbox import home_of, named_paths, withhold

GROUP = "cuggino.chat"
"""Group of the entry points of channels."""


def withhold_secrets(settings: ChatSettings) -> None:
    """Keep the secrets of the channels from all agents and commands of this process."""
    for reference in settings.secrets:
        kind, _, name = reference.partition(":")
        withhold(**{kind: name})


def secrets_of(settings: ChatSettings) -> dict[str, str]:
    """Return the secrets as variables, for masks; those that cannot be read are left out."""
    found: dict[str, str] = {}
    for number, reference in enumerate(settings.secrets):
        with suppress(ConfigError):
            found[f"chat_token_{number}"] = _secret(reference)
    return found


def channels_of(settings: ChatSettings) -> list[Channel]:
    """Return the configured channels.

    Raises:
        ConfigError: a secret is missing, httpx is not installed, or an own channel is unusable.
    """
    channels: list[Channel] = []
    if settings.telegram is not None:
        channels.append(TelegramChannel(**_resolved(settings.telegram.model_dump())))
    if settings.ntfy is not None:
        channels.append(NtfyChannel(**_resolved(settings.ntfy.model_dump())))
    if settings.own is not None:
        channels.append(_own(settings.own.channel, _resolved(settings.own.options)))
    return channels


def _own(name: str, options: dict[str, Any]) -> Channel:
    """Return a channel of an import path or an entry point."""
    try:
        found = {entry.name: entry for entry in entry_points(group=GROUP)}.get(name)
        channel: Channel = (found.load() if found else resolve_name(name))(**options)
        if not all(hasattr(channel, part) for part in ("name", "send", "replies")):
            raise TypeError("it has no `name`, `send` and `replies`")
    except Exception as error:  # foreign code, whose message may contain a secret
        raise ConfigError(
            f'{CONFIG_FILE}: the channel "{name}" cannot be made: {type(error).__name__}',
            hint="name a class as package.module:Class; see `cuggino help chat`",
        ) from error
    return channel


def _resolved(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _secret(one) if is_reference(one) else one for name, one in values.items()}


def _secret(reference: str) -> str:
    """Return a secret.

    Raises:
        ConfigError: the variable is not set, or the file cannot be read.
    """
    kind, _, name = reference.partition(":")
    if kind == "env":
        secret, problem = os.environ.get(name, ""), "is not set"
    else:
        secret, problem = "", "is empty"
        try:
            for path in named_paths([name], home_of(os.environ)):
                secret = read_regular(path).decode("utf-8", "replace")
        except (OSError, ValueError) as error:
            problem = describe(error)
    if not secret.strip():
        raise ConfigError(
            f'{CONFIG_FILE}: "chat" names {reference}, which {problem}',
            hint="put the secret there, or remove the channel",
        )
    return secret.strip()
