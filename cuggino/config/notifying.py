"""Notifications: how a person is notified, and on which occasions."""

from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field

from cuggino.edited_files import Section, matching

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

_Target: TypeAlias = Annotated[
    str,
    matching(
        r"bell|none|[\s\S]*://[\s\S]*", 'must be "bell", "none", or an Apprise URL: ntfy://topic'
    ),
]
_Targets: TypeAlias = _Target | list[_Target]
_Time: TypeAlias = Annotated[
    str, matching(r"([01]\d|2[0-3]):[0-5]\d", 'must be a time such as "07:00"')
]


class NotifySettings(Section):
    """The object form of `notify`."""

    to: _Targets = "bell"
    """`bell`, `none`, or one or more Apprise URLs."""
    command: str | None = Field(default=None, pattern=r"\S")
    """A shell command that gets the title, a blank line and the text on its standard input."""
    on: list[Occasion] = Field(default=list(USUAL))
    """The occasions."""
    at: _Time | None = "07:00"
    """The local time at which a watch still at work summarizes its progress; null for none."""

    @property
    def targets(self) -> list[str]:
        """The places, whichever way they are written."""
        return [self.to] if isinstance(self.to, str) else self.to


Notify: TypeAlias = _Targets | NotifySettings
