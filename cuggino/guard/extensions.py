"""User additions to the command policy: profiles and allowed programs."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, NamedTuple

from cuggino.guard.profiles import EXTENDED_NAME, PROFILES

if TYPE_CHECKING:
    from cuggino.guard.policy import Mode


def profile_names() -> tuple[str, ...]:
    """Return the valid profile names; `base` is always active."""
    return ("base", *PROFILES, EXTENDED_NAME)


class UnknownProfile(ValueError):
    """A profile that does not exist; `hint` suggests a close match or lists the valid ones."""

    def __init__(self, name: str) -> None:
        super().__init__(f'unknown profile "{name}"')
        names = profile_names()
        near = difflib.get_close_matches(name, names, n=1)
        valid = "valid profiles: " + ", ".join(names)
        self.hint = f'did you mean "{near[0]}"? {valid}' if near else valid


class AllowedCommands(NamedTuple):
    """Programs that the user allows, by mode of the session."""

    base: tuple[str, ...] = ()
    """Allowed in every session."""
    run: tuple[str, ...] = ()
    """Allowed in sessions that do work."""
    sync: tuple[str, ...] = ()
    """Allowed in sessions that only read and verify."""

    def of(self, mode: Mode) -> tuple[str, ...]:
        own = self.run if mode == "run" else self.sync
        return tuple(dict.fromkeys((*self.base, *own)))


def allowed_commands(value: object) -> AllowedCommands:
    """Parse the setting: a list means `run`; an object may have `base`, `run` and `sync`.

    Raises:
        ValueError: the value is neither.
    """
    if value is None:
        return AllowedCommands()
    tiers = {"run": value} if isinstance(value, list | tuple) else value
    if not isinstance(tiers, dict) or not tiers.keys() <= set(AllowedCommands._fields):
        raise ValueError("neither a list nor an object with the lists base, run and sync")
    for names in tiers.values():
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise ValueError("not made of texts")
    return AllowedCommands(**{tier: tuple(names) for tier, names in tiers.items()})


def chosen_profiles(value: object) -> tuple[str, ...] | None:
    """Parse the setting: a name, a list of names, or nothing for all profiles (None).

    `base` is always active and may be named as well.

    Raises:
        UnknownProfile: a name is unknown.
        ValueError: it is neither a string nor a list of strings.
    """
    names = [value] if isinstance(value, str) else value
    if not names and isinstance(names, list | tuple | None):
        return None
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError("neither a text nor a list of texts")
    for name in names:
        if name not in profile_names():
            raise UnknownProfile(name)
    return tuple(dict.fromkeys(names))
