"""What a user may add to the command policy: profiles to choose from, programs to allow."""

from __future__ import annotations

import difflib
from typing import NamedTuple

from cuggino.security.policy import Mode
from cuggino.security.profiles import EXTENDED_NAME, PROFILES

PROFILE_NAMES = ("base", *PROFILES, EXTENDED_NAME)
"""What can be named as a profile; `base` is always on."""


class UnknownProfile(ValueError):
    """A profile that does not exist; `hint` says which do, or which was meant."""

    def __init__(self, name: str) -> None:
        super().__init__(f'unknown profile "{name}"')
        near = difflib.get_close_matches(name, PROFILE_NAMES, n=1)
        valid = "valid profiles: " + ", ".join(PROFILE_NAMES)
        self.hint = f'did you mean "{near[0]}"? {valid}' if near else valid


class AllowedCommands(NamedTuple):
    """Programs that the user allows, by the kind of session that may run them (AUT-139)."""

    base: tuple[str, ...] = ()
    """In every session."""
    run: tuple[str, ...] = ()
    """Where work is done."""
    sync: tuple[str, ...] = ()
    """Where it is only looked at and judged."""

    def of(self, mode: Mode) -> tuple[str, ...]:
        """Those of a session of this kind."""
        own = self.run if mode == "run" else self.sync
        return tuple(dict.fromkeys((*self.base, *own)))


def allowed_commands(value: object) -> AllowedCommands:
    """A list means `run`; an object has `base`, `run` and `sync`, each of which may be absent.

    Raises:
        ValueError: it is something else.
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
    """Absent or an empty list: all, as None; a text: that one; a list as it is (AUT-137).

    `base` is always on, and may be named as well.

    Raises:
        UnknownProfile: there is none of that name (AUT-138).
        ValueError: it is neither a text nor a list of texts.
    """
    names = [value] if isinstance(value, str) else value
    if not names and isinstance(names, list | tuple | None):
        return None
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError("neither a text nor a list of texts")
    for name in names:
        if name not in PROFILE_NAMES:
            raise UnknownProfile(name)
    return tuple(dict.fromkeys(names))
