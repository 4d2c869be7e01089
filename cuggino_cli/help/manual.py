"""Layout of a command's `--help`: options in sections, examples at its end."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import click

_SELDOM = "Seldom needed (explained by `cuggino help --OPTION`)"
_FEW = 5
"""Seldom needed options that are explained, as there are only so few."""
_LIMITS = "Limits (default: as in .cuggino.json)"
_OUTPUT = "Output"
_SECTIONS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "budget",
                "max_tokens",
                "max_duration",
                "wait_for_quota",
            ),
            _LIMITS,
        ),
        **dict.fromkeys(("verbose", "quiet", "json"), _OUTPUT),
        **dict.fromkeys(
            (
                *("baseline", "dirty", "review", "slow", "slot_folder", "detach", "insecure"),
                *("price_as", "quota_reserve", "overage", "max_retries", "no_sandbox"),
                *("notify_on", "login_check", "record", "speed", "color"),
            ),
            _SELDOM,
        ),
    }
)
"""The section of each option that several commands share."""


class Sectioned(click.Command):
    """A command with options in sections; also the base of a group.

    Of options that are seldom needed only the names are shown.
    """

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, then limits, output, `--help`, and the seldom ones."""
        sections: dict[str, list[tuple[str, str]]] = {
            title: [] for title in ("Options", _LIMITS, _OUTPUT, "Help", _SELDOM)
        }
        for parameter in self.get_params(ctx):
            is_option = isinstance(parameter, click.Option)
            record = parameter.get_help_record(ctx) if is_option else None
            if record is not None:
                is_help = parameter.name == "help"
                title = "Help" if is_help else _SECTIONS.get(parameter.name or "", "Options")
                sections[title].append(record)
        if len(sections[_SELDOM]) < _FEW:
            sections["Options"] += sections.pop(_SELDOM)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    if title == _SELDOM:
                        names = ", ".join(re.split("[ ,]", record[0])[0] for record in records)
                        indent = " " * formatter.current_indent
                        formatter.write(_filled(names, formatter.width, indent) + "\n")
                    else:
                        formatter.write_dl(records)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)


def _filled(text: str, columns: int, indent: str) -> str:
    return textwrap.fill(
        text, columns, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def manual(*examples: tuple[str, str], exits: str | None = None, see: Sequence[str] = ()) -> str:
    """Return the end of a help text: examples with their purpose, exit codes, references.

    `see` lists commands, or topics of `cuggino help`.
    """
    lines = [f"  {line}\n      {purpose}" for line, purpose in examples]
    parts = ["\b\nExamples:\n" + "\n".join(lines)]
    if exits is not None:
        parts.append(f"Exit codes: {exits}")
    if see:
        parts.append("\b\nSee also: " + ", ".join(f"cuggino {name}" for name in see) + ".")
    return "\n\n".join(parts)
