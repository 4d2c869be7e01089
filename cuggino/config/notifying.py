"""Notifications: how a person is notified, and on which occasions."""

import re
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)

Occasion: TypeAlias = Literal[
    "end", "failed", "spec_issue", "login", "item", "parked", "quota", "budget"
]
"""`end`: a run has ended, a watch has worked through its backlog, or its `at` has come. `failed`: a
run ended without an approval. `spec_issue`, `login`: nothing continues until a person acts. `item`,
`parked`: an item of a watch is done, or was set aside. `quota`: a usage limit is reached. `budget`:
80 % of a budget is spent."""

OCCASIONS: tuple[Occasion, ...] = get_args(Occasion)

USUAL: tuple[Occasion, ...] = ("end", "failed", "spec_issue", "login")
"""One message per night, and the urgent ones."""


class NotifySettings(BaseModel):
    """The object form of `notify`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    to: str | list[str] = "bell"
    """`bell`, `none`, or one or more Apprise URLs."""
    command: str | None = Field(default=None, pattern=r"\S")
    """A shell command that gets the title, a blank line and the text on its standard input."""
    on: list[Occasion] = list(USUAL)
    """The occasions."""
    at: str | None = "07:00"
    """The local time at which a watch still at work summarizes its progress; null for none."""

    @field_validator("to", mode="after")
    @classmethod
    def _known_ways(cls, value: str | list[str]) -> str | list[str]:
        for way in [value] if isinstance(value, str) else value:
            if way not in ("bell", "none") and "://" not in way:
                raise ValueError('must be "bell", "none", or Apprise URLs such as "ntfy://topic"')
        return value

    @field_validator("at", mode="after")
    @classmethod
    def _time(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", value, re.ASCII):
            raise ValueError('must be a time such as "07:00"')
        return value


def _known_notify(value: object) -> object:
    if isinstance(value, NotifySettings):
        return value
    given = value if isinstance(value, dict) else {"to": value}
    try:
        settings = NotifySettings.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        name = f"{first['loc'][0]}: " if isinstance(value, dict) else ""
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            message = "unknown key; it has `to`, `command`, `on` and `at`"
        raise ValueError(name + message) from None
    return settings if isinstance(value, dict) else value


Notify: TypeAlias = Annotated[str | list[str] | NotifySettings, BeforeValidator(_known_notify)]
